"""XGrammarMatcher: a place in a grammar that xgrammar compiled, by its own matcher with fork and rollback."""

from __future__ import annotations

from typing import Any

import numpy as np

from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.integrations.outlines.engine_matcher import EngineMatcher

__all__ = ["XGrammarMatcher"]


class XGrammarMatcher(EngineMatcher):
    """Matcher over an `xgrammar.GrammarMatcher`."""

    def __init__(self, engine: Any, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._engine = engine

    def _read_mask(self) -> np.ndarray:
        size = len(self._vocabulary.tokens)
        words = np.zeros((1, (size + 31) // 32), dtype=np.int32)
        self._engine.fill_next_token_bitmask(words)
        packed = words.view(np.uint8)[0, : (size + 7) // 8]
        if size % 8:
            packed[-1] &= (1 << size % 8) - 1
        return packed

    def _accepts(self) -> bool:
        return bool(self._engine.is_completed())

    def _is_stop(self, token: int) -> bool:
        return token in self._engine.stop_token_ids

    def _advance(self, token: int) -> bool:
        return bool(self._engine.accept_token(token))

    def _back(self, count: int) -> None:
        self._engine.rollback(count)

    def _next_bytes(self) -> bytes:
        found: str = self._engine.find_jump_forward_string()
        return found.encode()

    def _twin(self) -> XGrammarMatcher:
        return XGrammarMatcher(self._engine.fork(), self._vocabulary)
