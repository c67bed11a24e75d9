"""IndexMatcher: a place in an index of outlines_core, a finite automaton over token ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.integrations.outlines.engine_matcher import EngineMatcher

__all__ = ["IndexMatcher", "IndexTable"]

# Where more tokens are legal, the next byte is hardly ever determined.
_FEW = 64
# Bytes that are spelled out ahead, at most.
_LONGEST_RUN = 64


class IndexTable:
    """What is read from an index, kept by state for all requests.

    Args:
        index: an `outlines_core.Index`.
    """

    def __init__(self, index: Any, vocabulary: Vocabulary) -> None:
        self.index, self.vocabulary = index, vocabulary
        self.start: int = index.get_initial_state()
        final = next(iter(index.get_final_states()))
        # The index ends the text with a token that leads nowhere.
        self.stops = {t for t in index.get_allowed_tokens(final) if index.get_next_state(final, t) is None}
        self._masks: dict[int, np.ndarray] = {}
        self._bytes: dict[int, bytes] = {}

    def mask(self, state: int) -> np.ndarray:
        """Packed mask of a state."""
        if state not in self._masks:
            size = len(self.vocabulary.tokens)
            bits = np.zeros(size, dtype=np.uint8)
            bits[[token for token in self._allowed(state) if token < size]] = 1
            self._masks[state] = np.packbits(bits, bitorder="little")
        return self._masks[state]

    def next_bytes(self, state: int) -> bytes:
        """Bytes that must come behind a state."""
        if state not in self._bytes:
            found, place = b"", state
            while len(found) < _LONGEST_RUN and (token := self._longest(place)) is not None:
                found += self.vocabulary.tokens[token]
                place = self.index.get_next_state(place, token)
            self._bytes[state] = found
        return self._bytes[state]

    def _longest(self, state: int) -> int | None:
        """The longest legal token where each of the others is a beginning of it."""
        allowed = self._allowed(state)
        if len(allowed) > _FEW or self.stops & {*allowed}:
            return None
        spelled = self.vocabulary.tokens
        longest = max(allowed, key=lambda token: len(spelled[token]), default=None)
        if longest is None or not spelled[longest]:
            return None
        chain = all(spelled[longest].startswith(spelled[token]) for token in allowed)
        return longest if chain else None

    def _allowed(self, state: int) -> list[int]:
        return self.index.get_allowed_tokens(state) or []


class IndexMatcher(EngineMatcher):
    """Matcher over an `outlines_core.Index`."""

    def __init__(self, table: IndexTable) -> None:
        super().__init__(table.vocabulary)
        self._table = table
        self._states = [table.start]

    def _read_mask(self) -> np.ndarray:
        return self._table.mask(self._states[-1])

    def _accepts(self) -> bool:
        return bool(self._table.index.is_final_state(self._states[-1]))

    def _is_stop(self, token: int) -> bool:
        return token in self._table.stops

    def _advance(self, token: int) -> bool:
        state = self._table.index.get_next_state(self._states[-1], token)
        if state is not None:
            self._states.append(state)
        return state is not None

    def _back(self, count: int) -> None:
        del self._states[len(self._states) - count :]

    def _next_bytes(self) -> bytes:
        return self._table.next_bytes(self._states[-1])

    def _twin(self) -> IndexMatcher:
        twin = IndexMatcher(self._table)
        twin._states = list(self._states)
        return twin
