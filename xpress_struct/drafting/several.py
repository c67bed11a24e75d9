"""Several drafters at once: each round takes the one whose guesses should stand best."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from torch import Tensor

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.drafting.asking import Asking, mixed
from xpress_struct.drafting.drafter import Draft, DraftContext, Drafter, DraftSession, TappedSession
from xpress_struct.errors import ArgumentError, CompileLimitError, DeadEndError
from xpress_struct.sampling import Noise

__all__ = ["SeveralDrafter"]

# Guesses that a drafter is first given credit for, and the rounds after which one is tried again.
_CREDIT, _AGAIN = 4.0, 16
_LOOKUP = "lookup"
# Stands for the grammar among the members: text that it spells, where several tokens could begin it.
_SPELLED = -1


class SeveralDrafter:
    """Chooses among drafters, round by round.

    Under the token-level and block rules the choice rests on past rounds, and on what lookup found in the
    text: both are settled before any noise of the round, so it biases none. Under the coupled rule no choice
    can: there drafters that tell how much of their draft should stand are taken at their word, corrected
    by how right they were so far, they are asked where that is worth its time, and what was learned serves
    all requests.

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
        self._learned = _Learned()

    def begin(self, context: DraftContext) -> _Session:
        """Starts a request with each of them; see `Drafter`."""
        members = [(drafter, drafter.begin(context)) for drafter in self.drafters]
        coupled = context.rule == "coupled"
        return _Session(members, self._learned if coupled else _Learned(), context)


Key = tuple[int, int]
"""A member, and how much context its guess rests on: lookup is worth more the longer its match."""

Situation = tuple[int, Key | None, int]
"""A member that may be asked, the best that is at hand without it, and the length of lookup's match."""


class _Learned:
    """What past rounds say: mean guesses that stood, by member and match; by situation, means of what stood
    and of what the member expected; and what asking it gained."""

    def __init__(self) -> None:
        self.credit: dict[Key, float] = {}
        self.trust: dict[Situation, tuple[float, float]] = {}
        self.asking = Asking()


class _Offer(NamedTuple):
    """What a member offers in a round, and the places of its guesses.

    A token that the grammar forces is none: it comes without a forward of the target, whoever writes it.
    """

    key: Key
    draft: Draft
    guesses: list[int]

    def stood(self, came: Sequence[int]) -> tuple[int, bool]:
        """Guesses that agree with what came out, and whether all that is known of them do."""
        pairs = enumerate(zip(self.draft.tokens, came, strict=False))
        agreed = next((i for i, (a, b) in pairs if a != b), len(came))
        return sum(place < agreed for place in self.guesses), agreed >= len(came)


class _Session:
    """A request's choices.

    Args:
        learned: moved on by every round.
    """

    def __init__(
        self,
        members: list[tuple[Drafter, DraftSession]],
        learned: _Learned,
        context: DraftContext,
    ) -> None:
        self._members, self._learned, self._stats = members, learned, context.stats
        self._coupled, self._timed = context.rule == "coupled", context.timed
        self._credit = learned.credit
        self._tapped = next((session for drafter, session in members if drafter.taps), None)
        self._last: dict[Key, int] = {}  # the last round in which a guess was compared
        self._offered: dict[int, _Offer] = {}  # by member, in this round
        self._asked: dict[int, Situation] = {}  # those of this round that had to be worth it
        self._offered_at = self._round = self._chosen = 0
        self._scored, self._took, self._has_asked = 0.0, 0.0, False

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
        keys = self._at_hand(output, room, matcher, noise)
        for index, _ in sorted(keys, key=self._expected, reverse=True):
            if index not in self._offered and self._asks(index, keys):
                started = time.perf_counter()
                draft = self._members[index][1].propose(output, room, matcher, noise)
                if index in self._asked:
                    self._took = time.perf_counter() - started
                # It may be drawn: what of it is illegal is offered all the same.
                guesses = _walked(draft.tokens, room, matcher)[1]
                self._offered[index] = _Offer(keys[index], draft, guesses)
        ready = [index for index, offer in self._offered.items() if offer.draft.tokens]
        if not ready:
            return Draft([])
        self._chosen = max(ready, key=self._worth)
        return self._offered[self._chosen].draft

    def _at_hand(self, output: Sequence[int], room: int, matcher: Matcher, noise: Noise) -> list[Key]:
        """Offers what costs next to nothing, and is known before the choice: what lookup finds, and what the
        grammar spells. The keys of all members."""
        spelled = _Offer((_SPELLED, 0), Draft(matcher.spelled(), origin="looked_up"), [0])
        self._offered = {_SPELLED: spelled} if spelled.draft.tokens else {}
        keys = []
        for index, (drafter, session) in enumerate(self._members):
            key = index, 0
            if drafter.name == _LOOKUP:
                draft = session.propose(output, room, matcher, noise)
                legal, guesses = _walked(draft.tokens, room, matcher)
                key = index, draft.matched.bit_length()
                self._offered[index] = _Offer(key, draft._replace(tokens=draft.tokens[:legal]), guesses)
            keys.append(key)
        return keys

    def _asks(self, index: int, keys: Sequence[Key]) -> bool:
        """Whether to ask a member too, behind those that should do better."""
        offered = [offer.key for offer in self._offered.values() if offer.draft.tokens]
        best = max(offered, key=self._expected, default=None)
        worth = 0.0 if best is None else self._expected(best)
        if not self._coupled or not self._members[index][0].taps:
            return best is None or worth < self._expected(keys[index])
        situation = index, best, max(match for _, match in keys)
        if self._timed and not self._learned.asking.pays(situation, worth):
            return False
        self._asked[index] = situation
        return True

    def _resume(
        self, output: Sequence[int], room: int, matcher: Matcher, noise: Noise, drafted: int
    ) -> Draft:
        """Goes on behind a draft: with its own drafter, else with any that can."""
        for index in (max(self._chosen, 0), *range(len(self._members))):
            drafter, session = self._members[index]
            draft = session.propose(output, room, matcher, noise, drafted) if drafter.resumes else Draft([])
            if draft.tokens:
                if self._chosen in (index, _SPELLED) and self._chosen in self._offered:
                    key, first, guesses = self._offered[self._chosen]
                    before = output[self._offered_at :]
                    more = [len(before) + place for place in _walked(draft.tokens, room, matcher)[1]]
                    longer = first._replace(tokens=[*before, *draft.tokens])
                    self._offered[self._chosen] = _Offer(key, longer, guesses + more)
                return draft
        return Draft([])

    def _expected(self, key: Key) -> float:
        """Guesses that should stand, by past rounds."""
        credit = self._credit.get(key, _CREDIT)
        forgotten = self._round - self._last.get(key, self._round) >= _AGAIN
        return max(credit, _CREDIT) if forgotten else credit

    def _worth(self, index: int) -> float:
        """Guesses of a member that should stand, by its own word where that counts."""
        key, draft, _ = self._offered[index]
        if index not in self._asked or draft.expected is None:
            return self._expected(key)
        stood, expected = self._trusted(index)
        return draft.expected * stood / expected

    def _trusted(self, index: int) -> tuple[float, float]:
        return self._learned.trust.get(self._asked[index], (1.0, 1.0))

    def _learn(self, came: Sequence[int]) -> None:
        """Credits what was offered with how far it agrees with what came out."""
        stood: dict[int, int] = {}
        for index, offer in self._offered.items():
            stood[index], whole = offer.stood(came)
            if not offer.draft.tokens:
                continue
            new, key = stood[index], offer.key
            self._credit[key] = mixed(self._credit.get(key, float(new)), new)
            self._last[key] = self._round
            if index in self._asked and offer.draft.expected is not None:
                was, expected = self._trusted(index)
                # Where all of it stood, the text came no further than it is known.
                seen = min(offer.draft.expected, new) if whole else offer.draft.expected
                self._learned.trust[self._asked[index]] = mixed(was, new), max(mixed(expected, seen), 1e-3)
        self._price(stood)
        self._offered, self._asked = {}, {}

    def _price(self, stood: Mapping[int, int]) -> None:
        """Notes what asking gained over what was at hand, and the seconds that it took."""
        scored, self._scored = self._stats.score_s - self._scored, self._stats.score_s
        others = max((n for index, n in stood.items() if index not in self._asked), default=0)
        for situation in self._asked.values():
            self._learned.asking.gained(situation, stood.get(self._chosen, 0) - others)
            if self._has_asked:  # at first it reads the whole prompt, as the target's first forward does
                self._learned.asking.took(self._took, scored)
            self._has_asked = True


def _walked(tokens: Sequence[int], room: int, matcher: Matcher) -> tuple[int, list[int]]:
    """How much of a draft is legal and within `room` guesses, and the places of these."""
    path = matcher.fork()
    guesses: list[int] = []
    for place, token in enumerate(tokens):
        try:
            chosen = not path.forced()
        except (CompileLimitError, DeadEndError):
            return place, guesses  # the round tells it if the text really comes here
        if (chosen and len(guesses) == room) or not path.follow([token]):
            return place, guesses
        if chosen:
            guesses.append(place)
    return len(tokens), guesses
