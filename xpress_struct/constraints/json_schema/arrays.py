"""Arrays in the engine's schema language."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from math import perm
from typing import TYPE_CHECKING, Any

from .limits import BlowupError
from .shapes import Arr, Bool, Null, Num, Str, join
from .sites import Conj, Term

if TYPE_CHECKING:
    from .emit import Emitter

__all__ = ["CONTAINS_WITHIN", "MAX_ITEMS", "ArrayWriter"]

MAX_ITEMS = 10_000
"""Largest minItems or maxItems that the engine compiles; larger ones are checked after generation."""
_MAX_LISTS = 330  # lists that uniqueItems over a finite set of values may make
CONTAINS_WITHIN = 12
"""The item that `contains` asks for stands among so many first ones; arrays that have it later only are not
written."""


class ArrayWriter:
    def __init__(self, emitter: Emitter) -> None:
        self.emitter, self.ex = emitter, emitter.ex

    def write(self, arr: Arr) -> list[dict[str, Any]]:
        """Alternatives for the engine; notes go to the emitter."""
        done: list[dict[str, Any]] = []
        todo = [self._cut(arr)]
        while todo:
            one = todo.pop(0)
            if one is None or (one.high is not None and one.low > one.high):
                continue
            if one.contains:
                todo = [*self._contain(one), *todo]
            elif one.unique:
                done += self._unique(one)
            else:
                done += self._body(one)
        return done

    def _cut(self, arr: Arr) -> Arr | None:
        """`arr` without places that no value can take."""
        for i in range(len(arr.prefix)):
            if not self.ex.member_alive(arr.prefix[i]):
                high = i if arr.high is None else min(i, arr.high)
                return replace(arr, prefix=arr.prefix[:i], high=high) if i >= arr.low else None
        if not self.ex.member_alive(arr.rest):
            size = len(arr.prefix)
            arr = replace(arr, high=size if arr.high is None else min(size, arr.high), rest=())
        return arr

    # contains -------------------------------------------------------------------------------------------

    def _contain(self, arr: Arr) -> list[Arr | None]:
        (conj, least, most), *others = arr.contains
        arr = replace(arr, contains=tuple(others))
        if least <= 0 and most is None:
            return [arr]
        if most is not None and least > most:
            return []
        places = [*arr.prefix, arr.rest]
        if self._never(places, conj):
            return [arr] if least <= 0 else []
        if not conj or self._always(places, conj):
            high = arr.high if most is None else most if arr.high is None else min(most, arr.high)
            return [replace(arr, low=max(arr.low, least), high=high)]
        if most == 0:
            outside = _flip(conj)
            if outside is not None:
                prefix = tuple(join(p, outside) for p in arr.prefix)
                return [self._cut(replace(arr, prefix=prefix, rest=join(arr.rest, outside)))]
        arr = replace(arr, low=max(arr.low, least))
        if least == 1 and most is None:
            within = CONTAINS_WITHIN if arr.high is None else min(arr.high, CONTAINS_WITHIN)
            return [self._cut(_placed(arr, i, conj)) for i in range(within)]
        keyword = "contains" if least else "maxContains"
        self.emitter.note(keyword, "the number of matching items is not counted")
        return [arr]

    def _never(self, places: list[Conj], conj: Conj) -> bool:
        return not any(self.ex.member_alive(join(p, conj)) for p in places)

    def _always(self, places: list[Conj], conj: Conj) -> bool:
        outside = _flip(conj)
        return outside is not None and self._never(places, outside)

    # uniqueItems ----------------------------------------------------------------------------------------

    def _unique(self, arr: Arr) -> list[dict[str, Any]]:
        arr = replace(arr, unique=False)
        if arr.high is not None and arr.high <= 1:
            return self._body(arr)
        if arr.prefix and arr.high is not None and arr.high <= len(arr.prefix):
            places = arr.prefix[: arr.high]
            if all(
                not self.ex.member_alive(join(a, b)) for i, a in enumerate(places) for b in places[i + 1 :]
            ):
                return self._body(arr)
        values = None if arr.prefix else self._finite(arr.rest)
        if values is not None:
            high = len(values) if arr.high is None else min(arr.high, len(values))
            total = sum(perm(len(values), k) for k in range(arr.low, high + 1))
            if total <= _MAX_LISTS:
                lists = (p for k in range(arr.low, high + 1) for p in permutations(values, k))
                return [_fixed(some) for some in lists]
            arr = replace(arr, high=high)
            if arr.low > high:
                return []
        self.emitter.note("uniqueItems", "the items are not a small finite set")
        return self._body(arr)

    def _finite(self, conj: Conj) -> list[Any] | None:
        found: list[Any] = []
        try:
            branches = self.ex.live(self.ex.conj(conj))
        except BlowupError:
            return None
        for b in branches:
            shape = b.shape
            if b.notes:
                return None
            if isinstance(shape, Null):
                found.append(None)
            elif isinstance(shape, (Bool, Str)) and shape.values is not None:
                found += shape.values
            elif isinstance(shape, Num) and shape.values is not None:
                if any(v.denominator != 1 for v in shape.values):
                    return None
                found += [v.numerator for v in shape.values if isinstance(v, Fraction)]
            else:
                return None
        return found

    # one alternative ------------------------------------------------------------------------------------

    def _body(self, arr: Arr) -> list[dict[str, Any]]:
        low, high = arr.low, arr.high
        if low > MAX_ITEMS:
            self.emitter.note("minItems", f"it is above {MAX_ITEMS}")
            low = MAX_ITEMS
        if high is not None and high > MAX_ITEMS:
            self.emitter.note("maxItems", f"it is above {MAX_ITEMS}")
            high = None
        prefix: list[Any] = []
        for conj in arr.prefix:
            member = self.emitter.value(conj)
            if member is False:
                high = len(prefix)
                break
            prefix.append(member)
        rest: Any = False
        if high is None or high > len(prefix):
            rest = self.emitter.value(arr.rest)
            if rest is False:
                high = len(prefix)
        if high is not None and low > high:
            return []
        body: dict[str, Any] = {"type": "array"}
        if prefix:
            body["prefixItems"] = prefix
        body["items"] = rest
        if low:
            body["minItems"] = low
        if high is not None:
            body["maxItems"] = high
        return [body]


def _flip(conj: Conj) -> Conj | None:
    """The complement of a conjunction of one term, as a conjunction."""
    if len(conj) != 1:
        return None
    return (Term(conj[0].site, not conj[0].negative),)


def _placed(arr: Arr, place: int, conj: Conj) -> Arr:
    prefix = list(arr.prefix) + [arr.rest] * (place + 1 - len(arr.prefix))
    prefix[place] = join(prefix[place], conj)
    return replace(arr, prefix=tuple(prefix), low=max(arr.low, place + 1))


def _fixed(values: tuple[Any, ...]) -> dict[str, Any]:
    size = len(values)
    if not size:
        return {"type": "array", "items": False, "maxItems": 0}
    consts = [{"const": v} for v in values]
    return {
        "type": "array",
        "prefixItems": consts,
        "items": False,
        "minItems": size,
        "maxItems": size,
    }
