"""Intersections of shapes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from . import regular as rx
from .shapes import Arr, Bool, Num, Obj, Shape, Str, join

__all__ = ["meet", "number_fits", "string_fits"]


def _lowest(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def _meet_bools(a: Bool, b: Bool) -> Bool | None:
    values = tuple(v for v in a.values if v in b.values)
    return Bool(values) if values else None


def _meet_numbers(a: Num, b: Num) -> Num | None:
    low, low_open = a.low, a.low_open
    if b.low is not None and (low is None or (b.low, b.low_open) > (low, low_open)):
        low, low_open = b.low, b.low_open
    high, high_open = a.high, a.high_open
    if b.high is not None and (high is None or (b.high, not b.high_open) < (high, not high_open)):
        high, high_open = b.high, b.high_open
    values = a.values if b.values is None else b.values
    if a.values is not None and b.values is not None:
        values = tuple(v for v in a.values if v in b.values)
    multiples = tuple(dict.fromkeys((*a.multiples, *b.multiples)))
    if (a.integer or b.integer) and (a.fraction or b.fraction):
        return None
    return tidy_number(
        Num(
            a.integer or b.integer,
            low,
            low_open,
            high,
            high_open,
            multiples,
            values,
            a.excluded | b.excluded,
            a.fraction or b.fraction,
            tuple(dict.fromkeys((*a.no_multiples, *b.no_multiples))),
        )
    )


def tidy_number(n: Num) -> Num | None:
    """`n` with its values filtered by its own bounds; None when it is seen to be empty."""
    if any((m / other).denominator == 1 for m in n.multiples for other, _ in n.no_multiples):
        return None
    if n.values is not None:
        kept = tuple(v for v in n.values if number_fits(n, v))
        return Num(values=kept) if kept else None
    if n.low is not None and n.high is not None:
        if n.low > n.high or (n.low == n.high and (n.low_open or n.high_open)):
            return None
        if n.low == n.high:
            return tidy_number(replace(n, values=(n.low,)))
    return n


def number_fits(n: Num, v: Fraction) -> bool:
    if n.low is not None and (v < n.low or (n.low_open and v == n.low)):
        return False
    if n.high is not None and (v > n.high or (n.high_open and v == n.high)):
        return False
    if (n.integer and v.denominator != 1) or (n.fraction is not None and v.denominator == 1):
        return False
    if any((v / m).denominator == 1 for m, _ in n.no_multiples):
        return False
    return v not in n.excluded and all((v / m).denominator == 1 for m in n.multiples)


def _meet_strings(a: Str, b: Str) -> Str | None:
    values = a.values if b.values is None else b.values
    if a.values is not None and b.values is not None:
        there = frozenset(b.values)
        values = tuple(v for v in a.values if v in there)
    patterns = tuple(dict.fromkeys((*a.patterns, *b.patterns)))
    high = _lowest(a.high, b.high)
    return tidy_string(Str(max(a.low, b.low), high, patterns, values, a.excluded | b.excluded))


def tidy_string(s: Str) -> Str | None:
    """`s` with its values filtered by its own constraints; None when it is seen to be empty."""
    if s.high is not None and s.low > s.high:
        return None
    if s.values is not None:
        kept = tuple(v for v in s.values if string_fits(s, v))
        return Str(values=kept) if kept else None
    if rx.NOTHING in s.patterns:
        return None
    return s


def string_fits(s: Str, text: str) -> bool:
    if len(text) < s.low or (s.high is not None and len(text) > s.high) or text in s.excluded:
        return False
    return all(rx.matches(p, text) for p in s.patterns)


def _meet_arrays(a: Arr, b: Arr) -> Arr | None:
    length = max(len(a.prefix), len(b.prefix))
    first = a.prefix + (a.rest,) * (length - len(a.prefix))
    second = b.prefix + (b.rest,) * (length - len(b.prefix))
    low, high = max(a.low, b.low), _lowest(a.high, b.high)
    if high is not None and low > high:
        return None
    prefix = tuple(join(x, y) for x, y in zip(first, second, strict=True))
    contains = tuple(dict.fromkeys((*a.contains, *b.contains)))
    return Arr(prefix, join(a.rest, b.rest), low, high, a.unique or b.unique, contains)


def _meet_objects(a: Obj, b: Obj) -> Obj | None:
    required = tuple(dict.fromkeys((*a.required, *b.required)))
    low, high = max(a.low, b.low), _lowest(a.high, b.high)
    if high is not None and max(low, len(required)) > high:
        return None
    sources = tuple(dict.fromkeys((*a.sources, *b.sources)))
    some = tuple(dict.fromkeys((*a.some, *b.some)))
    return Obj(sources, required, low, high, join(a.keys, b.keys), some)


def meet(a: Shape, b: Shape) -> Shape | None:
    """The values in both; None when the types differ or nothing is seen to be left."""
    if type(a) is not type(b):
        return None
    if a == b:
        return a
    if isinstance(a, Num) and isinstance(b, Num):
        return _meet_numbers(a, b)
    if isinstance(a, Str) and isinstance(b, Str):
        return _meet_strings(a, b)
    if isinstance(a, Arr) and isinstance(b, Arr):
        return _meet_arrays(a, b)
    if isinstance(a, Obj) and isinstance(b, Obj):
        return _meet_objects(a, b)
    if isinstance(a, Bool) and isinstance(b, Bool):
        return _meet_bools(a, b)
    return a
