"""A matcher that asks lark before a text may end."""

from __future__ import annotations

import threading
from functools import lru_cache

import lark as lark_library
import numpy as np
from llguidance import LLMatcher

from xpress_struct.constraints.matcher import GrammarMatcher
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import OutputValidationError

__all__ = ["GatedMatcher", "Judge"]


class Judge:
    """lark's own verdict on whole texts. Safe for threads.

    Args:
        parser: the loaded grammar.
        start: the start symbol.
    """

    def __init__(self, parser: lark_library.Lark, start: str) -> None:
        self._parser, self._start = parser, start
        self._lock = threading.Lock()  # an Indenter keeps its place in the text
        self.refusal = lru_cache(maxsize=1024)(self._refusal)

    def _refusal(self, text: str) -> str:
        """Why lark does not parse a text, or ""."""
        with self._lock:
            try:
                self._parser.parse(text, start=self._start)
            except (lark_library.exceptions.LarkError, AssertionError, IndexError, RuntimeError) as error:
                # The last ones come from an Indenter, of brackets and line breaks it does not expect, and
                # from Earley's parser, of texts that end in two ways or nest too deeply.
                return f"{type(error).__name__}: {error}"
        return ""

    def parse(self, text: str) -> str:
        """The text itself.

        Raises:
            OutputValidationError: lark does not parse it.
        """
        why = self.refusal(text)
        if why:
            raise OutputValidationError(f"lark refuses the text: {why}", text=text)
        return text


class GatedMatcher(GrammarMatcher):
    """A matcher whose text may end only where lark parses it.

    Where the grammar leaves nothing but the end, the text ends all the same; the check of the finished text
    then refuses it, and it is drawn again.
    """

    def __init__(self, judge: Judge, engine: LLMatcher, vocabulary: Vocabulary, prefix: bytes = b"") -> None:
        super().__init__(engine, vocabulary)
        self._judge, self._prefix = judge, prefix

    @property
    def accepting(self) -> bool:
        return super().accepting and self._parses

    @property
    def _parses(self) -> bool:
        text = self._prefix + self._vocabulary.decode(self._tokens)
        try:
            return not self._judge.refusal(text.decode())
        except UnicodeDecodeError:
            return False

    def legal(self, token: int) -> bool:
        if not super().legal(token):
            return False
        if token not in self._vocabulary.end_ids or self.complete or self.accepting:
            return True
        return bool(self.mask()[token >> 3] >> (token & 7) & 1)

    def mask(self) -> np.ndarray:
        packed = super().mask()
        if self.complete or not self._engine.is_accepting() or self._parses:
            return packed
        barred = packed.copy()
        for token in self._vocabulary.end_ids:
            barred[token >> 3] &= ~(1 << (token & 7)) & 255
        return barred if barred.any() else packed

    def fork(self) -> GatedMatcher:
        twin = GatedMatcher(self._judge, self._engine.deep_copy(), self._vocabulary, self._prefix)
        self._copy_to(twin)
        return twin

    def consume_text(self, text: str) -> int:
        fits = super().consume_text(text)
        if fits == len(text):
            self._prefix += text.encode()
        return fits
