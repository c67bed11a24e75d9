"""Compiled grammars: one compile per (grammar, vocabulary), kept in a cache bounded in bytes."""

from __future__ import annotations

import hashlib
import threading
import time
import weakref
from collections import OrderedDict
from dataclasses import dataclass

from llguidance import LLMatcher, LLParserLimits

from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import CompileLimitError, GrammarError

__all__ = ["CompileCache", "cache", "clear_cache"]

LIMIT_WORDS = ("fuel", "too many", "too complex", "exceed", "limit", "too large", "too big")


@dataclass(slots=True)
class _Entry:
    pristine: LLMatcher
    size: int
    vocabulary: weakref.ref[Vocabulary]


class CompileCache:
    """Least recently used compiled grammars. Safe for threads.

    Args:
        max_bytes: bound on the estimated memory of what is kept. An entry counts 64 times its
            grammar text and at least 64 KiB (measured: `python -m benchmarks.compile_memory`).
    """

    def __init__(self, max_bytes: int = 256 << 20) -> None:
        self.max_bytes = max_bytes
        self._entries: OrderedDict[tuple[int, bytes], _Entry] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def engine(self, grammar: str, vocabulary: Vocabulary) -> tuple[LLMatcher, float]:
        """A fresh engine for the grammar, and the seconds spent on compiling it (0 when cached).

        Raises:
            GrammarError: the grammar does not compile.
            CompileLimitError: it is too large.
        """
        key = (id(vocabulary), hashlib.sha256(grammar.encode()).digest())
        with self._lock:
            entry = self._entries.get(key)
            # An id may be used again after its vocabulary has gone.
            if entry is not None and entry.vocabulary() is vocabulary:
                self._entries.move_to_end(key)
                return entry.pristine.deep_copy(), 0.0
        started = time.perf_counter()
        engine = LLMatcher(vocabulary.engine, grammar, log_level=0, limits=LLParserLimits())
        if engine.is_error():
            raise compile_error(engine.get_error())
        spent = time.perf_counter() - started
        with self._lock:
            size = max(64 * len(grammar), 64 << 10)
            self._drop(key)
            self._entries[key] = _Entry(engine, size, weakref.ref(vocabulary))
            self._bytes += size
            while self._bytes > self.max_bytes and len(self._entries) > 1:
                self._drop(next(iter(self._entries)))
            return engine.deep_copy(), spent

    def clear(self) -> None:
        """Forgets every compiled grammar."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    def _drop(self, key: tuple[int, bytes]) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.size


def compile_error(message: str) -> GrammarError | CompileLimitError:
    """The engine's message as one of our errors."""
    message = message.strip()
    if any(word in message.lower() for word in LIMIT_WORDS):
        return CompileLimitError(f"The constraint is larger than the limits allow: {message}")
    return GrammarError(message)


cache = CompileCache()


def clear_cache() -> None:
    """Frees every compiled constraint kept for reuse; constraints stay usable."""
    cache.clear()
