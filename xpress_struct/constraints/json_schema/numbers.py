"""Numbers: how they are written, and their shapes in the engine's schema language.

An integer is written in digits, without fraction or exponent ("1", never "1.0" or "1e0"). A number is
written in digits with an optional fraction, without exponent. So that no run of digits is endless, values
stay within the limits below, unless `bounded=False`; then numbers without bounds may have exponents.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from .meet import number_fits
from .report import Checked
from .shapes import Num

__all__ = ["MAX_DECIMALS", "MAX_INTEGER", "MAX_NUMBER", "TooLargeError", "emit_number", "number_notes"]

MAX_INTEGER = 2**63 - 1024
"""Largest magnitude of an integer: 19 digits. (The engine's bounds are doubles cast to 64 bits.)"""
MAX_NUMBER = 10**18
"""Largest magnitude of a number that is not an integer by type: 19 digits."""
MAX_DECIMALS = 10
"""Most digits after the decimal point."""
_MAX_COEFFICIENT = 2**32 - 1  # of multipleOf, in the engine
_MAX_ENUMERATED = 2000  # integers in a range that are written one by one
_MAX_CUTS = 200  # excluded values that are cut out of a range


class TooLargeError(ValueError):
    """A bound or a multiple is outside what the engine can hold."""


def _plain(v: Fraction) -> int | float:
    return v.numerator if v.denominator == 1 else float(v)


def _multiple(n: Num) -> Fraction | None:
    """One number whose multiples are those of all `n.multiples`."""
    if not n.multiples:
        return None
    top, bottom = 1, 0
    for m in n.multiples:
        top, bottom = math.lcm(top, m.numerator), math.gcd(bottom, m.denominator)
    found = Fraction(top, bottom)
    power = 1
    while (found * power).denominator != 1:
        power *= 10
        if power > 10**12:
            raise TooLargeError("multipleOf has too many digits")
    if found * power > _MAX_COEFFICIENT or not _exact(found, power):
        raise TooLargeError("multipleOf has too many digits")
    return found


def _exact(found: Fraction, power: int) -> bool:
    """Whether the engine, which scales a double by ten until it is whole, reads `found` as it is."""
    value, scale = float(found), 1
    while value != int(value) and scale < power:
        value, scale = value * 10.0, scale * 10
    return value == found * scale


def _values(values: tuple[Fraction, ...]) -> list[dict[str, Any]]:
    fitting: list[int | float] = []
    for v in values:
        written = _plain(v)
        if abs(v) > MAX_INTEGER or (isinstance(written, float) and abs(v) < Fraction(1, 10**300)):
            raise TooLargeError("a constant has too many digits")
        fitting.append(written)
    return [{"enum": fitting}]


def _enumerated(n: Num) -> Num:
    """A short range of integers as its values."""
    if not n.integer or n.low is None or n.high is None or n.high - n.low > _MAX_ENUMERATED:
        return n
    whole = range(math.ceil(n.low), math.floor(n.high) + 1)
    return Num(values=tuple(v for v in map(Fraction, whole) if number_fits(n, v)))


def number_notes(n: Num) -> list[Checked]:
    """What `emit_number` leaves to check, besides what it raises."""
    if n.values is not None or (n.no_multiples and _enumerated(n).values is not None):
        return []
    notes = [note for _, note in n.no_multiples]
    return notes if n.fraction is None else [*notes, n.fraction]


def emit_number(n: Num, bounded: bool) -> list[dict[str, Any]]:
    """Alternatives for the engine; none when nothing can be written.

    Raises:
        TooLargeError: the engine cannot hold a bound, a multiple or a value.
    """
    if n.values is None and n.no_multiples:
        n = _enumerated(n)
    if n.values is not None:
        return _values(n.values)
    limit = MAX_INTEGER if n.integer else MAX_NUMBER
    edges: list[tuple[Fraction | None, bool]] = [(n.low, n.low_open)]
    for cut in sorted(n.excluded):
        inside = (n.low is None or cut >= n.low) and (n.high is None or cut <= n.high)
        if inside and not (n.integer and cut.denominator != 1):
            edges += [(cut, True), (cut, True)]
    edges.append((n.high, n.high_open))
    if len(edges) > 2 * _MAX_CUTS:
        raise TooLargeError("too many values are excluded")
    multiple = _multiple(n)
    out: list[dict[str, Any]] = []
    for (low, low_open), (high, high_open) in zip(edges[::2], edges[1::2], strict=True):
        piece = _piece(n.integer, low, low_open, high, high_open, limit, bounded)
        if piece is None:
            continue
        if multiple is not None:
            piece["multipleOf"] = _plain(multiple)
        elif not n.integer and bounded:
            piece["multipleOf"] = float(f"1e-{MAX_DECIMALS}")
        out.append(piece)
    return out


def _piece(
    integer: bool,
    low: Fraction | None,
    low_open: bool,
    high: Fraction | None,
    high_open: bool,
    limit: int,
    bounded: bool,
) -> dict[str, Any] | None:
    if integer:
        if low is not None:
            low = Fraction(math.floor(low) + 1 if low_open else math.ceil(low))
        if high is not None:
            high = Fraction(math.ceil(high) - 1 if high_open else math.floor(high))
        low_open = high_open = False
    if (low is not None and low > limit) or (high is not None and high < -limit):
        raise TooLargeError(f"a bound is beyond {limit:.3g}")
    if bounded or (low is not None and low < -limit):
        low = Fraction(-limit) if low is None or low < -limit else low
    if bounded or (high is not None and high > limit):
        high = Fraction(limit) if high is None or high > limit else high
    if low is not None and high is not None and (low, low_open or high_open) > (high, False):
        return None
    for edge in (low, high):
        if edge is not None and edge not in (Fraction(float(edge)), Fraction(repr(float(edge)))):
            raise TooLargeError("a bound has more digits than a double holds")
    piece: dict[str, Any] = {"type": "integer" if integer else "number"}
    if low is not None:
        piece["exclusiveMinimum" if low_open else "minimum"] = _plain(low)
    if high is not None:
        piece["exclusiveMaximum" if high_open else "maximum"] = _plain(high)
    return piece
