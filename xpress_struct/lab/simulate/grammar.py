"""A grammar for simulated tokens: the mask is a function of the place and the token to the left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["Masks", "TableMatcher"]


class Masks:
    """The mask of every context.

    Args:
        packed: uint8 [P, V or 1, ceil(V/8)], by kind of place and token to the left, lowest bit first; each
            leaves at least one token. One row alone holds for all of them.
    """

    def __init__(self, packed: np.ndarray) -> None:
        self._packed = packed
        bits = np.unpackbits(packed, axis=-1, bitorder="little")
        self._only = np.where(bits.sum(-1) == 1, bits.argmax(-1), -1)

    def packed(self, place: int, left: int) -> np.ndarray:
        """The packed mask in front of a place."""
        kinds, lefts, _ = self._packed.shape
        return np.asarray(self._packed[place % kinds, left % lefts])

    def only(self, place: int, left: int) -> int | None:
        """The token that is legal as the only one, or None."""
        kinds, lefts = self._only.shape
        token = int(self._only[place % kinds, left % lefts])
        return None if token < 0 else token


class TableMatcher:
    """A `Matcher` over masks; its text never ends.

    Args:
        masks: of every context.
        place: of the next token.
        left: the token in front of it.
    """

    ended = ended_silently = complete = False
    accepting = True

    def __init__(self, masks: Masks, place: int, left: int) -> None:
        self._masks, self._first, self._tokens = masks, place, [left]

    def forced(self) -> list[int]:
        token = self._masks.only(self._place, self._tokens[-1])
        return [] if token is None else [token]

    spelled = forced

    def ending(self) -> bytes | None:
        return None

    def legal(self, token: int) -> bool:
        return bool(self.mask()[token >> 3] >> (token & 7) & 1)

    def mask(self) -> np.ndarray:
        return self._masks.packed(self._place, self._tokens[-1])

    def follow(self, draft: Sequence[int]) -> int:
        for step, token in enumerate(draft):
            if not self.legal(token):
                return step
            self._tokens.append(token)
        return len(draft)

    def commit(self, tokens: Sequence[int]) -> None:
        if self.follow(tokens) < len(tokens):
            raise RuntimeError(f"one of {list(tokens)} is not legal")

    def rollback(self, count: int) -> None:
        del self._tokens[len(self._tokens) - count :]

    def fork(self) -> TableMatcher:
        twin = TableMatcher(self._masks, self._first, self._tokens[0])
        twin._tokens = list(self._tokens)
        return twin

    @property
    def _place(self) -> int:
        return self._first + len(self._tokens) - 1
