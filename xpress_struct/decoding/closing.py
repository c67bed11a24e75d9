"""Closing a text before its token budget ends, so that it is whole although the model would go on.

Near the end of the budget (the last `reserve` tokens) a token is emitted only if the text can still be
closed behind it; where it cannot, the text is closed at once. Which tokens close a text is a function of
the place and the text before it alone, so drafts change nothing here either.

A constraint may know an end itself. Otherwise the way is searched byte by byte, best first, over forks of
the matcher (`closing_steps` says what each byte costs), and bounded by a number of places looked at, so that
it depends on no clock. What is found is spelled in longer tokens where these are legal. Where the search
finds none, a greedy way is tried.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.decoding.closing_greedy import greedy_closing
from xpress_struct.decoding.closing_steps import Step, steps
from xpress_struct.errors import XPressError

__all__ = ["closing_tokens", "reserve"]

_MOST_RESERVED = 64
# Places looked at in one search. Nearly all that closes at all does so within a quarter of them.
_MOST_PLACES = 400
# Bytes of text per token that it may be spelled in: what has more is not followed.
_BYTES_PER_TOKEN = 4
# What a choice costs more that was there before.
_REPEATED = 12


def reserve(budget: int) -> int:
    """How many tokens at the end of a budget are kept for closing."""
    return min(_MOST_RESERVED, max(budget // 2, 1))


def closing_tokens(
    matcher: Matcher, vocabulary: Vocabulary, most: int, written: bytes = b""
) -> list[int] | None:
    """At most `most` tokens that make the text whole from here, [] when it is; None when none are found.

    Few bytes, but not always the fewest.

    Args:
        written: the text so far, or its end: where the place is within a line or a word.
    """
    found = _guessed(matcher, vocabulary, most)
    if found is None:
        found = _searched(matcher, vocabulary, most, written)
    return greedy_closing(matcher, vocabulary, most) if found is None else found


def _searched(matcher: Matcher, vocabulary: Vocabulary, most: int, written: bytes) -> list[int] | None:
    # (cost, order, place, step to take from there). Of equals, what came last goes first: deeper.
    waiting: list[tuple[int, int, _Place, Step | None]] = [(0, 0, _Place(matcher.fork()), None)]
    pushed = 0
    for _ in range(_MOST_PLACES):
        if not waiting:
            break
        cost, _, place, step = heapq.heappop(waiting)
        dearer = step is not None and step.deferred
        try:
            if not dearer:
                place = place.behind(step)
                if place.path.accepting:
                    tokens = _spelled(matcher.fork(), vocabulary, place.tokens)
                    if len(tokens) <= most:
                        return tokens
                    continue
            if len(place.tokens) >= _BYTES_PER_TOKEN * most:
                continue
            text = written + vocabulary.decode(place.tokens)
            following = steps(place.path, vocabulary, text, dearer)
        except XPressError:  # a dead end on this way
            continue
        repeated = place.repeated(following)
        for each in reversed(following):
            pushed += 1
            repeats = _REPEATED * (each.token in repeated)
            heapq.heappush(waiting, (cost + each.cost + repeats, -pushed, place, each))
    return None


class _Place:
    """A matcher behind some tokens; whoever moves on from it forks it."""

    def __init__(
        self, path: Matcher, tokens: Sequence[int] = (), choices: tuple[frozenset[int], ...] = ()
    ) -> None:
        self.path, self.tokens, self._choices = path, list(tokens), choices

    def repeated(self, following: list[Step]) -> frozenset[int]:
        """What could as well have been done at a like place on the way: `a OR a OR a` closes nothing."""
        choice = frozenset(each.token for each in following if each.loops)
        if len(choice) <= 2:
            return frozenset()
        like = [each for each in self._choices if 2 * len(each & choice) > max(len(each), len(choice))]
        self._choices = (*self._choices, choice)
        return frozenset().union(*like)

    def behind(self, step: Step | None) -> _Place:
        """The place behind a step and what is forced there."""
        path, tokens = self.path.fork(), list(self.tokens)
        run = [step.token] if step else []
        while True:
            for token in run:
                path.commit([token])
                tokens.append(token)
                if path.accepting:
                    return _Place(path, tokens, self._choices)
            run = [] if path.accepting else path.forced()
            if not run:
                return _Place(path, tokens, self._choices)


def _guessed(matcher: Matcher, vocabulary: Vocabulary, most: int) -> list[int] | None:
    """The end that the constraint itself proposes."""
    text = matcher.ending()
    if text is None:
        return None
    try:
        tokens = _along(matcher.fork(), vocabulary, text)
    except XPressError:
        return None
    return tokens if tokens is not None and len(tokens) <= most else None


def _spelled(path: Matcher, vocabulary: Vocabulary, tokens: list[int]) -> list[int]:
    """The same text in longer tokens where they are legal; the tokens themselves where it gets stuck."""
    spelled = _along(path, vocabulary, vocabulary.decode(tokens))
    return tokens if spelled is None or len(spelled) >= len(tokens) else spelled


def _along(path: Matcher, vocabulary: Vocabulary, text: bytes) -> list[int] | None:
    """Tokens of a text that makes the path's whole; None where one of them is not legal."""
    spelled = list[int]()
    while text:
        canonical = vocabulary.encode_bytes(text)[:1]
        token = (path.forced() or canonical)[0]
        if not path.legal(token) or not text.startswith(vocabulary.tokens[token]):
            return None
        path.commit([token])
        spelled.append(token)
        text = text[len(vocabulary.tokens[token]) :]
    return spelled if path.accepting else None
