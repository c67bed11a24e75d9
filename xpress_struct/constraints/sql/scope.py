"""Which names an SQL statement may use where: sources of FROM, their columns, results, functions.

Names are folded: SQL takes small and capital ASCII letters as one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from xpress_struct.constraints.sql.frames import Frames, Query, Source, innermost, outer, replaced
from xpress_struct.constraints.sql.schema import Database
from xpress_struct.constraints.sql.words import short_names

__all__ = [
    "STAR",
    "Function",
    "Names",
    "added",
    "ambiguous",
    "closed",
    "givers",
    "qualified",
    "qualifiers",
    "unclear",
    "used",
    "visible",
]

STAR = b"*"
_PLAIN = re.compile(rb"[a-z_][a-z0-9_]*")
_WINDOW_ONLY = frozenset(
    b"row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value "
    b"nth_value".split()
)
# Functions of any number of arguments that SQLite refuses one or none.
_TWO_AT_LEAST = frozenset((b"coalesce", b"max", b"min"))


class Function(NamedTuple):
    """How many arguments a function takes by itself, and as an aggregate; -1 for any, -2 for two or more."""

    scalar: frozenset[int]
    aggregate: frozenset[int]
    window_only: bool


@dataclass(frozen=True, eq=False)
class Names:
    """The names of a database, folded."""

    tables: Mapping[bytes, frozenset[bytes]]
    widths: Mapping[bytes, int]
    columns: frozenset[bytes]
    aliases: frozenset[bytes]
    functions: Mapping[bytes, Function]
    reserved: frozenset[bytes] = field(default=frozenset(), repr=False)

    @classmethod
    def of(cls, database: Database, reserved: frozenset[str]) -> Names:
        tables = {
            _folded(name): frozenset(map(_folded, columns)) for name, columns in database.tables.items()
        }
        return cls(
            tables,
            {_folded(name): len(columns) for name, columns in database.tables.items()},
            frozenset().union(*tables.values()),
            frozenset(name.encode() for name in short_names(database.tables)),
            {
                _folded(name): _function(name, takes)
                for name, takes in database.functions.items()
                if name != "likelihood"  # of a constant between 0 and 1 only
            },
            frozenset(word.encode() for word in reserved),
        )

    def plain(self, name: bytes) -> bool:
        """True when a name needs no quotes."""
        return bool(_PLAIN.fullmatch(name)) and name not in self.reserved

    @cached_property
    def _beginnings(self) -> frozenset[bytes]:
        return frozenset(
            name[:length] for name in (*self.tables, *self.columns) for length in range(len(name) + 1)
        )

    def begins(self, start: bytes) -> bool:
        """True when a table or a column begins so."""
        return start in self._beginnings

    def alias(self, word: bytes) -> bool:
        """True when a word is a short name of a table."""
        short = word.rstrip(b"0123456789")
        return short in self.aliases and len(word) - len(short) <= 2

    def begins_alias(self, start: bytes) -> bool:
        """True when a short name of a table begins so."""
        return any(name.startswith(start) for name in self.aliases) or self.alias(start)

    def covered(self, columns: frozenset[bytes]) -> bool:
        """True when one table has all of the columns."""
        return any(columns <= table for table in self.tables.values())


def _folded(name: str) -> bytes:
    return name.encode().lower()


def _function(name: str, takes: frozenset[tuple[bool, int]]) -> Function:
    folded = _folded(name)
    scalar = frozenset(number for aggregate, number in takes if not aggregate)
    if folded in _TWO_AT_LEAST:
        scalar = frozenset((-2,))
    aggregate = frozenset(number for aggregate, number in takes if aggregate)
    return Function(scalar, aggregate, folded in _WINDOW_ONLY)


def givers(sources: tuple[Source, ...], column: bytes) -> int:
    """How many sources a column without qualifier may come from."""
    known = sum(
        source.columns is not None and column in source.columns and column not in source.shared
        for source in sources
    )
    return known or any(source.columns is None for source in sources)


def used(names: Names, frames: Frames, column: bytes, place: int | None = None) -> Frames | None:
    """The frames behind the use of a column without qualifier; None where no query has it, or two sources."""
    at: int | None = innermost(frames) if place is None else place
    while at is not None:
        query = frames[at].inside
        if query.clause == "limit":
            return None
        if query.open:
            return replaced(frames, at, uses=query.uses | {column})
        found = givers(query.sources, column)
        if found > 1:
            return None
        if found:
            # A source that comes later must not have it too.
            return frames if query.closed else replaced(frames, at, uses=query.uses | {column})
        at = outer(frames, at)
    return None


def qualified(
    names: Names, frames: Frames, qualifier: bytes, column: bytes, place: int | None = None
) -> Frames | None:
    """The frames behind the use of `qualifier.column`; None where it is of no source."""
    at: int | None = innermost(frames) if place is None else place
    while at is not None:
        query = frames[at].inside
        if query.clause == "limit":
            return None
        for source in query.sources:
            if source.name == qualifier and (column == STAR or source.has(column)):
                return frames
        if query.open:
            wanted = _of(query, qualifier) | {column} - {STAR}
            if qualifier in names.tables or names.covered(wanted):
                return replaced(frames, at, qualified=query.qualified | {(qualifier, column)})
        at = None if column == STAR else outer(frames, at)
    return None


def _of(query: Query, qualifier: bytes) -> frozenset[bytes]:
    return frozenset(column for name, column in query.qualified if name == qualifier and column != STAR)


def ambiguous(query: Query) -> frozenset[bytes]:
    """Columns that were used without a qualifier, and are in two sources."""
    return frozenset(column for column in query.uses if givers(query.sources, column) > 1)


def unclear(query: Query) -> str:
    """What the last source still needs: "alias", "using", or nothing."""
    called = [source.name for source in query.sources if source.name]
    if called.count(called[-1] if called else b"") > 1:
        return "alias"
    return "using" if ambiguous(query) else ""


def added(query: Query, source: Source) -> Query | None:
    """The query with one more source; None where a column would stay ambiguous."""
    if query.join == "natural" and source.columns is not None:
        earlier = [one.columns or frozenset() for one in query.sources]
        source = source._replace(shared=source.columns & frozenset().union(*earlier))
    more = query._replace(sources=(*query.sources, source), clause="from")
    if query.join != "join" and ambiguous(more):
        return None
    return more


def closed(names: Names, frames: Frames, place: int) -> Frames | None:
    """The frames once no source is added any more: all that was used is found, here or in outer queries."""
    query = frames[place].inside
    if query.closed:
        return frames
    if unclear(query):
        return None
    width = _width(names, query, frames[place].commas + 1)
    if query.expected is not None and width is not None and width != query.expected:
        return None
    results = query.named
    if query.stars:
        results = results.union(*(source.columns or frozenset() for source in query.sources))
    found: Frames | None = replaced(frames, place, closed=True, width=width, results=results, bare=b"")
    beyond = outer(frames, place)
    for column in query.uses:
        if not givers(query.sources, column):
            if found is None or beyond is None:
                return None
            found = used(names, found, column, beyond)
    for qualifier, column in query.qualified:
        own = [source for source in query.sources if source.name == qualifier]
        if not any(column == STAR or source.has(column) for source in own):
            if found is None or beyond is None or column == STAR:
                return None
            found = qualified(names, found, qualifier, column, beyond)
    return found


def _width(names: Names, query: Query, results: int) -> int | None:
    """How many columns the results are."""
    width = results - len(query.stars)
    for star in query.stars:
        for source in query.sources:
            if source.columns is None:
                return None
            if star in (b"", source.name):
                width += len(source.columns) - (len(source.shared) if not star else 0)
    return width


def visible(names: Names, frames: Frames) -> frozenset[bytes]:
    """Columns that may stand here without a qualifier."""
    at: int | None = innermost(frames)
    found: set[bytes] = set()
    hidden: set[bytes] = set()
    while at is not None:
        query = frames[at].inside
        if query.clause == "limit":
            break
        unknown = any(source.columns is None for source in query.sources)
        if query.open or unknown:
            return names.columns - hidden
        here = frozenset().union(*(source.columns or () for source in query.sources))
        found |= {column for column in here if givers(query.sources, column) == 1} - hidden
        hidden |= here
        at = outer(frames, at)
    return frozenset(found)


def qualifiers(names: Names, frames: Frames) -> tuple[frozenset[bytes], bool]:
    """Qualifiers that may stand here; and whether an alias may that is still to be given."""
    at: int | None = innermost(frames)
    found: set[bytes] = set()
    while at is not None:
        query = frames[at].inside
        if query.clause == "limit":
            break
        if query.open:
            return frozenset(names.tables), True
        found |= {source.name for source in query.sources}
        at = outer(frames, at)
    return frozenset(found), False
