"""Syntax trees of patterns, and the classes of characters that patterns name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from . import charset as cs

__all__ = [
    "Alt",
    "Cat",
    "Class",
    "End",
    "Look",
    "Node",
    "PatternError",
    "Rep",
    "Start",
    "negated",
    "single",
    "unicode_property",
]


class PatternError(ValueError):
    """The pattern cannot be turned into a regular language: why is the message."""


@dataclass(frozen=True)
class Class:
    both: cs.Charset
    either: cs.Charset


@dataclass(frozen=True)
class Cat:
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Alt:
    options: tuple[Node, ...]


@dataclass(frozen=True)
class Rep:
    body: Node
    low: int
    high: int | None


@dataclass(frozen=True)
class Start:
    pass


@dataclass(frozen=True)
class End:
    pass


@dataclass(frozen=True)
class Look:
    body: Node
    negative: bool


Node: TypeAlias = "Class | Cat | Alt | Rep | Start | End | Look"


def single(code: int) -> Class:
    found = cs.make([(code, code)])
    return Class(found, found)


def negated(c: Class) -> Class:
    return Class(cs.complement(c.either), cs.complement(c.both))


_GENERAL = frozenset(
    [f"L{x}" for x in ("", "l", "m", "o", "t", "u")]
    + [f"M{x}" for x in ("", "c", "e", "n")]
    + [f"N{x}" for x in ("", "d", "l", "o")]
    + [f"P{x}" for x in ("", "c", "d", "e", "f", "i", "o", "s")]
    + [f"S{x}" for x in ("", "c", "k", "m", "o")]
    + [f"Z{x}" for x in ("", "l", "p", "s")]
    + [f"C{x}" for x in ("", "c", "f", "n", "o")]
)
_CATEGORIES = {
    "Letter": "L",
    "Uppercase_Letter": "Lu",
    "Lowercase_Letter": "Ll",
    "Titlecase_Letter": "Lt",
    "Mark": "M",
    "Number": "N",
    "Decimal_Number": "Nd",
    "digit": "Nd",
    "Punctuation": "P",
    "punct": "P",
    "Symbol": "S",
    "Separator": "Z",
    "Space_Separator": "Zs",
    "Other": "C",
    "Control": "Cc",
    "cntrl": "Cc",
}


def unicode_property(name: str) -> cs.Charset | None:
    """The characters of a general category, "ASCII" or "Any"; None when the name is not known."""
    short = _CATEGORIES.get(name, name)
    if short == "ASCII":
        return cs.make([(0, 0x7F)])
    if short == "Any":
        return cs.ANY
    return cs.category(short) if short in _GENERAL else None
