"""Sets of characters, as Python's `re` reads them."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from xpress_struct.constraints.json_schema import charset as cs

if sys.version_info >= (3, 11):
    from re import _constants as sre
else:
    import sre_constants as sre

__all__ = ["characters"]

# Not ASCII, yet equal to an ASCII letter when case is ignored.
_FOLDED_TO_ASCII = "\u0130\u0131\u017f\u212a"

_CATEGORY = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}


def characters(op: Any, argument: Any, flags: int) -> cs.Charset | None:
    """The characters that a parse node for one character takes; None when it is another kind of node.

    Args:
        op, argument: node of Python's parse tree.
        flags: the flags in force where it stands.
    """
    if op is sre.ANY:
        return cs.ANY if flags & re.DOTALL else cs.NOT_NEWLINE
    if op is sre.LITERAL:
        members: Sequence[Any] = [(sre.LITERAL, argument)]
    elif op is sre.NOT_LITERAL:
        members = [(sre.NEGATE, None), (sre.LITERAL, argument)]
    elif op is sre.IN:
        members = argument
    else:
        return None
    return _members(tuple(members), flags & (re.IGNORECASE | re.ASCII))


@lru_cache(maxsize=4096)
def _members(members: tuple[Any, ...], flags: int) -> cs.Charset:
    negated = members[0][0] is sre.NEGATE
    found = cs.union(*(_member(op, argument, flags) for op, argument in members[negated:]))
    return cs.complement(found) if negated else found


def _member(op: Any, argument: Any, flags: int) -> cs.Charset:
    if op is sre.CATEGORY:
        kind = str(argument).rsplit("_", 1)[1]
        found = _scan(f"\\{_CATEGORY[kind]}", flags & re.ASCII)
        return cs.complement(found) if "_NOT_" in str(argument) else found
    low, high = (argument, argument) if op is sre.LITERAL else argument
    if not flags & re.IGNORECASE:
        return cs.make([(low, high)])
    if high > 127:
        return _scan(f"[\\U{low:08x}-\\U{high:08x}]", flags)
    candidates = {chr(c) for c in range(low, high + 1)}
    candidates |= {c.lower() for c in candidates} | {c.upper() for c in candidates} | set(_FOLDED_TO_ASCII)
    test = re.compile(f"[\\x{low:02x}-\\x{high:02x}]", flags)
    return cs.make([(ord(c), ord(c)) for c in candidates if test.match(c)])


@lru_cache(maxsize=256)
def _scan(pattern: str, flags: int) -> cs.Charset:
    """Read off Python itself, so that its Unicode version and its folding are the ones that count."""
    runs = re.compile(f"(?:{pattern})+", flags)
    found: list[tuple[int, int]] = []
    for low, high in cs.ANY:
        text = "".join(map(chr, range(low, high + 1)))
        found += [(low + m.start(), low + m.end() - 1) for m in runs.finditer(text)]
    return cs.make(found)
