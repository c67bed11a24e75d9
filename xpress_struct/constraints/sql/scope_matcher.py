"""Names in their scope: what a context-free grammar cannot say about an SQL statement.

The statement is read beside the grammar, byte by byte, and a token is not legal where no statement that
SQLite takes goes on with it. The reader knows less than SQLite. Where it and the grammar together leave no
token, the grammar alone decides from there on.
"""

from __future__ import annotations

import numpy as np
from llguidance import LLMatcher

from xpress_struct.constraints.matcher import GrammarMatcher
from xpress_struct.constraints.sql.clauses import limits_numbers
from xpress_struct.constraints.sql.ending import ending
from xpress_struct.constraints.sql.expected import expected, prefixes
from xpress_struct.constraints.sql.reading import (
    BETWEEN,
    QUOTED,
    START,
    STRING,
    UNKNOWN_PLACE,
    WORD,
    Place,
    ends,
    follow,
    settled,
)
from xpress_struct.constraints.sql.scope import Names
from xpress_struct.constraints.sql.spellings import spellings
from xpress_struct.constraints.vocabulary import Vocabulary

__all__ = ["ScopeMatcher"]


class ScopeMatcher(GrammarMatcher):
    """A matcher of SQL over the names of one database."""

    def __init__(self, names: Names, engine: LLMatcher, vocabulary: Vocabulary) -> None:
        super().__init__(engine, vocabulary)
        self._names = names
        self._spellings = spellings(vocabulary)
        self._places = [START]
        self._masked: tuple[np.ndarray, bool] | None = None

    @property
    def accepting(self) -> bool:
        if not super().accepting:
            return False
        return self._ended or ends(self._names, self._places[-1]) or self._allowed()[1]

    def legal(self, token: int) -> bool:
        return super().legal(token) and (self._behind(token) is not None or self._allowed()[1])

    def mask(self) -> np.ndarray:
        return self._allowed()[0].copy()

    def ending(self) -> bytes | None:
        return ending(self._names, self._places[-1])

    def _allowed(self) -> tuple[np.ndarray, bool]:
        """The mask, and whether the reader would leave nothing of it, so that the grammar's own stands."""
        if self._masked is None:
            packed = super().mask()
            bits = np.unpackbits(packed, bitorder="little")[: len(self._vocabulary.tokens)].astype(bool)
            kept = bits & self._may_come(bits)
            stuck = not kept.any()
            self._masked = (packed if stuck else np.packbits(kept, bitorder="little")), stuck
        return self._masked

    def _may_come(self, legal: np.ndarray) -> np.ndarray:
        """Which of the tokens that the grammar allows the reader allows too, bool [n]."""
        place, known = self._places[-1], self._spellings
        allowed = np.zeros_like(legal)
        if place.frames == UNKNOWN_PLACE.frames:
            return legal
        if legal[known.silent].any() and ends(self._names, place):
            allowed |= known.silent
        if place.mode in (STRING, QUOTED):
            allowed |= self._in_quotes(legal, place)
            return allowed
        if place.mode == WORD or place.mode == BETWEEN:
            allowed |= self._words(legal & known.plain, place, False)
        else:
            allowed |= self._each(legal & known.plain)
        if follow(self._names, place, b" ") is not None:
            allowed |= self._behind_blank(legal & known.behind_blank, place)
        allowed |= self._each(legal & known.rest)
        return allowed

    def _behind_blank(self, legal: np.ndarray, place: Place) -> np.ndarray:
        next_word = settled(self._names, place)
        if next_word is None or next_word.frames == UNKNOWN_PLACE.frames:
            return self._each(legal)
        return self._words(legal, next_word, True)

    def _words(self, legal: np.ndarray, place: Place, behind_blank: bool) -> np.ndarray:
        """Tokens, of those given, that go on with a word or begin one, behind a blank."""
        known, start = self._spellings, place.text if place.mode == WORD else b""
        may = expected(self._names, place.frames)
        allowed = np.zeros_like(legal)
        if may.free:
            allowed |= legal
            barred = {
                word[len(start) :] for word in may.barred - prefixes(may.words) if word.startswith(start)
            }
            allowed[known.spelled(barred, behind_blank)] = False
        else:
            allowed[known.beginnings(may.words, start, behind_blank)] = True
            if may.aliases:
                allowed |= self._each(legal & ~allowed)
        if behind_blank:
            allowed[known.spelled([b""], True)] = True
        if not start:
            numbers = legal & known.numbers
            allowed &= ~numbers
            if limits_numbers(place.frames):
                allowed |= self._each(numbers)
            elif place.frames[-1].want in ("operand", "free"):
                allowed |= numbers
        return allowed

    def _in_quotes(self, legal: np.ndarray, place: Place) -> np.ndarray:
        if place.mode == QUOTED and place.frames[-1].want in ("source", "column", "qualified"):
            return self._each(legal)
        closing = self._spellings.having(b"'" if place.mode == STRING else b'"')
        allowed = self._each(legal & closing)
        allowed |= legal & ~closing
        return allowed

    def _each(self, legal: np.ndarray) -> np.ndarray:
        """Asks the reader token by token, once for those that say the same."""
        place, allowed = self._places[-1], np.zeros_like(legal)
        outside = self._spellings.outside if place.mode not in (STRING, QUOTED) else self._vocabulary.tokens
        answers: dict[bytes, bool] = {}
        for token in np.flatnonzero(legal).tolist():
            text = outside[token]
            answer = answers.get(text)
            if answer is None:
                answer = answers[text] = follow(self._names, place, text) is not None
            allowed[token] = answer
        return allowed

    def _consume(self, token: int) -> None:
        place = self._behind(token)
        super()._consume(token)
        self._places.append(UNKNOWN_PLACE if place is None else place)
        self._masked = None

    def rollback(self, count: int) -> None:
        super().rollback(count)
        if count:
            del self._places[-count:]
            self._masked = None

    def fork(self) -> ScopeMatcher:
        twin = ScopeMatcher(self._names, self._engine.deep_copy(), self._vocabulary)
        self._copy_to(twin)
        twin._places, twin._masked = list(self._places), self._masked
        return twin

    def consume_text(self, text: str) -> int:
        place = self._places[-1]
        for read, character in enumerate(text):
            further = follow(self._names, place, character.encode())
            if further is None:
                return read
            place = further
        fits = super().consume_text(text)
        if fits == len(text):
            self._places, self._masked = [place], None
        return fits

    def _behind(self, token: int) -> Place | None:
        """The place behind a token, which may end the statement."""
        place = self._places[-1]
        if self._spellings.silent[token]:
            return place if ends(self._names, place) else None
        return follow(self._names, place, self._vocabulary.tokens[token])
