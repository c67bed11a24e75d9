"""Several drafters at once: each round takes the one whose guesses have stood best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from torch import Tensor

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.drafting.drafter import Draft, DraftContext, Drafter, DraftSession, TappedSession
from xpress_struct.errors import ArgumentError
from xpress_struct.sampling import Noise

__all__ = ["SeveralDrafter"]

# Guesses that a drafter is first given credit for, and the rounds after which one is tried again.
_CREDIT, _AGAIN = 4.0, 16
_KEEP = 0.8
_LOOKUP = "lookup"


class SeveralDrafter:
    """Chooses among drafters, round by round.

    The choice rests on past rounds, and on what lookup found in the text: both are settled before any
    noise of the round, so it biases no acceptance rule.

    Args:
        drafters: two or more, at most one of which reads hidden states.

    Raises:
        ArgumentError: too few, or two that read hidden states.
    """

    resumes = True

    def __init__(self, drafters: Sequence[Drafter]) -> None:
        if len(drafters) < 2:
            raise ArgumentError("A list of drafters needs two or more.")
        tapped = [drafter for drafter in drafters if drafter.taps]
        if len(tapped) > 1:
            raise ArgumentError("Only one drafter of a list may read the target's hidden states.")
        self.drafters = tuple(drafters)
        self.name = "+".join(drafter.name for drafter in drafters)
        self.taps: tuple[int, ...] = tapped[0].taps if tapped else ()
        self.longest = max(drafter.longest for drafter in drafters)
        self.honours = frozenset[str]().union(*(drafter.honours for drafter in drafters))

    def begin(self, context: DraftContext) -> _Session:
        """Starts a request with each of them; see `Drafter`."""
        return _Session([(drafter, drafter.begin(context)) for drafter in self.drafters])


Key = tuple[int, int]
"""A member, and how much context its guess rests on: lookup is worth more the longer its match."""


class _Session:
    def __init__(self, members: list[tuple[Drafter, DraftSession]]) -> None:
        self._members = members
        self._tapped = next((session for drafter, session in members if drafter.taps), None)
        self._stood: dict[Key, tuple[float, int]] = {}  # mean guesses that stood, and the last such round
        self._offered: dict[int, tuple[Key, list[int]]] = {}  # by member, in this round
        self._offered_at = self._round = self._chosen = 0

    def read(self, states: Tensor) -> None:
        """Hands the states to the member that reads them."""
        cast(TappedSession, self._tapped).read(states)

    def propose(
        self, output: Sequence[int], room: int, matcher: Matcher, noise: Noise, drafted: int = 0
    ) -> Draft:
        """The guess of the member with the most credit that has one."""
        if drafted:
            return self._resume(output, room, matcher, noise, drafted)
        self._learn(output[self._offered_at :])
        self._round += 1
        self._offered_at = len(output)
        # Lookup costs next to nothing: what it finds is known before the choice.
        found = {
            index: session.propose(output, room, matcher, noise)
            for index, (drafter, session) in enumerate(self._members)
            if drafter.name == _LOOKUP
        }
        keys = [(i, found[i].matched.bit_length() if i in found else 0) for i in range(len(self._members))]
        self._offered = {i: (keys[i], draft.tokens) for i, draft in found.items()}
        for index, _ in sorted(keys, key=self._expected, reverse=True):
            draft = found.get(index) or self._members[index][1].propose(output, room, matcher, noise)
            self._offered[index] = keys[index], draft.tokens
            if draft.tokens:
                self._chosen = index
                return draft
        return Draft([])

    def _resume(
        self, output: Sequence[int], room: int, matcher: Matcher, noise: Noise, drafted: int
    ) -> Draft:
        """Goes on behind a draft: with its own drafter, else with any that can."""
        for index in (self._chosen, *range(len(self._members))):
            drafter, session = self._members[index]
            draft = session.propose(output, room, matcher, noise, drafted) if drafter.resumes else Draft([])
            if draft.tokens:
                if index == self._chosen and index in self._offered:
                    so_far = [*output[self._offered_at :], *draft.tokens]
                    self._offered[index] = self._offered[index][0], so_far
                return draft
        return Draft([])

    def _expected(self, key: Key) -> float:
        stood, last = self._stood.get(key, (_CREDIT, self._round))
        return max(stood, _CREDIT) if self._round - last >= _AGAIN else stood

    def _learn(self, came: Sequence[int]) -> None:
        """Credits what was offered with how far it agrees with what came out."""
        for key, tokens in self._offered.values():
            if tokens:
                pairs = enumerate(zip(tokens, came, strict=False))
                known = min(len(tokens), len(came))
                new = next((i for i, (a, b) in pairs if a != b), known)
                old, _ = self._stood.get(key, (float(new), 0))
                self._stood[key] = _KEEP * old + (1 - _KEEP) * new, self._round
        self._offered = {}
