"""Settling: one block's passes, from base logits to tokens that the grammar takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from xpress_struct.drafting.path import Path
from xpress_struct.drafting.scores import BlockScores

__all__ = ["Settling"]


class Settling:
    """One block on its way from base logits to a draft.

    Args:
        scores: its numbers.
        path: its way through the grammar.
        candidates: how many of a slot's best tokens come down from the device in each pass.
        exact: a slot where none of them is legal is worked out under its mask, which waits for the device;
            otherwise it is masked in the next pass, and ends the draft in the last.
        random: what the tokens were drawn from is wanted.
        asks_confidence: `confidences` will be asked.
    """

    def __init__(
        self,
        scores: BlockScores,
        path: Path,
        candidates: int,
        *,
        exact: bool,
        random: bool,
        asks_confidence: bool,
    ) -> None:
        self.scores, self.path, self.candidates = scores, path, candidates
        self._exact, self._random, self._asks_confidence = exact, random, asks_confidence
        self._confidence: dict[int, float] = {}
        self._repaired: set[int] = set()
        self._blocked = False
        self.passes = 0
        self.history: list[list[int]] = []
        self.slots = len(scores.base)

    def walk_base(self) -> None:
        """The base logits' winners, under the mask."""
        nothing = torch.zeros(0, dtype=torch.int64, device=self.scores.base.device)
        _, rows = self.fetch(nothing, 0, self.slots, {})
        self._walk(rows, 0)
        self.history.append(list(self.path.tokens))

    def refine(self, bias: Any, *, chunk: int, passes: int) -> None:
        """Chunk by chunk from left to right; inside a chunk, at most so many parallel passes."""
        guess = self.scores.first()
        for start in range(0, self.slots, chunk):
            if len(self.path.tokens) < start or self.path.closed(start):
                return
            guess = self._settle(bias, guess, start, min(start + chunk, self.slots), passes)

    @property
    def repairs(self) -> list[int]:
        """Slots of the draft where the winner of the last pass was illegal."""
        return sorted(slot for slot in self._repaired if slot < len(self.path.tokens))

    def report(self) -> tuple[Tensor | None, Tensor]:
        """q [k, V] where it is wanted, and `Refined.certainty` [2, k]."""
        path, tokens = self.path, list(self.path.tokens)
        forced = [path.forced(slot) is not None for slot in range(len(tokens))]
        q = self.scores.distributions(tokens, path.masks()) if self._random else None
        return q, self.scores.certainty(forced, q)

    def confidences(self) -> list[float]:
        """Probability of the likeliest token of each slot of the draft, without a mask; 1 where forced."""
        slots = range(len(self.path.tokens))
        return [1.0 if self.path.forced(slot) is not None else self._confidence[slot] for slot in slots]

    def fetch(
        self, guess: Tensor, start: int, stop: int, masks: Mapping[int, Any]
    ) -> tuple[list[int], list[list[int]]]:
        """Brings down a guess [K] and the best tokens of slots, best first: the pass's only wait.

        Args:
            masks: packed masks of slots whose tokens are to be legal.
        """
        best = self.scores.best(start, stop, self.candidates, masks)
        parts = [guess.double(), best.flatten().double()]
        if self._asks_confidence:
            parts.append(self.scores.confidence(start, stop))
        flat = torch.cat(parts).tolist()
        columns, end = best.shape[1], len(guess) + best.numel()
        self._confidence.update(enumerate(flat[end:], start))
        ids = [int(token) for token in flat[:end]]
        return ids[: len(guess)], [ids[i : i + columns] for i in range(len(guess), end, columns)]

    def choose(self, slot: int, candidates: list[int]) -> int | None:
        """The winner among the legal tokens of a slot that is not forced; None where the draft ends."""
        path, scores = self.path, self.scores
        if not scores.draws_need_masks:
            for token in candidates:
                if path.legal(slot, token):
                    return token
        packed = path.mask(slot)
        if packed is None:
            return None
        if not self._exact:
            self._blocked = True
            return None
        token = scores.winner(slot, packed)
        return token if path.legal(slot, token) else None

    def _settle(self, bias: Any, guess: Tensor, start: int, stop: int, passes: int) -> Tensor:
        """Passes over the slots start .. stop - 1 until nothing changes; returns the tokens [K].

        Slots behind the path's end hold winners that nobody walked; they are never offered.
        """
        after: list[int] | None = None
        for _ in range(passes):
            self.scores.refine(bias(guess), start, stop)
            masks = {} if after is None or self._exact else self.path.known_masks(after[:stop], start)
            before, rows = self.fetch(guess, start, stop, masks)
            self.history = self.history or [before]
            self._walk(rows, start)
            self.passes += 1
            tokens = self.path.tokens
            self.history.append(list(tokens))
            end = len(tokens)
            unwalked = [row[0] for row in rows[end - start :]]
            after = [*tokens, *unwalked, *before[stop:]]
            guess = torch.tensor(after).to(guess.device, non_blocking=True)
            changed = next((slot for slot in range(start, end) if after[slot] != before[slot]), end)
            # Slots up to the first change saw the same tokens to their left as the next pass would show them.
            start = min(changed + 1, end)
            if start == end and not self._blocked:
                break
        return guess

    def _walk(self, rows: list[list[int]], start: int) -> None:
        """Takes the winner of each row among its legal tokens, until the path ends."""
        self._blocked = False
        for slot, candidates in enumerate(rows, start):
            token = self._token(slot, candidates)
            if token is None:
                self.path.cut(slot)
                return
            self.path.take(slot, token)

    def _token(self, slot: int, candidates: list[int]) -> int | None:
        path = self.path
        if path.closed(slot):
            return None
        self._repaired.discard(slot)
        token = path.forced(slot)
        if token is None:
            token = self.choose(slot, candidates)
            repaired = token != candidates[0] and not path.legal(slot, candidates[0])
        else:
            repaired = token != candidates[0]
        if repaired:
            self._repaired.add(slot)
        return token
