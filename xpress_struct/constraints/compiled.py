"""Compiled grammars: one compile per (grammar, vocabulary), kept in a cache bounded in bytes."""

from __future__ import annotations

import hashlib
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from llguidance import LLMatcher, LLParserLimits

from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import CompileLimitError, GrammarError

__all__ = ["ByteCache", "clear_cache", "compile_error", "engine_for", "limits"]

V = TypeVar("V")

_caches: list[ByteCache[object]] = []

# An estimate of what an engine holds: the engine does not tell. Case B38 tests that real growth is bounded.
_BYTES_PER_CHARACTER, _LEAST_BYTES = 64, 64 << 10

# Times the engine's default lexer fuel: patterns of many repeated classes need more than the default, some
# of them only in the middle of a text.
_FUEL = 10

_LIMIT_WORDS = ("fuel", "too many", "too complex", "exceed", "limit", "too large", "too big")


class ByteCache(Generic[V]):
    """Least recently used values, bounded in bytes. Safe for threads; `clear_cache` empties it.

    Args:
        max_bytes: bound on the sum of the sizes that `put` is told; the newest value always stays.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._values: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        _caches.append(self)  # type: ignore[arg-type]

    def get(self, key: Hashable) -> V | None:
        """The value of a key, or None."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: V, size: int) -> None:
        """Keeps a value of `size` bytes, and forgets old ones until all fit."""
        with self._lock:
            self._drop(key)
            self._values[key] = (value, size)
            self._bytes += size
            while self._bytes > self.max_bytes and len(self._values) > 1:
                self._drop(next(iter(self._values)))

    def clear(self) -> None:
        """Forgets every value."""
        with self._lock:
            self._values.clear()
            self._bytes = 0

    def _drop(self, key: Hashable) -> None:
        found = self._values.pop(key, None)
        if found is not None:
            self._bytes -= found[1]


_engines: ByteCache[tuple[LLMatcher, Callable[[], Vocabulary | None]]] = ByteCache(256 << 20)


def limits() -> LLParserLimits:
    """Limits under which grammars are compiled and matched."""
    usual = LLParserLimits()
    return LLParserLimits(
        initial_lexer_fuel=usual.initial_lexer_fuel * _FUEL,
        step_lexer_fuel=usual.step_lexer_fuel * _FUEL,
        # A line of Python may end many blocks at once: more ways to go on than the usual limit allows.
        max_items_in_row=usual.max_items_in_row * 10,
        # A large vocabulary tries many ways in one mask.
        step_max_items=usual.step_max_items * 10,
    )


def engine_for(grammar: str, vocabulary: Vocabulary) -> tuple[LLMatcher, float]:
    """A fresh engine for a grammar, and the seconds spent on compiling it (0 when cached).

    Raises:
        GrammarError: the grammar does not compile.
        CompileLimitError: it is too large.
    """
    key = (id(vocabulary), hashlib.sha256(grammar.encode()).digest())
    found = _engines.get(key)
    # An id may be used again after its vocabulary has gone.
    if found is not None and found[1]() is vocabulary:
        return found[0].deep_copy(), 0.0
    started = time.perf_counter()
    engine = LLMatcher(vocabulary.engine, grammar, log_level=0, limits=limits())
    if engine.is_error():
        raise compile_error(engine.get_error())
    size = max(_BYTES_PER_CHARACTER * len(grammar), _LEAST_BYTES)
    _engines.put(key, (engine, weakref.ref(vocabulary)), size)
    return engine.deep_copy(), time.perf_counter() - started


def compile_error(message: str) -> GrammarError | CompileLimitError:
    """The engine's message as one of our errors."""
    message = message.strip()
    if any(word in message.lower() for word in _LIMIT_WORDS):
        return CompileLimitError(f"The constraint is larger than the limits allow: {message}")
    return GrammarError(message)


def clear_cache() -> None:
    """Frees every compiled constraint kept for reuse; constraints stay usable."""
    for kept in _caches:
        kept.clear()
