"""Refinement: base logits of a block become a draft whose tokens depend on those to their left.

The draft that is wanted is left to right, under the grammar's mask, with the noise of each place:

    x_k = argmax over legal v of  y_k(x_<k)[v] / T + G_k[v],     y_k(x_<k) = base_k + bias_k(x_<k),

and parallel passes find it: each computes all y from the last pass's tokens and walks the winners from
left to right, with repairs (xPress, arXiv 2608.02438, under a mask). Slot k is final after k + 1 passes
at the latest; an unconverged tail is a draft like any other.

For the token-level and block rules y_k, and with it q_k, is a function of x_<k and G_<k alone: it is that
of the very pass whose winner was taken, and nothing is decided by what was drawn at slot k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.drafting.control import Refine
from xpress_struct.drafting.path import Path
from xpress_struct.drafting.scores import BlockScores
from xpress_struct.sampling import SamplingParams

__all__ = ["CHUNK", "LOW_CONFIDENCE", "Bias", "Plan", "Refined", "refine"]

Bias = Callable[[Tensor], Tensor]
"""int64 [K] target ids, one a slot -> [K, Vd]; row k depends on the ids of slots < k only."""

CHUNK = 4
"""Slots of a chunk of `chunked`."""

LOW_CONFIDENCE = 0.5
"""`low-confidence` refines the slots whose likeliest token by the base logits is less likely than this."""


class Plan(NamedTuple):
    """How a block is refined.

    Attributes:
        kind: "none" walks the base logits. "sequential" computes one slot's bias after the other.
            "parallel" all at once, again and again. "low-confidence" is parallel, and leaves the base
            logits of the other slots as they are. "chunked" finishes one chunk before the next.
        passes: R, parallel passes at most (in each chunk); 1 or more.
        temperature: T; 0 drafts by argmax.
        confidence: the draft ends before the first slot whose likeliest token is less likely than this;
            0 never cuts.
    """

    kind: Refine
    passes: int
    temperature: float = 0.0
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Refined:
    """A draft, and how it came about.

    Attributes:
        tokens: k <= K legal ids. They end early behind an end token, at a dead end, where the drafter knows
            no legal token, or by confidence.
        q: float64 [k, V], what each token was drawn from, one-hot where the grammar forced it; None
            when the draft is not random or nobody asked.
        passes: how often the bias was computed.
        history: the tokens before the first pass (the base's winners, no grammar asked) and after
            each pass; the walked draft alone when there was no pass.
        repairs: slots of the draft where the winner of the last pass was illegal.
        certainty: [2, k] on the logits' device, or on the host if a confidence cut asked for it: max_v q_k of
            each slot, and the entropy of q_k in nats.
            q_k is that of `q`; where it was not asked for, the softmax of the slot's logits over all
            tokens, at the draft's temperature (1 for a draft by argmax), and one-hot where the grammar
            forced the token.
    """

    tokens: list[int]
    q: Tensor | None
    passes: int
    history: list[list[int]]
    repairs: list[int]
    certainty: Tensor

    @property
    def report(self) -> tuple[int, float, float]:
        """Slots, and the sums of `certainty` over them. Waits for the device."""
        confidence, entropy = self.certainty.sum(-1).tolist()
        return len(self.tokens), confidence, entropy

    def before(self, slot: int) -> Refined:
        """The draft without the slots from this one on."""
        return replace(
            self,
            tokens=self.tokens[:slot],
            q=None if self.q is None else self.q[:slot],
            repairs=[s for s in self.repairs if s < slot],
            certainty=self.certainty[:, :slot],
        )


def refine(
    base: Tensor,
    bias: Bias | None,
    matcher: Matcher,
    noise: Tensor | None,
    plan: Plan,
    params: SamplingParams,
    *,
    width: int,
    draft_ids: Tensor | None = None,
    wants_q: bool = False,
    candidates: int = 1,
) -> Refined:
    """Turns the base logits of a block into a draft under the grammar's mask.

    A forced token is written also when the drafter does not know it.

    Args:
        base: [K, Vd].
        bias: None leaves the base logits as they are.
        matcher: in front of slot 0; it is read and not moved.
        noise: float64 [K, V], G of each place; None when greedy.
        params: of the request; its top-k, top-p and min-p cut the draft too.
        width: V.
        draft_ids: int64 [Vd], the target's id of each column of the logits, for a reduced draft vocabulary;
            None when they are the same.
        wants_q: report what the tokens were drawn from (token-level and block rules).
        candidates: how many of the best tokens of a slot are tried before a mask is applied. Above 1, a
            pass waits for the device once unless q is wanted: a slot where none of them is legal is masked
            in the next pass, and ends the draft in the last. Where q is wanted a draft must be exact: a pass
            waits once more for each such slot; and with top-k, top-p or min-p once, and once more for each
            slot where the likeliest legal token does not win.
    """
    temperature = 0.0 if noise is None else plan.temperature
    drawn = replace(params, temperature=temperature)
    random = wants_q and not drawn.greedy
    scores = BlockScores(base, None if drawn.greedy else noise, drawn, width, draft_ids, random)
    block = _Block(scores, Path(matcher), candidates, exact=random or candidates == 1)
    if bias is None or plan.kind == "none":
        block.walk_base()
    elif plan.kind == "sequential":
        block.refine(bias, chunk=1, passes=1)
    elif plan.kind == "parallel":
        block.refine(bias, chunk=block.slots, passes=plan.passes)
    elif plan.kind == "low-confidence":
        block.refine(_where_unsure(bias, scores), chunk=block.slots, passes=plan.passes)
    else:
        block.refine(bias, chunk=CHUNK, passes=plan.passes)
    refined = block.finish(random)
    return _cut_unsure(refined, plan.confidence) if plan.confidence > 0 else refined


def _where_unsure(bias: Bias, scores: BlockScores) -> Bias:
    """The bias at slots of low base confidence, 0 elsewhere. What is drawn there must not decide."""
    unsure = (scores.base_confidence() < LOW_CONFIDENCE).unsqueeze(-1)
    return lambda tokens: bias(tokens) * unsure


def _cut_unsure(refined: Refined, least: float) -> Refined:
    """Cuts by the likeliest token of a slot, never by the drawn one."""
    certainty = refined.certainty.cpu()
    sure = certainty[0].tolist()
    cut = next((slot for slot, share in enumerate(sure) if share < least), len(sure))
    return replace(refined, certainty=certainty).before(cut)


class _Block:
    """One block on its way from base logits to a draft."""

    def __init__(self, scores: BlockScores, path: Path, candidates: int, *, exact: bool) -> None:
        self._scores, self._path, self._candidates, self._exact = scores, path, candidates, exact
        self._repairs: set[int] = set()
        # Winners under masks, each with the tokens that it stands behind.
        self._foreseen: dict[int, tuple[list[int], int]] = {}
        self._blocked = False
        self._passes = 0
        self._history: list[list[int]] = []
        self.slots = len(scores.base)

    def walk_base(self) -> None:
        """The base logits' winners, under the mask."""
        self._walk(self._scores.best(0, self.slots, self._candidates, {}).tolist(), 0)
        self._history.append(list(self._path.tokens))

    def refine(self, bias: Bias, *, chunk: int, passes: int) -> None:
        """Chunk by chunk from left to right; inside a chunk, at most so many parallel passes."""
        guess = self._scores.first()
        for start in range(0, self.slots, chunk):
            if len(self._path.tokens) < start or self._path.closed(start):
                return
            guess = self._settle(bias, guess, start, min(start + chunk, self.slots), passes)

    def finish(self, random: bool) -> Refined:
        """The draft."""
        path, tokens = self._path, list(self._path.tokens)
        forced = [path.forced(slot) is not None for slot in range(len(tokens))]
        q = self._scores.distributions(tokens, path.masks()) if random else None
        return Refined(
            tokens,
            q,
            self._passes,
            self._history,
            sorted(slot for slot in self._repairs if slot < len(tokens)),
            self._scores.certainty(forced, q),
        )

    def _settle(self, bias: Bias, guess: Tensor, start: int, stop: int, passes: int) -> Tensor:
        """Passes over the slots start .. stop - 1 until nothing changes; returns the tokens [K].

        Slots behind the path's end hold winners that nobody walked; they are never offered.
        """
        after: list[int] | None = None
        for _ in range(passes):
            self._scores.refine(bias(guess), start, stop)
            masks = {} if after is None or self._exact else self._path.known_masks(after[:stop], start)
            best = self._scores.best(start, stop, self._candidates, masks)
            # The pass's only wait for the device.
            flat = torch.cat([guess, best.flatten()]).tolist()
            before, columns = flat[: self.slots], best.shape[1]
            rows = [flat[i : i + columns] for i in range(self.slots, len(flat), columns)]
            self._history = self._history or [before]
            self._walk(rows, start)
            self._passes += 1
            tokens = self._path.tokens
            self._history.append(list(tokens))
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
        """Takes the first legal token of each row, repairing where there is none, until the path ends."""
        self._blocked = False
        self._foreseen.clear()
        for slot in range(start, start + len(rows)):
            token = self._token(slot, rows[slot - start :])
            if token is None:
                self._path.cut(slot)
                return
            self._path.take(slot, token)

    def _token(self, slot: int, rows: list[list[int]]) -> int | None:
        """The winner among the legal tokens; None where the draft ends. `rows` are those from there on."""
        path, candidates = self._path, rows[0]
        if path.closed(slot):
            return None
        self._repairs.discard(slot)
        token = path.forced(slot)
        if token is None:
            token = self._winner(slot, rows)
            repaired = token != candidates[0] and not path.legal(slot, candidates[0])
        else:
            repaired = token != candidates[0]
        if repaired:
            self._repairs.add(slot)
        return token

    def _winner(self, slot: int, rows: list[list[int]]) -> int | None:
        path = self._path
        if not self._scores.draws_need_masks:
            for token in rows[0]:
                if path.legal(slot, token):
                    return token
        packed = path.mask(slot)
        if packed is None:
            return None
        if not self._exact:
            self._blocked = True
            return None
        if slot not in self._foreseen or self._foreseen[slot][0] != path.tokens[:slot]:
            self._foresee(slot, packed, rows)
        token = self._foreseen[slot][1]
        return token if path.legal(slot, token) else None

    def _foresee(self, slot: int, packed: np.ndarray, rows: list[list[int]]) -> None:
        """The winner of a slot under its mask; with the wait for it, those of the slots behind.

        Where top-k, top-p or min-p cut behind the mask, each slot needs its mask, and a mask needs the tokens
        in front of it. So the likeliest tokens are walked ahead; what stands behind a wrong one is forgotten.
        """
        masks, way = {slot: packed}, self._path.tokens[:slot]
        if self._scores.draws_need_masks and self._candidates > 1:
            way = self._look_ahead(slot, rows, masks)
        for ahead, token in zip(masks, self._scores.winners(masks), strict=True):
            self._foreseen[ahead] = way[:ahead], token

    def _look_ahead(self, slot: int, rows: list[list[int]], masks: dict[int, np.ndarray]) -> list[int]:
        """Walks the likeliest tokens from a slot on and back; adds the masks met, returns all tokens."""
        path = self._path
        for ahead, candidates in enumerate(rows, slot):
            if path.closed(ahead):
                break
            token = path.forced(ahead)
            if token is None:
                packed = path.mask(ahead)
                if packed is None:
                    break
                masks[ahead] = packed
                likeliest = (candidates[-1], *candidates)
                token = next((each for each in likeliest if path.legal(ahead, each)), None)
                if token is None:
                    break
            path.take(ahead, token)
        way = list(path.tokens)
        path.cut(slot)
        return way
