"""Several drafters at once: each round takes the one whose guesses should stand best."""

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
# Lookup with so much credit is taken without asking the others.
_BEYOND = 8.0


class SeveralDrafter:
    """Chooses among drafters, round by round.

    Under the token-level and block rules the choice rests on past rounds, and on what lookup found in the
    text: both are settled before any noise of the round, so it biases none. Under the coupled rule no choice
    can: there drafters that tell how much of their draft should stand are taken at their word, corrected
    by how right they were so far, and what was learned serves all requests.

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
        self._credit: dict[Key, float] = {}
        self._trust: dict[int, tuple[float, float]] = {}

    def begin(self, context: DraftContext) -> _Session:
        """Starts a request with each of them; see `Drafter`."""
        members = [(drafter, drafter.begin(context)) for drafter in self.drafters]
        if context.rule == "coupled":
            return _Session(members, self._credit, self._trust)
        return _Session(members, {}, None)


Key = tuple[int, int]
"""A member, and how much context its guess rests on: lookup is worth more the longer its match."""


class _Session:
    """A request's choices.

    Args:
        credit: mean tokens that stood, by member and match.
        trust: by member, means of what stood and of what it expected; None: nobody is asked.
    """

    def __init__(
        self,
        members: list[tuple[Drafter, DraftSession]],
        credit: dict[Key, float],
        trust: dict[int, tuple[float, float]] | None,
    ) -> None:
        self._members, self._credit, self._trust = members, credit, trust
        self._tapped = next((session for drafter, session in members if drafter.taps), None)
        self._last: dict[Key, int] = {}  # the last round in which a guess was compared
        self._offered: dict[int, tuple[Key, Draft]] = {}  # by member, in this round
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
            index: _legal_part(session.propose(output, room, matcher, noise), matcher)
            for index, (drafter, session) in enumerate(self._members)
            if drafter.name == _LOOKUP
        }
        keys = [(i, found[i].matched.bit_length() if i in found else 0) for i in range(len(self._members))]
        self._offered = {i: (keys[i], draft) for i, draft in found.items()}
        order = sorted(keys, key=self._expected, reverse=True)
        # Those that read hidden states tell what they expect.
        asks = self._trust is not None and self._expected(order[0]) < _BEYOND
        answered = False
        for index, _ in order:
            drafter, session = self._members[index]
            if answered and not (asks and drafter.taps):
                continue
            draft = found.get(index) or session.propose(output, room, matcher, noise)
            self._offered[index] = keys[index], draft
            answered = answered or bool(draft.tokens)
        ready = [index for index, _ in order if index in self._offered and self._offered[index][1].tokens]
        if not ready:
            return Draft([])
        self._chosen = max(ready, key=self._worth)
        return self._offered[self._chosen][1]

    def _resume(
        self, output: Sequence[int], room: int, matcher: Matcher, noise: Noise, drafted: int
    ) -> Draft:
        """Goes on behind a draft: with its own drafter, else with any that can."""
        for index in (self._chosen, *range(len(self._members))):
            drafter, session = self._members[index]
            draft = session.propose(output, room, matcher, noise, drafted) if drafter.resumes else Draft([])
            if draft.tokens:
                if index == self._chosen and index in self._offered:
                    key, first = self._offered[index]
                    so_far = [*output[self._offered_at :], *draft.tokens]
                    self._offered[index] = key, first._replace(tokens=so_far)
                return draft
        return Draft([])

    def _expected(self, key: Key) -> float:
        """Tokens that should stand, by past rounds."""
        credit = self._credit.get(key, _CREDIT)
        forgotten = self._round - self._last.get(key, self._round) >= _AGAIN
        return max(credit, _CREDIT) if forgotten else credit

    def _worth(self, index: int) -> float:
        """Tokens of a member's draft that should stand, by its own word where that counts."""
        key, draft = self._offered[index]
        if self._trust is None or draft.expected is None:
            return self._expected(key)
        stood, expected = self._trust.get(index, (1.0, 1.0))
        return draft.expected * stood / expected

    def _learn(self, came: Sequence[int]) -> None:
        """Credits what was offered with how far it agrees with what came out."""
        for index, (key, draft) in self._offered.items():
            if not draft.tokens:
                continue
            pairs = enumerate(zip(draft.tokens, came, strict=False))
            known = min(len(draft.tokens), len(came))
            new = next((i for i, (a, b) in pairs if a != b), known)
            self._credit[key] = _mixed(self._credit.get(key, float(new)), new)
            self._last[key] = self._round
            if self._trust is not None and draft.expected is not None:
                stood, expected = self._trust.get(index, (1.0, 1.0))
                # Where all of it stood, the text came no further than it is known.
                seen = min(draft.expected, known) if new == known else draft.expected
                self._trust[index] = _mixed(stood, new), max(_mixed(expected, seen), 1e-3)
        self._offered = {}


def _legal_part(draft: Draft, matcher: Matcher) -> Draft:
    """What lookup found, as far as the grammar takes it: the rest is worth nothing."""
    return draft._replace(tokens=draft.tokens[: matcher.fork().follow(draft.tokens)])


def _mixed(old: float, new: float) -> float:
    return _KEEP * old + (1 - _KEEP) * new
