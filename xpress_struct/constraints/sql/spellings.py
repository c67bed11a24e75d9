"""The tokens of a vocabulary by what they spell: words, words behind blanks, and the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from xpress_struct.constraints.vocabulary import Vocabulary

__all__ = ["Spellings", "spellings"]

_BLANK_WORD = re.compile(rb"([ \t\n\r]*)([A-Za-z0-9_]*)")


class Spellings:
    """Attributes, where a selection is bool [n] over the n ids:

    plain: words; behind_blank: blanks, and words behind them; rest: other text, signs in it; silent: no text.
    numbers: those of the words that begin with a digit.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        tokens = vocabulary.tokens
        size = len(tokens)
        self.plain, self.behind_blank, self.rest, self.silent = (np.zeros(size, dtype=bool) for _ in range(4))
        self.numbers = np.zeros(size, dtype=bool)
        self._words: tuple[dict[bytes, list[int]], dict[bytes, list[int]]] = ({}, {})
        for i, token in enumerate(tokens):
            found = _BLANK_WORD.fullmatch(token)
            if not token or i in vocabulary.special_ids or i in vocabulary.end_ids:
                self.silent[i] = True
            elif found:
                behind = bool(found[1])
                (self.behind_blank if behind else self.plain)[i] = True
                self._words[behind].setdefault(found[2].lower(), []).append(i)
                self.numbers[i] = found[2][:1].isdigit()
            else:
                self.rest[i] = True
        self._having = {quote: _selection(size, tokens, quote) for quote in (b"'", b'"')}
        self.outside = [_until_open(token) for token in tokens]
        self._beginnings = lru_cache(maxsize=1024)(self._find_beginnings)

    def having(self, quote: bytes) -> np.ndarray:
        """Tokens with such a quote in them."""
        return self._having[quote]

    def beginnings(self, words: frozenset[bytes], start: bytes, behind_blank: bool) -> np.ndarray:
        """Ids of the tokens that go on with a word behind what was begun of it."""
        return self._beginnings(words, start, behind_blank)

    def spelled(self, words: Iterable[bytes], behind_blank: bool) -> np.ndarray:
        """Ids of the tokens that spell one of the words."""
        table = self._words[behind_blank]
        return np.array([i for word in words for i in table.get(word, ())], dtype=np.intp)

    def _find_beginnings(self, words: frozenset[bytes], start: bytes, behind_blank: bool) -> np.ndarray:
        rests = {word[len(start) :] for word in words if word.startswith(start)}
        least = 0 if behind_blank else 1
        pieces = {rest[:length] for rest in rests for length in range(least, len(rest) + 1)}
        return self.spelled(pieces, behind_blank)


def _selection(size: int, tokens: tuple[bytes, ...], quote: bytes) -> np.ndarray:
    return np.fromiter((quote in token for token in tokens), dtype=bool, count=size)


def _until_open(token: bytes) -> bytes:
    """The token, folded, without the text behind a quote that it opens and does not close.

    Outside of quotes tokens of the same beginning can come at the same places.
    """
    folded = token.lower()
    opened, at = 0, -1
    for place, byte in enumerate(folded):
        if opened:
            if byte == opened:
                opened = 0
        elif byte in b"'\"":
            opened, at = byte, place
    return folded[: at + 1] if opened else folded


@lru_cache(maxsize=8)
def spellings(vocabulary: Vocabulary) -> Spellings:
    """The spellings of a vocabulary, made once."""
    return Spellings(vocabulary)
