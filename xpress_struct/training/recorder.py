"""Recorder: features of a document, kept while the target writes it, so that it need not be read again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from xpress_struct.drafting.lookup import LookupDrafter
from xpress_struct.results import Generation
from xpress_struct.training.features import LIKELIEST, Features

if TYPE_CHECKING:
    from xpress_struct.constraints.matcher import Matcher
    from xpress_struct.drafting.drafter import Draft, DraftContext, DraftSession
    from xpress_struct.sampling import Noise

__all__ = ["Recorder"]


class Recorder:
    """Guesses as the lookup drafter does, and keeps the tapped states; one request at a time.

    Args:
        taps: layers of the target to read.
    """

    resumes = True
    name = "lookup"
    longest = 16
    honours = frozenset[str]()

    def __init__(self, taps: Sequence[int]) -> None:
        self.taps = tuple(taps)
        self._lookup = LookupDrafter()
        self._states: list[Tensor] = []

    def begin(self, context: DraftContext) -> _Session:
        self._states = []
        return _Session(self._lookup.begin(context), self._states)

    def features(self, result: Generation) -> Features:
        """The features of what was just generated with `logprobs=LIKELIEST`."""
        assert result.logprobs is not None
        ids = torch.zeros(len(result.logprobs), LIKELIEST, dtype=torch.int32)
        probabilities = torch.zeros(len(result.logprobs), LIKELIEST)
        for place, row in enumerate(result.logprobs):
            ids[place, : len(row.top)] = torch.tensor([token for token, _ in row.top])
            probabilities[place, : len(row.top)] = torch.tensor([score for _, score in row.top]).exp()
        states = torch.cat(self._states).to("cpu", torch.float16)
        return Features(states, ids, probabilities.half())


class _Session:
    def __init__(self, lookup: DraftSession, states: list[Tensor]) -> None:
        self._lookup, self._states = lookup, states

    def read(self, states: Tensor) -> None:
        self._states.append(states)

    def propose(
        self, output: Sequence[int], room: int, matcher: Matcher, noise: Noise, drafted: int = 0
    ) -> Draft:
        return self._lookup.propose(output, room, matcher, noise, drafted)
