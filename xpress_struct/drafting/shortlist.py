"""Shortlist: random drafts on a device, drawn on the host from each slot's likeliest tokens.

The token-level and block rules need what a token was drawn from, under the mask. Worked out on the device,
each mask would wait for the token in front of it. So the likeliest tokens of every slot come down
together, and the host masks, cuts and draws. A draft may be drawn from any distribution that is told
truly: here it is that of the legal tokens on the list. The list is made by the logits alone, not by the
noise, so that whether a slot is offered does not hang on what is drawn there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from xpress_struct.drafting.settling import Settling
from xpress_struct.sampling import probabilities, process

__all__ = ["Shortlist"]


class Shortlist(Settling):
    """Settles a random block with one wait a pass; `candidates` is the length of the lists."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._lists: dict[int, np.ndarray] = {}
        self._drawn: dict[int, tuple[np.ndarray, Tensor]] = {}  # legal ids of a slot, and their probabilities

    def fetch(
        self, guess: Tensor, start: int, stop: int, masks: Mapping[int, Any]
    ) -> tuple[list[int], list[list[int]]]:
        """Brings down a guess [K] and the lists, each in the order of its draws."""
        lists = self.scores.shortlist(start, stop, self.candidates)
        flat = torch.cat([guess.double(), lists.flatten()]).cpu().numpy()
        table = flat[len(guess) :].reshape(lists.shape)  # [slots, 3, candidates]: ids, logits, noise
        temperature = self.scores.params.temperature
        order = np.argsort(-(table[:, 1] / temperature + table[:, 2]), axis=-1, kind="stable")
        table = np.take_along_axis(table, order[:, None], axis=-1)
        self._lists.update(enumerate(table, start))
        return flat[: len(guess)].astype(int).tolist(), table[:, 0].astype(int).tolist()

    def choose(self, slot: int, candidates: list[int]) -> int | None:
        packed = self.path.mask(slot)
        if packed is None:
            return None
        ids, logits, noise = self._lists[slot]
        ids = ids.astype(int)
        allowed = np.unpackbits(packed, bitorder="little")
        legal = (ids < len(allowed)) & allowed[np.minimum(ids, len(allowed) - 1)].astype(bool)
        legal &= np.isfinite(logits)
        if not legal.any():
            return None
        scores = process(torch.from_numpy(logits[legal]), None, self.scores.params)
        self._drawn[slot] = ids[legal], probabilities(scores)
        return int(ids[legal][int((scores + torch.from_numpy(noise[legal])).argmax())])

    def confidences(self) -> list[float]:
        """Probability of the likeliest token of each slot of the draft; 1 where forced."""
        tokens = self.path.tokens
        return [
            1.0 if self.path.forced(slot) is not None else float(self._drawn[slot][1].max())
            for slot in range(len(tokens))
        ]

    def report(self) -> tuple[Tensor | None, Tensor]:
        tokens = self.path.tokens
        slots, ids, shares = [], [], []
        certainty = torch.tensor([[1.0], [0.0]]).repeat(1, len(tokens))
        for slot, token in enumerate(tokens):
            drawn = (np.array([token]), torch.ones(1, dtype=torch.float64))
            if self.path.forced(slot) is None:
                drawn = self._drawn[slot]
                certainty[0, slot] = drawn[1].max()
                certainty[1, slot] = torch.special.entr(drawn[1]).sum()
            slots += [slot] * len(drawn[0])
            ids.append(drawn[0])
            shares.append(drawn[1])
        q = self.scores.base.new_zeros((len(tokens), self.scores.width), dtype=torch.float64)
        if tokens:
            places = (torch.tensor(slots), torch.from_numpy(np.concatenate(ids)))
            rows, columns = (place.to(q.device, non_blocking=True) for place in places)
            q.index_put_((rows, columns), torch.cat(shares).to(q.device, non_blocking=True))
        return q, certainty
