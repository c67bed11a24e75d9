"""Path: the way of one block's tokens through the grammar, walked again after each pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.errors import CompileLimitError, DeadEndError

__all__ = ["Path"]


class _Slot(NamedTuple):
    closed: bool
    forced: int | None


_CLOSED = _Slot(True, None)
_STUCK = (CompileLimitError, DeadEndError)


class Path:
    """Follows the tokens of a block on a fork; slot k stands behind the first k of them.

    What was asked is kept as long as the tokens in front of it stay the same, so that a pass that changes
    little asks little. A question about an earlier slot forgets the tokens from there on.

    Args:
        matcher: in front of slot 0; it is read and never moved.
        room: slots at most that the grammar leaves open; the next one is closed. None has no bound.

    Attributes:
        tokens: those taken so far; all are legal.
    """

    def __init__(self, matcher: Matcher, room: int | None = None) -> None:
        self._origin, self._room = matcher, room
        self._matcher: Matcher | None = matcher.fork()
        self._slots: list[_Slot] = []
        self._masks: dict[tuple[int, ...], np.ndarray] = {}
        self.tokens: list[int] = []

    def closed(self, slot: int) -> bool:
        """True when no token can stand there: the text has ended, the grammar is at a dead end, or the
        room is used up."""
        return self._look(slot).closed

    def forced(self, slot: int) -> int | None:
        """The only legal token, where the grammar names it."""
        return self._look(slot).forced

    def legal(self, slot: int, token: int) -> bool:
        """Whether a token may stand there. Cheaper than a mask."""
        if slot < len(self.tokens) and self.tokens[slot] == token:
            return True
        if self.closed(slot):
            return False
        packed = self._known_mask(self.tokens[:slot])
        if packed is not None:
            return token >> 3 < len(packed) and bool(packed[token >> 3] >> (token & 7) & 1)
        return self._at(slot).legal(token)

    def mask(self, slot: int) -> np.ndarray | None:
        """Packed mask of a slot; None when it turns out to be a dead end."""
        packed = self._known_mask(self.tokens[:slot])
        if packed is None and not self.closed(slot):
            try:
                packed = self._at(slot).mask()
                self._masks[tuple(self.tokens)] = packed
            except _STUCK:
                self._close()
        return packed

    def known_masks(self, tokens: Sequence[int], start: int) -> dict[int, np.ndarray]:
        """The masks along some tokens, from a slot on, as far as they were asked for."""
        behind = {slot: self._known_mask(tokens[:slot]) for slot in range(start, len(tokens))}
        return {slot: packed for slot, packed in behind.items() if packed is not None}

    def masks(self) -> list[np.ndarray | None]:
        """The packed masks of all slots that are taken, None where the token is forced."""
        tokens, found = list(self.tokens), []
        for slot, token in enumerate(tokens):
            found.append(None if self.forced(slot) is not None else self.mask(slot))
            self.take(slot, token)
        return found

    def take(self, slot: int, token: int) -> None:
        """Puts a legal token there; the tokens behind it are kept when it was there before."""
        if slot < len(self.tokens) and self.tokens[slot] == token:
            return
        self._at(slot).commit([token])
        self.tokens.append(token)

    def cut(self, slot: int) -> None:
        """Forgets the tokens from a slot on."""
        if slot < len(self.tokens):
            self._at(slot)

    def _look(self, slot: int) -> _Slot:
        if slot == len(self._slots):
            matcher = self._at(slot)
            try:
                forced = matcher.forced()
                full = not forced and self._is_full
                self._slots.append(_Slot(matcher.ended or full, forced[0] if forced else None))
            except _STUCK:
                # The round tells it if the text really comes here.
                self._slots.append(_CLOSED)
                self._close()
        return self._slots[slot]

    @property
    def _is_full(self) -> bool:
        return self._room is not None and sum(slot.forced is None for slot in self._slots) >= self._room

    def _known_mask(self, before: Sequence[int]) -> np.ndarray | None:
        return self._masks.get(tuple(before)) if self._masks else None

    def _at(self, slot: int) -> Matcher:
        """The matcher in front of a slot; what stood behind is forgotten."""
        if self._matcher is None:
            self._matcher = self._origin.fork()
            self._matcher.commit(self.tokens[:slot])
        else:
            self._matcher.rollback(len(self.tokens) - slot)
        del self.tokens[slot:], self._slots[slot + 1 :]
        return self._matcher

    def _close(self) -> None:
        """Closes the slot behind the tokens. A matcher that met a dead end is of no use any more."""
        self._slots[len(self.tokens)] = _CLOSED
        self._matcher = None
