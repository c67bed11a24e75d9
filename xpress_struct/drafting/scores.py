"""BlockScores: the numbers of one block, on their device: logits, noise, winners, distributions."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from xpress_struct.sampling import SamplingParams, probabilities, process, unpack_mask

__all__ = ["BlockScores"]


class BlockScores:
    """Scores of K slots over the Vd ids that the drafter knows.

    Args:
        base: logits [K, Vd], of any float type; columns beyond `width` are dropped.
        noise: float64 [K, V], Gumbel; None for a draft by argmax.
        params: its temperature, top-k, top-p and min-p are the draft's.
        width: V.
        draft_ids: int64 [Vd], the target's id of each column; None when they are the same.
        random: the tokens are drawn from reported distributions, so top-k, top-p and min-p are
            applied behind the mask.

    Attributes:
        base, logits: float32 [K, Vd], before and after refinement. Rows of `logits` are defined once `refine`
            wrote them.
        params, width: as given.
    """

    def __init__(
        self,
        base: Tensor,
        noise: Tensor | None,
        params: SamplingParams,
        width: int,
        draft_ids: Tensor | None,
        random: bool,
    ) -> None:
        self._ids, self.width, self.params = draft_ids, width, params
        self.base = self.logits = (base[:, :width] if draft_ids is None else base).float()
        self._columns = slice(self.base.shape[1]) if draft_ids is None else draft_ids
        # float64 noise would make float64 copies of the logits in each pass.
        self._noise = None if noise is None else noise[:, self._columns].float()
        self._cut, self._plain = params, SamplingParams(params.temperature)
        self._cut_first = params.cuts and not random
        self._cut_last = params.cuts and random
        self._drawn: dict[int, Tensor] = {}

    @property
    def draws_need_masks(self) -> bool:
        """True when the winner under the mask cannot be told from candidates without it."""
        return self._cut_last

    def refine(self, bias: Tensor, start: int, stop: int) -> None:
        """Logits of the slots start .. stop - 1: base and bias [K, Vd]."""
        if self.logits is self.base:
            self.logits = torch.empty_like(self.base)
        bias = bias[start:stop, : self.base.shape[1]]
        torch.add(self.base[start:stop], bias, out=self.logits[start:stop])

    def first(self) -> Tensor:
        """Winners of the base logits, int64 [K] target ids."""
        return self._target_ids(self._with_noise(self.base, slice(None), self._plain).argmax(-1))

    def best(self, start: int, stop: int, count: int, masks: Mapping[int, np.ndarray]) -> Tensor:
        """The best target ids of each slot in order, int64 [stop - start, count or so].

        The first one that is legal is the winner under the mask. Where top-k, top-p or min-p cut first, it
        is the winner among what they keep, if that is legal, else among all.

        Args:
            masks: packed masks of slots whose candidates are to be legal.
        """
        slots, logits = slice(start, stop), self.logits[start:stop]
        first = self._cut if self._cut_first else self._plain
        if count == 1:
            return self._target_ids(self._with_noise(logits, slots, first).argmax(-1, keepdim=True))
        scores = self._with_noise(logits, slots, self._plain)
        if masks:
            scores = scores.clone()
            for slot, packed in masks.items():
                scores[slot - start].masked_fill_(~self._mask(packed), -math.inf)
        columns = scores.topk(min(count, scores.shape[-1])).indices
        if self._cut_first:
            kept = self._with_noise(logits, slots, self._cut).argmax(-1, keepdim=True)
            columns = torch.cat([kept, columns], -1)
        return self._target_ids(columns)

    def shortlist(self, start: int, stop: int, count: int) -> Tensor:
        """The likeliest tokens of each slot, float64 [stop - start, 3, count or so]: ids, logits, noise.

        The noise does not count in the choice.
        """
        logits, columns = self.logits[start:stop].topk(min(count, self.logits.shape[1]), dim=-1)
        assert self._noise is not None
        noise = self._noise[start:stop].gather(-1, columns)
        return torch.stack([self._target_ids(columns).double(), logits.double(), noise.double()], dim=1)

    def winner(self, slot: int, packed: np.ndarray) -> int:
        """The winner under a mask: a target id, illegal when no legal one is known to the drafter."""
        params = self._cut if self._cut_last else self._plain
        scores = process(self.logits[slot], self._mask(packed), params)
        if self._cut_last:
            self._drawn[slot] = scores
        if self._noise is not None:
            scores = scores + self._noise[slot]
        return int(self._target_ids(scores.argmax(-1)))

    def distributions(self, tokens: list[int], masks: list[np.ndarray | None]) -> Tensor:
        """What each token was drawn from, float64 [k, V]; one-hot where the mask is None."""
        rows = self.base.new_zeros((len(tokens), self.width), dtype=torch.float64)
        for slot, (token, packed) in enumerate(zip(tokens, masks, strict=True)):
            if packed is None:
                rows[slot, token] = 1.0
                continue
            scores = self._drawn.get(slot) if self._cut_last else None
            if scores is None:
                scores = process(self.logits[slot], self._mask(packed), self._plain)
            rows[slot, self._columns] = probabilities(scores)
        return rows

    def base_confidence(self) -> Tensor:
        """Probability of each slot's likeliest token by the base logits [K]."""
        return self._softmax(self.base).amax(-1)

    def confidence(self, start: int, stop: int) -> Tensor:
        """Probability of the likeliest token of slots, without a mask, float64 [stop - start]."""
        return self._softmax(self.logits[start:stop]).amax(-1).double()

    def certainty(self, forced: list[bool], q: Tensor | None) -> Tensor:
        """Largest probability and entropy of the first slots [2, k]: of q, else without a mask."""
        shares = self._softmax(self.logits[: len(forced)]) if q is None else q.float()
        # The smallest normal number stands in for 0, whose logarithm would make 0 times infinity.
        logs = shares.clamp_min(torch.finfo(shares.dtype).tiny).log_()
        known = torch.tensor(forced, dtype=torch.bool).to(shares.device, non_blocking=True)
        best, entropy = shares.amax(-1), -logs.mul_(shares).sum(-1)
        return torch.stack([best.masked_fill(known, 1.0), entropy.masked_fill(known, 0.0)])

    def _softmax(self, logits: Tensor) -> Tensor:
        """At the draft's temperature, or 1 for a draft by argmax."""
        return (logits if self._plain.greedy else logits / self._plain.temperature).softmax(-1)

    def _with_noise(self, logits: Tensor, slots: slice, params: SamplingParams) -> Tensor:
        scores = process(logits, None, params)
        return scores if self._noise is None else scores.add_(self._noise[slots])

    def _target_ids(self, columns: Tensor) -> Tensor:
        return columns if self._ids is None else self._ids[columns]

    def _mask(self, packed: np.ndarray) -> Tensor:
        """Booleans [.., Vd], True where legal. Masks go up packed."""
        bits = torch.from_numpy(packed).to(self.base.device, non_blocking=True)
        return unpack_mask(bits, self.width)[..., self._columns]
