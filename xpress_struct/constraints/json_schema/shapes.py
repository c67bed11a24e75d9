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
    "Keys",
    "Null",
    "Num",
    "Obj",
    "Seen",
    "Shape",
    "Some",
    "Source",
    "Str",
    "join",
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


class Keys(NamedTuple):
    """A pattern for keys: those that every dialect matches, and those that at least one matches.

    A key between the two is not written, unless it is declared; then it satisfies both readings.
    """

    both: rx.Regex
    either: rx.Regex


class _Source(NamedTuple):
    names: tuple[tuple[str, Conj], ...] = ()
    patterns: tuple[tuple[Keys, Conj], ...] = ()
    rest: Conj = ()


class Source(_Source):
    """What one schema object says about members: names, then patterns, else `rest`."""

    @cached_property
    def by_name(self) -> dict[str, Conj]:
        return dict(self.names)

    def value(self, name: str) -> Conj:
        found = self.by_name.get(name)
        for keys, conj in self.patterns:
            if rx.matches(keys.either, name):
                sure = rx.matches(keys.both, name)
                found = join(found or (), conj if sure else join(conj, self.rest))
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
    patterns: frozenset[Keys] = frozenset()
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
