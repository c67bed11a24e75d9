"""Closing a text by always taking the legal token that closes most: long values and many keys of JSON."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import XPressError

__all__ = ["greedy_closing"]

_STRUCTURAL = frozenset(b'"}]),: \n0123456789')


def greedy_closing(matcher: Matcher, vocabulary: Vocabulary, most: int) -> list[int] | None:
    """At most `most` tokens that make the text whole from here, [] when it is; None when none are found.

    Greedy: forced runs, else the legal token that closes most. Not always the shortest way.
    """
    path, tokens = matcher.fork(), list[int]()
    ranks = _ranks(vocabulary)
    try:
        while not path.accepting:
            run = path.forced() or [ranks.best(path.mask())]
            tokens += run
            if len(tokens) > most:
                return None
            path.commit(run)
    except XPressError:  # a dead end on this way
        return None
    return tokens


class _Ranks:
    """How much each token closes, outside and inside of free text.

    Inside a string a bracket is only text. Where some bare letter that begins no JSON literal is legal,
    the place is inside.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        tokens = vocabulary.tokens
        self._letters = np.array(
            [i for i, t in enumerate(tokens) if t in (b"q", b"Q", b"z", b"Z")], dtype=int
        )
        self._outside = np.array([_outside(token) for token in tokens])
        self._inside = np.array([_inside(token) for token in tokens])

    def best(self, mask: np.ndarray) -> int:
        """The legal token that closes most."""
        bits = np.unpackbits(mask, bitorder="little")[: len(self._outside)].astype(bool)
        ranks = self._inside if bits[self._letters].any() else self._outside
        legal = np.flatnonzero(bits)
        return int(legal[ranks[legal].argmax()])


@lru_cache(maxsize=8)
def _ranks(vocabulary: Vocabulary) -> _Ranks:
    return _Ranks(vocabulary)


def _outside(token: bytes) -> float:
    """Brackets first, then a digit as the shortest value, then quotes; a comma opens something new."""
    if not token or not _STRUCTURAL.issuperset(token):
        return -float(len(token)) - 20
    brackets = sum(token.count(c) for c in b"}])")
    value = 5.0 * token[:1].isdigit() + 4.0 * token.count(b'"')
    return 10.0 * brackets + value - 15.0 * token.count(b",") - 0.1 * len(token)


def _inside(token: bytes) -> float:
    """A quote first, the more brackets behind it the better; else much text, for a least length."""
    if token[:1] == b'"' and _STRUCTURAL.issuperset(token):
        return 100.0 + _outside(token)
    return 0.1 * len(token)
