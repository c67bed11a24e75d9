"""No key twice in one object: what a context-free grammar cannot say about keys that are not declared.

The place in the JSON text is followed beside the grammar, byte by byte, and a token that would finish a key
that its object already has is not legal. Keys are compared as they are spelled; one spelled with another
escape is found by the final check.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from llguidance import LLMatcher

from xpress_struct.constraints.matcher import GrammarMatcher
from xpress_struct.constraints.vocabulary import Vocabulary

__all__ = ["Place", "UniqueKeysMatcher"]

_QUOTE, _BACKSLASH, _COMMA, _COLON = b'"\\,:'
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = b"{}[]"


class _Frame(NamedTuple):
    """An open container: its keys so far (None for an array), and whether a string in it is a key."""

    keys: frozenset[bytes] | None
    at_key: bool


class Place(NamedTuple):
    """Where a JSON text stands. `string` is the content of the open string, or None outside."""

    frames: tuple[_Frame, ...] = ()
    string: bytes | None = None
    escaped: bool = False

    @property
    def key(self) -> bytes | None:
        """The open key's content, or None."""
        return self.string if self.frames and self.frames[-1].at_key else None


def _follow(place: Place, text: bytes) -> Place | None:
    """The place behind some bytes of legal JSON; None when they finish a key for the second time."""
    frames, string, escaped = place
    for byte in text:
        top = frames[-1] if frames else None
        if string is not None:
            if escaped or byte != _QUOTE:
                string += bytes([byte])
                escaped = not escaped and byte == _BACKSLASH
                continue
            if top is not None and top.at_key and top.keys is not None:
                if string in top.keys:
                    return None
                frames = (*frames[:-1], _Frame(top.keys | {string}, True))
            string = None
        elif byte == _QUOTE:
            string = b""
        elif byte == _OPEN_OBJECT:
            frames = (*frames, _Frame(frozenset(), True))
        elif byte == _OPEN_ARRAY:
            frames = (*frames, _Frame(None, False))
        elif byte in (_CLOSE_OBJECT, _CLOSE_ARRAY):
            frames = frames[:-1]
        elif top is not None and top.keys is not None and byte in (_COLON, _COMMA):
            frames = (*frames[:-1], _Frame(top.keys, byte == _COMMA))
    return Place(frames, string, escaped)


class UniqueKeysMatcher(GrammarMatcher):
    """A matcher for JSON whose objects may have keys that are not declared."""

    def __init__(self, engine: LLMatcher, vocabulary: Vocabulary) -> None:
        super().__init__(engine, vocabulary)
        self._places = [Place()]

    def legal(self, token: int) -> bool:
        return super().legal(token) and self._behind(token) is not None

    def mask(self) -> np.ndarray:
        packed = super().mask()
        index = _index(self._vocabulary)
        for token in index.repeating(self._places[-1]):
            if packed[token >> 3] >> (token & 7) & 1 and self._behind(token) is None:
                packed[token >> 3] &= ~(1 << (token & 7)) & 255
        if not packed.any():
            self._raise_dead_end()
        return packed

    def _consume(self, token: int) -> None:
        place = self._behind(token)
        assert place is not None  # it is legal
        super()._consume(token)
        self._places.append(place)

    def rollback(self, count: int) -> None:
        super().rollback(count)
        if count:
            del self._places[-count:]

    def fork(self) -> UniqueKeysMatcher:
        twin = type(self)(self._engine.deep_copy(), self._vocabulary)
        self._copy_to(twin)
        twin._places = list(self._places)
        return twin

    def consume_text(self, text: str) -> int:
        place = self._after(text.encode())
        if place is None:
            return 0
        fits = super().consume_text(text)
        if fits == len(text):
            self._places = [place]
        return fits

    def _behind(self, token: int) -> Place | None:
        return self._after(self._vocabulary.tokens[token])

    def _after(self, spelled: bytes) -> Place | None:
        """The place behind more bytes; None when they repeat a key."""
        return _follow(self._places[-1], spelled)


class _Index:
    """Finds the tokens of a vocabulary that could finish a given key."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._sorted = sorted((token, i) for i, token in enumerate(vocabulary.tokens) if b'"' in token)
        # These can open and finish a key at once.
        self._spanning = [i for token, i in self._sorted if token.count(b'"') > 1]

    def repeating(self, place: Place) -> list[int]:
        """Tokens that may finish a key which the innermost object has."""
        found = list(self._spanning) if any(frame.keys for frame in place.frames) else []
        key = place.key
        if key is not None:
            for used in place.frames[-1].keys or ():
                if used.startswith(key):
                    found += self._starting_with(used[len(key) :] + b'"')
        return found

    def _starting_with(self, start: bytes) -> list[int]:
        first = bisect_left(self._sorted, (start, -1))
        found = []
        for token, i in self._sorted[first:]:
            if not token.startswith(start):
                break
            found.append(i)
        return found


@lru_cache(maxsize=8)
def _index(vocabulary: Vocabulary) -> _Index:
    return _Index(vocabulary)
