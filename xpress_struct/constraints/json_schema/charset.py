"""Sets of Unicode characters as sorted, disjoint ranges, for the pattern algebra.

Surrogates (U+D800 to U+DFFF) are never members: they cannot stand in UTF-8 text.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache

__all__ = [
    "ANY",
    "DIGITS",
    "EMPTY",
    "NOT_LINE_END",
    "NOT_NEWLINE",
    "SPACES_BOTH",
    "SPACES_EITHER",
    "WORDS",
    "Charset",
    "category",
    "complement",
    "intersect",
    "make",
    "members",
    "subtract",
    "unicode_digits",
    "unicode_words",
    "union",
]

Charset = tuple[tuple[int, int], ...]

LAST = sys.maxunicode
EMPTY: Charset = ()
ANY: Charset = ((0, 0xD7FF), (0xE000, LAST))


def make(ranges: Iterable[tuple[int, int]]) -> Charset:
    """The set holding every code point of `ranges` (both ends included), in normal form."""
    joined: list[list[int]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1][1] = max(joined[-1][1], high)
        else:
            joined.append([low, high])
    return intersect(tuple((low, high) for low, high in joined), ANY)


def union(*sets: Charset) -> Charset:
    return make(r for s in sets for r in s)


def intersect(a: Charset, b: Charset) -> Charset:
    out: list[tuple[int, int]] = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low <= high:
            out.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(out)


@lru_cache(maxsize=8192)
def complement(a: Charset) -> Charset:
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in a:
        if start < low:
            gaps.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        gaps.append((start, LAST))
    return intersect(tuple(gaps), ANY)


def subtract(a: Charset, b: Charset) -> Charset:
    return intersect(a, complement(b))


def members(a: Charset, limit: int) -> list[str] | None:
    """The characters of `a`, or None when there are more than `limit`."""
    if sum(high - low + 1 for low, high in a) > limit:
        return None
    return [chr(c) for low, high in a for c in range(low, high + 1)]


def _scan(test: Callable[[str], bool]) -> Charset:
    ranges: list[tuple[int, int]] = []
    for low, high in ANY:
        start = -1
        for c in range(low, high + 1):
            if test(chr(c)):
                if start < 0:
                    start = c
            elif start >= 0:
                ranges.append((start, c - 1))
                start = -1
        if start >= 0:
            ranges.append((start, high))
    return make(ranges)


@lru_cache(maxsize=64)
def category(name: str) -> Charset:
    """Characters whose general category is `name` ("Lu") or begins with it ("L").

    The Unicode version is that of this Python's unicodedata.
    """
    return _scan(lambda ch: unicodedata.category(ch).startswith(name))


@lru_cache(maxsize=2)
def _runs(pattern: str) -> Charset:
    """The characters that a one-character pattern of Python's `re` takes."""
    out: list[tuple[int, int]] = []
    for low, high in ANY:
        text = "".join(map(chr, range(low, high + 1)))
        spans = (m.span() for m in re.finditer(f"{pattern}+", text))
        out += [(low + start, low + end - 1) for start, end in spans]
    return make(out)


def unicode_digits() -> Charset:
    """What Python's `\\d` takes: category Nd."""
    return _runs("\\d")


def unicode_words() -> Charset:
    """What Python's `\\w` takes."""
    return _runs("\\w")


DIGITS = make([(0x30, 0x39)])
WORDS = make([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
_ZS = [(0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029)]
_ZS += [(0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000)]
# ECMA-262 adds U+FEFF; Python adds U+001C to U+001F and U+0085.
SPACES_BOTH = make([(0x09, 0x0D), *_ZS])
SPACES_EITHER = union(SPACES_BOTH, make([(0x1C, 0x1F), (0x85, 0x85), (0xFEFF, 0xFEFF)]))
# "." of ECMA-262: Python's also takes U+000D, U+2028 and U+2029.
NOT_LINE_END = complement(make([(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)]))
NOT_NEWLINE = complement(make([(0x0A, 0x0A)]))
