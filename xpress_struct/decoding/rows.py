"""The target's masked distributions along one draft, computed as late as possible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.errors import DeadEndError
from xpress_struct.results import Stats, timed
from xpress_struct.sampling import (
    RESIDUAL,
    Noise,
    SamplingParams,
    draw,
    probabilities,
    process,
    unpack_mask,
)

__all__ = ["Rows"]


class Rows:
    """Row i is the target's distribution at slot i of a draft; row K is the bonus row.

    Masks cost, so they are asked for only where they matter: a row that is decided by an argmax
    (greedy, or Gumbel noise) needs none when its unmasked winner is legal. `DeviceRows` is for a GPU, where
    waiting costs more.

    Args:
        logits: float32 [rows, V].
        draft: the K draft tokens.
        legal: how many of them are legal in a row.
        ends: the last one is an end token; its bonus row stands for the end token itself.
        matcher: stands in front of slot 0 and moves along the draft as rows are asked for.
        noise: of the round.
        place: absolute place of slot 0 in the sequence.
        keep_masks: compute the mask of every row that is asked for (log-probabilities).
    """

    def __init__(
        self,
        logits: Tensor,
        draft: Sequence[int],
        legal: int,
        ends: bool,
        matcher: Matcher,
        params: SamplingParams,
        noise: Noise,
        place: int,
        stats: Stats,
        *,
        keep_masks: bool = False,
    ) -> None:
        self._logits, self._draft, self._legal, self._matcher = logits, draft, legal, matcher
        self._ends = ends
        self._params, self._noise, self._place, self._stats = params, noise, place, stats
        self._needs_masks = keep_masks or params.cuts
        self._masks: dict[int, Tensor] = {}
        self._packed: dict[int, np.ndarray] = {}
        self._p: dict[int, Tensor] = {}
        self._best: list[int] | None = None
        self.advanced = 0
        self.dead_end: DeadEndError | None = None

    def choice(self, slot: int) -> int:
        """The target's token at a slot: the argmax of log p + noise (coupled rule).

        Raises:
            DeadEndError: the slot is a dead end.
        """
        if self._ended(slot):
            return self._draft[-1]
        if not self._needs_masks:
            best = self._winner(slot)
            if self._is_legal(slot, best):
                return best
        return int(self._scores(slot, slot + 1, self.mask(slot)).argmax())

    def p(self, slot: int) -> Tensor:
        """Masked and processed distribution of a slot, float64 [V].

        All zero at a dead end, which `dead_end` then tells: the block rule looks ahead, and may never
        get there.
        """
        if self._ended(slot):
            return torch.nn.functional.one_hot(
                torch.tensor(self._draft[-1], device=self._logits.device), self._logits.shape[-1]
            ).double()
        if slot not in self._p:
            try:
                scores = process(self._logits[slot], self.mask(slot), self._params)
            except DeadEndError as error:
                self.dead_end = error
                self._p[slot] = torch.zeros_like(self._logits[slot], dtype=torch.float64)
                return self._p[slot]
            if self._params.greedy:
                winner = scores.argmax()
                self._p[slot] = torch.zeros_like(scores, dtype=torch.float64)
                self._p[slot][winner] = 1.0
            else:
                self._p[slot] = probabilities(scores)
        return self._p[slot]

    def draw(self, weights: Tensor, slot: int) -> int:
        """Draws a token of a slot with probability proportional to weights [V].

        Raises:
            DeadEndError: the slot is a dead end.
        """
        if self.dead_end is not None and not bool(weights.any()):
            raise self.dead_end
        return draw(weights, self._noise.key, self._place + slot, RESIDUAL)

    def mask(self, slot: int) -> Tensor:
        """Booleans [V], True where legal."""
        if slot not in self._masks:
            packed = torch.from_numpy(self._pack(slot))
            packed = packed.to(self._logits.device, non_blocking=True)
            self._masks[slot] = unpack_mask(packed, self._logits.shape[-1])
        return self._masks[slot]

    def logprobs(self, slot: int) -> Tensor:
        """Log-softmax of the masked logits of a slot, float32 [V]."""
        return self._logits[slot].masked_fill(~self.mask(slot), -torch.inf).log_softmax(-1)

    def _ended(self, slot: int) -> bool:
        return self._ends and slot == len(self._draft)

    def _scores(self, start: int, stop: int, mask: Tensor | None = None) -> Tensor:
        """What the argmax of slots decides: processed scores with their noise, [slots, V]."""
        scores = process(self._logits[start:stop], mask, self._params)
        if self._params.greedy:
            return scores
        return scores + self._noise.rows(self._place + start, stop - start)

    def _winner(self, slot: int) -> int:
        """The best token of a slot without a mask."""
        if not self._params.greedy:
            return int(self._scores(slot, slot + 1).argmax())
        if self._best is None:
            self._best = self._logits.argmax(-1).tolist()
        return self._best[slot]

    def _pack(self, slot: int) -> np.ndarray:
        """Packed mask of a slot."""
        if slot not in self._packed:
            self._advance(slot)
            with timed(self._stats, "mask_s"):
                self._packed[slot] = self._matcher.mask()
        return self._packed[slot]

    def _is_legal(self, slot: int, token: int) -> bool:
        if slot < self._legal and token == self._draft[slot]:
            return True
        self._advance(slot)
        with timed(self._stats, "mask_s"):
            return self._matcher.legal(token)

    def _advance(self, slot: int) -> None:
        """Moves the matcher in front of a slot; rows are asked for from left to right."""
        if slot < self.advanced:
            raise RuntimeError(f"row {slot} asked for behind row {self.advanced}")
        self._matcher.commit(self._draft[self.advanced : slot])
        self.advanced = slot
