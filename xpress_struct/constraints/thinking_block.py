"""Thinking block: where the thoughts of an answer end, token by token.

Behind the prompt stands `thoughts END-MARKER \\n{0,2} answer`. Where the vocabulary has the end marker as a
special token, that token alone ends the block. Elsewhere the marker is text: the block ends where its bytes
stand for the first time, however they are cut into tokens, and the rest of a token that holds more is the
answer's.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import ArgumentError

__all__ = ["Place", "ThinkingBlock", "thinking_block"]

# Models write an empty line behind the block. It is neither thought nor answer.
_MOST_NEWLINES = 2
_NEWLINE = b"\n"


class Place(NamedTuple):
    """Where an output stands: behind `matched` bytes of the end marker, behind `gap` newlines that follow
    it, or in the answer."""

    matched: int = 0
    gap: int | None = None
    answering: bool = False

    @property
    def inside(self) -> bool:
        """True in the block."""
        return self.gap is None and not self.answering


_ANSWER = Place(answering=True)


class Step(NamedTuple):
    """What a token does: the place behind it, and its bytes as thought and as answer."""

    place: Place
    thought: bytes = b""
    answer: bytes = b""


class ThinkingBlock:
    """A block that ends with one marker in one vocabulary. Immutable, shared by threads.

    Args:
        marker: text, or the name of a special token.

    Attributes:
        newline_tokens: those that begin with a newline.

    Raises:
        ArgumentError: the vocabulary cannot spell the marker.
    """

    def __init__(self, vocabulary: Vocabulary, marker: str) -> None:
        self.vocabulary = vocabulary
        self._marker = marker.encode()
        self._special = vocabulary.special_id(marker)
        self._closers: dict[int, list[tuple[int, bytes]]] = {}
        self.newline_tokens = frozenset(
            i
            for i, token in enumerate(vocabulary.tokens)
            if token.startswith(_NEWLINE) and i not in vocabulary.end_ids
        )
        # Without a newline to wait for, the answer begins at the marker, and what it forces is free.
        self._most_newlines = _MOST_NEWLINES if self.newline_tokens else 0
        if not self.closing(0):
            raise ArgumentError(f"The tokens of this model cannot spell the marker {marker!r}.")

    def read(self, place: Place, token: int) -> Step:
        """What a token does at a place."""
        spelled = self.vocabulary.tokens[token]
        if place.inside:
            if token == self._special:
                return self._behind_newlines(0, b"")
            return Step(place, spelled) if self._special is not None else self._in_block(place, spelled)
        if place.gap is None or token not in self.newline_tokens:
            return Step(_ANSWER, answer=spelled)
        return self._behind_newlines(place.gap, spelled)

    def closing(self, matched: int) -> list[int]:
        """Tokens that end the block where so many bytes of the marker stand; [] when none are known."""
        if self._special is not None:
            return [self._special]
        for text in (self._marker[matched:], self._marker):
            tokens, place, rest = self.vocabulary.encode_bytes(text), Place(matched), b""
            for token in tokens:
                place, _, rest = self.read(place, token)
            if self.vocabulary.decode(tokens) == text and not place.inside and not rest:
                return tokens
        return []

    def closers(self, matched: int) -> list[tuple[int, bytes]]:
        """Tokens that complete the marker and hold more, with the bytes of the answer."""
        if matched not in self._closers:
            read = ((token, self.read(Place(matched), token)) for token in self._with_last_byte)
            self._closers[matched] = [(token, step.answer) for token, step in read if step.answer]
        return self._closers[matched]

    @cached_property
    def thoughts(self) -> np.ndarray:
        """Packed mask of all tokens but those that end a text."""
        bits = np.ones(len(self.vocabulary.tokens), dtype=np.uint8)
        bits[list(self.vocabulary.end_ids)] = 0
        return np.packbits(bits, bitorder="little")

    @cached_property
    def _with_last_byte(self) -> list[int]:
        if self._special is not None:
            return []
        last = self._marker[-1:]
        return [i for i, token in enumerate(self.vocabulary.tokens) if last in token]

    def _in_block(self, place: Place, spelled: bytes) -> Step:
        marker = self._marker
        text = marker[: place.matched] + spelled
        before, found, rest = text.partition(marker)
        if found:
            return self._behind_newlines(0, rest)._replace(thought=before)
        matched = next(k for k in range(len(marker) - 1, -1, -1) if text.endswith(marker[:k]))
        return Step(Place(matched), text[: len(text) - matched])

    def _behind_newlines(self, gap: int, text: bytes) -> Step:
        while gap < self._most_newlines and text.startswith(_NEWLINE):
            gap, text = gap + 1, text[1:]
        return Step(_ANSWER if text or gap == self._most_newlines else Place(gap=gap), answer=text)


@lru_cache(maxsize=8)
def thinking_block(vocabulary: Vocabulary, marker: str) -> ThinkingBlock:
    """The block of a vocabulary and its end marker."""
    return ThinkingBlock(vocabulary, marker)
