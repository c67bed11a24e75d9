"""Which shapes hold at least one value, as far as a bounded look can tell."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from . import regular as rx
from .automaton import automaton
from .limits import BlowupError, CircularError
from .meet import number_fits, string_fits
from .shapes import Arr, Num, Obj, Shape, Some, Str, join
from .sites import Conj

if TYPE_CHECKING:
    from .expand import Expander

__all__ = ["Alive", "key_fits"]

_LOOK = 6
"""Levels of members that are looked into."""


class Alive:
    """Callable: whether a shape may hold a value. False is certain, True is not."""

    def __init__(self, ex: Expander) -> None:
        self.ex = ex
        self._strings: dict[Str, bool] = {}
        self._depths: dict[Conj, int] = {}  # "yes" down to this depth; -1 is "no"
        self._busy: set[Conj] = set()

    def __call__(self, shape: Shape, depth: int = _LOOK) -> bool:
        if isinstance(shape, Num):
            return self._number(shape)
        if isinstance(shape, Str):
            return self._string(shape)
        if isinstance(shape, Arr):
            return self._array(shape, depth)
        if isinstance(shape, Obj):
            return self._object(shape, depth)
        return True

    def conj(self, terms: Conj, depth: int = _LOOK) -> bool:
        known = self._depths.get(terms)
        if known is not None and (known < 0 or known >= depth):
            return known >= 0
        if depth <= 0 or terms in self._busy:
            return True
        self._busy.add(terms)
        try:
            found = any(self(b.shape, depth - 1) for b in self.ex.conj(terms))
        except BlowupError:
            found = True
        except CircularError:
            return True  # asked while the schema around it is being expanded
        finally:
            self._busy.discard(terms)
        self._depths[terms] = depth if found else -1
        return found

    @staticmethod
    def _number(n: Num) -> bool:
        if n.integer and n.low is not None and n.high is not None:
            low, high = math.ceil(n.low), math.floor(n.high)
            low += n.low_open and low == n.low
            high -= n.high_open and high == n.high
            if high - low < 64:
                return any(number_fits(n, Fraction(v)) for v in range(low, high + 1))
        return True

    def _string(self, s: Str) -> bool:
        if s.values is not None or not s.patterns:
            return True
        if len(s.patterns) == 1 and not s.low and s.high is None and rx.is_plain(s.patterns[0]):
            return True
        found = self._strings.get(s)
        if found is None:
            parts = list(s.patterns)
            if s.low > 40 or (s.high or 0) > 40:
                parts.append(rx.any_of_length(min(s.low, 40), None))
            else:
                parts.append(rx.any_of_length(s.low, s.high))
            try:
                found = not automaton(rx.both(*parts), max_states=120, max_atoms=60).empty
            except rx.TooComplexError:
                found = True
            self._strings[s] = found
        return found

    def _array(self, a: Arr, depth: int) -> bool:
        for i in range(min(a.low, len(a.prefix))):
            if not self.conj(a.prefix[i], depth - 1):
                return False
        if a.low > len(a.prefix) and not self.conj(a.rest, depth - 1):
            return False
        for conj, least, _ in a.contains:
            if least and a.high is not None and least > a.high:
                return False
            places = [*a.prefix, a.rest][: a.high]
            if least and not any(self.conj(join(p, conj), depth - 1) for p in places):
                return False
        return True

    def _object(self, o: Obj, depth: int) -> bool:
        for name in o.required:
            if not self.conj(o.value(name), depth - 1):
                return False
            if o.keys and key_fits(self.ex, o.keys, name) is False:
                return False
        for some in o.some:
            if not self._has_key(o, some, depth - 1):
                return False
        if o.low > len(o.required) and all(not s.patterns for s in o.sources):
            rest: Conj = tuple(t for s in o.sources for t in s.rest)
            if not self.conj(rest, depth - 1):
                possible = [n for n in o.names() if self.conj(o.value(n), depth - 1)]
                return len(possible) >= o.low
        return True

    def _has_key(self, o: Obj, some: Some, depth: int) -> bool:
        for name in o.names():
            if rx.matches(some.language, name) and self.conj(join(o.value(name), some.conj), depth):
                return True
        rest = some.conj
        for source in o.sources:
            if source.patterns:
                return True
            rest = join(rest, source.rest)
        return self.conj(rest, depth)


def key_fits(ex: Expander, keys: Conj, name: str) -> bool | None:
    """Whether `name` satisfies propertyNames; None when a note says that this is not known."""
    unsure = False
    try:
        branches = ex.conj(keys)
    except (BlowupError, CircularError):
        return None
    for b in branches:
        if isinstance(b.shape, Str):
            fits = name in b.shape.values if b.shape.values is not None else string_fits(b.shape, name)
            if fits and not b.notes:
                return True
            unsure |= fits
    return None if unsure else False
