"""Sets of JSON values of one type, and their intersections.

A schema is a union of branches; a branch is one shape. Inside arrays and objects the schemas of the members
stay unexpanded conjunctions (`Conj`), so recursive schemas have finite shapes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, TypeAlias

from . import regular as rx
from .report import Checked
from .sites import Conj

__all__ = [
    "UNIVERSE",
    "Arr",
    "Bool",
    "Branch",
    "Null",
    "Num",
    "Obj",
    "Seen",
    "Shape",
    "Some",
    "Source",
    "Str",
    "join",
    "meet",
    "notes_of",
    "renoted",
]


@dataclass(frozen=True)
class Null:
    pass


@dataclass(frozen=True)
class Bool:
    values: tuple[bool, ...] = (True, False)


@dataclass(frozen=True)
class Num:
    integer: bool = False
    low: Fraction | None = None
    low_open: bool = False
    high: Fraction | None = None
    high_open: bool = False
    multiples: tuple[Fraction, ...] = ()
    values: tuple[Fraction, ...] | None = None
    excluded: frozenset[Fraction] = frozenset()
    fraction: Checked | None = None  # not an integer, and what to say when that is not written
    no_multiples: tuple[tuple[Fraction, Checked], ...] = ()


@dataclass(frozen=True)
class Str:
    low: int = 0
    high: int | None = None
    patterns: tuple[rx.Regex, ...] = ()
    values: tuple[str, ...] | None = None
    excluded: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Arr:
    prefix: tuple[Conj, ...] = ()
    rest: Conj = ()
    low: int = 0
    high: int | None = None
    unique: bool = False
    contains: tuple[tuple[Conj, int, int | None], ...] = ()


class _Source(NamedTuple):
    names: tuple[tuple[str, Conj], ...] = ()
    patterns: tuple[tuple[rx.Regex, Conj], ...] = ()
    rest: Conj = ()


class Source(_Source):
    """What one schema object says about members: names, then patterns, else `rest`."""

    @cached_property
    def by_name(self) -> dict[str, Conj]:
        return dict(self.names)

    def value(self, name: str) -> Conj:
        found = self.by_name.get(name)
        for pattern, conj in self.patterns:
            if rx.matches(pattern, name):
                found = join(found or (), conj)
        return self.rest if found is None else found


class Some(NamedTuple):
    """A key in `language` whose value satisfies `conj` exists; `note` says so when that is not written."""

    language: rx.Regex
    conj: Conj
    note: Checked


@dataclass(frozen=True)
class Obj:
    sources: tuple[Source, ...] = ()
    required: tuple[str, ...] = ()
    low: int = 0
    high: int | None = None
    keys: Conj = ()  # every key, as a string, satisfies this
    some: tuple[Some, ...] = ()

    def value(self, name: str) -> Conj:
        out: Conj = ()
        for source in self.sources:
            out = join(out, source.value(name))
        return out

    def names(self) -> list[str]:
        """Declared names in order, then names that are only required."""
        declared = [name for source in self.sources for name, _ in source.names]
        return list(dict.fromkeys([*declared, *self.required]))


Shape: TypeAlias = "Null | Bool | Num | Str | Arr | Obj"
UNIVERSE: tuple[Shape, ...] = (Null(), Bool(), Num(), Str(), Arr(), Obj())


@dataclass(frozen=True)
class Seen:
    """Members that some keyword has evaluated, for unevaluatedProperties and unevaluatedItems."""

    names: frozenset[str] = frozenset()
    patterns: frozenset[rx.Regex] = frozenset()
    all_names: bool = False
    items: int = 0
    all_items: bool = False

    def __or__(self, other: Seen) -> Seen:
        if self == other:
            return self
        return Seen(
            self.names | other.names,
            self.patterns | other.patterns,
            self.all_names or other.all_names,
            max(self.items, other.items),
            self.all_items or other.all_items,
        )


@dataclass(frozen=True)
class Branch:
    shape: Shape
    notes: frozenset[Checked] = field(default=frozenset())
    seen: Seen = Seen()


def notes_of(branch: Branch) -> frozenset[Checked]:
    """The notes of a branch and those that its shape carries until it is written."""
    shape, found = branch.shape, branch.notes
    if isinstance(shape, Num):
        found |= {note for _, note in shape.no_multiples}
        found |= {shape.fraction} if shape.fraction is not None else set()
    elif isinstance(shape, Obj):
        found |= {some.note for some in shape.some}
    return found


def renoted(branch: Branch, old: frozenset[Checked], note: Checked) -> Branch:
    """`branch` with every note that is not `old` replaced by `note`."""

    def kept(found: Checked) -> Checked:
        return found if found in old else note

    shape = branch.shape
    if isinstance(shape, Num):
        fraction = None if shape.fraction is None else kept(shape.fraction)
        multiples = tuple((m, kept(n)) for m, n in shape.no_multiples)
        shape = replace(shape, fraction=fraction, no_multiples=multiples)
    elif isinstance(shape, Obj):
        shape = replace(shape, some=tuple(s._replace(note=kept(s.note)) for s in shape.some))
    return Branch(shape, frozenset(map(kept, branch.notes)), branch.seen)


def join(a: Conj, b: Conj) -> Conj:
    if not a or a == b:
        return b
    return (*a, *(t for t in b if t not in a))


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
