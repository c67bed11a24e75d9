"""EngineMatcher: a place in a constraint of another grammar engine, whose masks are taken as they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from xpress_struct.constraints.matcher import dead_end
from xpress_struct.constraints.vocabulary import Vocabulary

__all__ = ["EngineMatcher"]

M = TypeVar("M", bound="EngineMatcher")


class EngineMatcher(ABC):
    """Matcher over an engine that can go back. The engine never sees the token that ends the text.

    Nothing is forced but where the engine's mask holds one token, so greedy ids are those of plain decoding
    under the engine's masks.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._tokens: list[int] = []
        self._ended = self._silent = False
        self._mask: np.ndarray | None = None

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def ended_silently(self) -> bool:
        return self._silent

    @property
    def accepting(self) -> bool:
        return self._silent or self._accepts()

    @property
    def complete(self) -> bool:
        if self._ended:
            return True
        forced = self.forced()
        return bool(forced) and self._is_stop(forced[0])

    def forced(self) -> list[int]:
        if self._ended:
            return []
        places = np.flatnonzero(self._packed())
        if len(places) != 1:
            return []
        byte = int(self._packed()[places[0]])
        return [] if byte & (byte - 1) else [int(places[0]) * 8 + byte.bit_length() - 1]

    def spelled(self) -> list[int]:
        if self._ended:
            return []
        return self.forced() or self._vocabulary.encode_bytes(self._next_bytes())

    def ending(self) -> bytes | None:
        return None

    def legal(self, token: int) -> bool:
        if self._ended or not 0 <= token < len(self._vocabulary.tokens):
            return False
        return bool(self._packed()[token >> 3] >> (token & 7) & 1)

    def mask(self) -> np.ndarray:
        if self._ended:
            raise RuntimeError("the text has ended; no token follows it")
        packed = self._packed()
        if not packed.any():
            raise dead_end(self._vocabulary, self._tokens)
        return packed

    def follow(self, draft: Sequence[int]) -> int:
        for step, token in enumerate(draft):
            if not self._consume(token):
                return step
        return len(draft)

    def commit(self, tokens: Sequence[int]) -> None:
        followed = self.follow(tokens)
        if followed < len(tokens):
            raise RuntimeError(f"token {tokens[followed]} is not legal at place {len(self._tokens)}")

    def rollback(self, count: int) -> None:
        if not 0 <= count <= len(self._tokens):
            raise ValueError(f"cannot take back {count} of {len(self._tokens)} tokens")
        if count == 0:
            return
        self._back(count - self._silent)
        del self._tokens[-count:]
        self._ended = self._silent = False
        self._mask = None

    def fork(self: M) -> M:
        twin = self._twin()
        twin._tokens, twin._mask = list(self._tokens), self._mask
        twin._ended, twin._silent = self._ended, self._silent
        return twin

    def consume_text(self, text: str) -> int:
        tokens = self._vocabulary.encode(text)
        fits = self.follow(tokens)
        if fits < len(tokens):
            self.rollback(fits)
            return len(self._vocabulary.decode(tokens[:fits]).decode(errors="ignore"))
        return len(text)

    def _packed(self) -> np.ndarray:
        """The engine's mask of this place; all zero at a dead end."""
        if self._mask is None:
            self._mask = self._read_mask()
        return self._mask

    def _consume(self, token: int) -> bool:
        """Moves on by a token if it is legal."""
        if self._ended or not 0 <= token < len(self._vocabulary.tokens):
            return False
        if self._is_stop(token):
            if not self._accepts():
                return False
            self._silent = True
        elif not self._advance(token):
            return False
        # An end token of the model ends the text even where the engine takes it as text, as it does in
        # `generate`.
        self._ended = self._silent or token in self._vocabulary.end_ids
        self._tokens.append(token)
        self._mask = None
        return True

    @abstractmethod
    def _read_mask(self) -> np.ndarray:
        """Packed mask of the tokenizer's ids, the engine's end token included."""

    @abstractmethod
    def _accepts(self) -> bool:
        """Whether the text so far satisfies the constraint."""

    @abstractmethod
    def _is_stop(self, token: int) -> bool:
        """Whether a token says to the engine that the text ends."""

    @abstractmethod
    def _advance(self, token: int) -> bool:
        """Moves the engine on by a token of the text if it is legal."""

    @abstractmethod
    def _back(self, count: int) -> None:
        """Takes back the engine's last `count` tokens."""

    @abstractmethod
    def _next_bytes(self) -> bytes:
        """Bytes that must come next, as far as the engine tells."""

    @abstractmethod
    def _twin(self: M) -> M:
        """A matcher whose engine is independent and at the same place."""
