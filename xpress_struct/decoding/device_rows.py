"""The rows of a draft on a GPU: worked out together, one wait for the device a round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from xpress_struct.decoding.acceptance import Accepted
from xpress_struct.decoding.acceptance_batched import accept_batched
from xpress_struct.decoding.rows import Rows
from xpress_struct.errors import CompileLimitError, DeadEndError
from xpress_struct.results import timed
from xpress_struct.sampling import RESIDUAL, gumbel_rows, probabilities, process, unpack_mask

__all__ = ["DeviceRows"]


class DeviceRows(Rows):
    """`Rows` that are decided by one transfer from the device.

    Masks of all rows are made on the host while the device still runs the target. The matcher therefore moves
    past the tokens that will stand. The wait counts as the target's time, in `score_s`.
    """

    _winners: list[int] | None = None
    _stuck: CompileLimitError | DeadEndError | None = None

    def choice(self, slot: int) -> int:
        if self._ended(slot):
            return self._draft[-1]
        if self._winners is None:
            masks = self._reached()
            winners = self._scores(0, len(masks), masks).argmax(-1) if len(masks) else masks[:, 0]
            with timed(self._stats, "score_s"):
                self._winners = winners.tolist()
        if slot == len(self._winners) and self._stuck is not None:
            raise self._stuck
        return self._winners[slot]

    def accept(
        self, rule: Literal["token", "block"], q: Sequence[Tensor | None], coin: Callable[[int], float]
    ) -> Accepted:
        """Token-level or block acceptance of the draft.

        Raises:
            DeadEndError, CompileLimitError: the next token is to be drawn where there is none.
        """
        p = self._all_p()
        key, width = self._noise.key, p.shape[-1]
        noise = gumbel_rows(key, range(self._place, self._place + len(p)), width, RESIDUAL, p.device)
        with timed(self._stats, "score_s"):
            return accept_batched(rule, self._draft, q, p, coin, noise, self._stuck)

    def _all_p(self) -> Tensor:
        """Masked and processed distributions, float64 [rows, V], up to a dead end, which is all zero."""
        masks, width = self._reached(), self._logits.shape[-1]
        scores = process(self._logits[: len(masks)], masks, self._params)
        if self._params.greedy:
            p = _one_hot(scores.argmax(-1), width)
        else:
            p = probabilities(scores)
        if self._stuck is not None:
            return torch.cat([p, p.new_zeros(1, width)])
        if self._ends:
            end = torch.tensor(self._draft[-1:]).to(p.device, non_blocking=True)
            return torch.cat([p, _one_hot(end, width)])
        return p

    def _reached(self) -> Tensor:
        """Masks [rows, V] of the rows in front of the first dead end; `_stuck` tells it."""
        packed: list[np.ndarray] = []
        try:
            for slot in range(len(self._logits)):
                packed.append(self._pack(slot))
        except (CompileLimitError, DeadEndError) as error:
            # It is told if the text really comes here.
            self._stuck = error
        width = self._logits.shape[-1]
        if not packed:
            return torch.zeros(0, width, dtype=torch.bool, device=self._logits.device)
        masks = unpack_mask(
            torch.from_numpy(np.stack(packed)).to(self._logits.device, non_blocking=True), width
        )
        self._masks.update(enumerate(masks.unbind()))
        return masks


def _one_hot(ids: Tensor, width: int) -> Tensor:
    """float64 [n, width] of ids [n]."""
    return torch.zeros(len(ids), width, dtype=torch.float64, device=ids.device).scatter_(
        -1, ids.unsqueeze(-1), 1.0
    )
