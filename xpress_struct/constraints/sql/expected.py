"""Which words may come next in an SQL statement, as far as names and clauses decide it.

The grammar decides the rest, so words that it does not offer here do no harm. They are left out all the
same where they begin like a name that is barred: what is begun must have an end.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from xpress_struct.constraints.sql.frames import Frame, Frames, Query, Source, innermost
from xpress_struct.constraints.sql.scope import (
    Names,
    added,
    closed,
    qualified,
    qualifiers,
    unclear,
    visible,
)

__all__ = [
    "EXPECTED_END",
    "Expected",
    "arguments",
    "expected",
    "may_call",
    "prefixes",
    "takes_more",
    "wide_enough",
]

EXPECTED_END = frozenset(b"where group order limit union intersect except returning".split())
_EXPRESSION = frozenset(
    b"and or not is isnull notnull like glob escape between in collate when then else end".split()
)
_CONSTANTS = frozenset(
    b"null true false current_date current_time current_timestamp case cast exists x".split()
)
_JOINS = frozenset(b"join left right full inner cross natural".split())
_SETS = frozenset(b"union intersect except".split())
_WINDOW = frozenset(b"asc desc nulls order rows range groups preceding following row".split())
_FRAME_STARTS = frozenset(b"unbounded current between".split())
_BEHIND = {
    "where": _SETS | {b"group", b"order", b"limit", b"returning"},
    "group": _SETS | {b"having", b"order", b"limit"},
    "having": _SETS | {b"order", b"limit"},
    "order": frozenset((b"asc", b"desc", b"nulls", b"limit", b"returning")),
    "limit": frozenset((b"offset", b"returning")),
    "set": frozenset((b"from", b"where", b"returning")),
}
# An expression does not begin behind these, only what an operator takes.
_INNER = ("sign", "like", "glob", "escape", "between", "is", "is not")


class Expected(NamedTuple):
    """Words that may come, folded; with `aliases`, also short names of tables; with `free`, any word.

    `barred` words may not come although they are of that kind.
    """

    words: frozenset[bytes] = frozenset()
    aliases: bool = False
    free: bool = False
    barred: frozenset[bytes] = frozenset()

    def takes(self, names: Names, word: bytes) -> bool:
        """True when the word may come."""
        if word in self.words:
            return True
        return word not in self.barred and (self.free or (self.aliases and names.alias(word)))

    def begins(self, names: Names, start: bytes) -> bool:
        """True when a word may come that begins so."""
        if start in prefixes(self.words):
            return True
        return start not in self.barred and (self.free or (self.aliases and names.begins_alias(start)))


_ANYTHING = Expected(free=True)


@lru_cache(maxsize=4096)
def prefixes(words: frozenset[bytes]) -> frozenset[bytes]:
    """All beginnings of the words."""
    return frozenset(word[:length] for word in words for length in range(len(word) + 1))


def arguments(numbers: frozenset[int], count: int) -> bool:
    """True when a call may have this many arguments."""
    return count in numbers or -1 in numbers or (-2 in numbers and count >= 2)


def takes_more(numbers: frozenset[int], count: int) -> bool:
    """True when a call may have more arguments than these."""
    return -1 in numbers or -2 in numbers or max(numbers, default=0) > count


def may_call(names: Names, frames: Frames) -> tuple[bool, bool]:
    """Whether aggregates may stand here, and window functions."""
    windows = True
    for frame in reversed(frames):
        if frame.query is not None:
            clause = frame.query.clause
            if clause == "order":
                return frame.query.aggregate or frame.query.grouped, windows
            return clause in ("select", "having"), windows and clause == "select"
        if frame.kind == "call":
            function = names.functions.get(frame.name)
            if function is None or (function.scalar and frame.commas):
                continue
            if function.window_only:
                windows = False
            elif function.aggregate:
                break
        elif frame.kind == "filter":
            break
        elif frame.kind == "window":
            windows = False
    return False, False


@lru_cache(maxsize=4096)
def callable_(names: Names, aggregates: bool, windows: bool) -> dict[bytes, frozenset[int]]:
    """Functions that may be called, with their numbers of arguments."""
    found = {}
    for name, function in names.functions.items():
        numbers = function.scalar
        if windows if function.window_only else aggregates:
            numbers |= function.aggregate
        if numbers:
            found[name] = numbers
    return found


@lru_cache(maxsize=4096)
def expected(names: Names, frames: Frames) -> Expected:
    """The words that may come next."""
    frame, place = frames[-1], innermost(frames)
    query = frames[place].inside
    if frame.want == "operand":
        return _operand(names, frames, frame, query)
    if frame.want == "operator":
        return _operator(names, frames, frame, query)
    if frame.want == "column":
        return Expected(_columns(names, frame, query))
    if frame.want == "qualified":
        fit = (column for column in names.columns if qualified(names, frames, frame.qualifier, column))
        return Expected(frozenset(fit))
    if frame.want == "source":
        return Expected(_sources(names, frame, query))
    if frame.want == "tail":
        return _tail(names, frames, frame, query)
    if frame.want == "table alias":
        return Expected(aliases=True, barred=_barred_aliases(names, query))
    if frame.want == "word" and query.clause == "target" and frame.last == "columns":
        return Expected(frozenset((b"select", b"values")))
    return _ANYTHING


def _operand(names: Names, frames: Frames, frame: Frame, query: Query) -> Expected:
    last = frame.last
    if frame.kind == "query" and query.clause == "order" and query.compound:
        return Expected(query.results)
    words = set(_CONSTANTS)
    if last not in _INNER:
        words.add(b"not")
    if last == "(" and frame.kind in ("group", "in"):
        words |= {b"select", b"values"}
    elif last == "select" or (last == "(" and frame.kind == "call" and 1 in _aggregate(names, frame)):
        words |= {b"distinct", b"all"}
    elif last == "case":
        words.add(b"when")
    elif last in ("is", "is not"):
        words |= {b"distinct", b"not"}
    elif frame.kind == "window" and last in ("frame", "between", "and"):
        words |= _FRAME_STARTS
    words |= visible(names, frames)
    words |= callable_(names, *may_call(names, frames)).keys()
    found, aliases = qualifiers(names, frames)
    words |= found
    if frame.at_term and query.clause in ("order", "group"):
        # An aggregate is no group, by whatever name.
        words |= frozenset() if query.clause == "group" and query.aggregate else query.results
    return Expected(frozenset(words), aliases)


def _aggregate(names: Names, frame: Frame) -> frozenset[int]:
    function = names.functions.get(frame.name)
    return frozenset() if function is None or function.window_only else function.aggregate & frame.numbers


def _operator(names: Names, frames: Frames, frame: Frame, query: Query) -> Expected:
    if frame.last == "window":
        return Expected(frozenset((b"over",)))
    words = set() if frame.last in ("aliased", "star") else set(_EXPRESSION)
    if frame.last in ("aggregate", "filtered") and may_call(names, frames)[1]:
        words.add(b"over")
    if frame.last == "aggregate":
        words.add(b"filter")
    if frame.kind == "cast":
        words.add(b"as")
    elif frame.kind == "window":
        words |= _WINDOW
    elif frame.kind == "sources":
        words |= _JOINS
    elif frame.kind == "query":
        if query.clause == "order" and query.compound:
            return Expected(_BEHIND["order"] | {b"collate"})
        if query.clause in ("select", "returning"):
            free = frame.last not in ("aliased", "star")
            barred: set[bytes] = set()
            if query.clause == "select":
                ends = EXPECTED_END if _ends(names, frames) else frozenset()
                start = {b"from"} if wide_enough(frame, query) else set[bytes]()
                words |= ends | start
                barred |= (EXPECTED_END | {b"from"}) - ends - start
            return Expected(
                frozenset(words | ({b"as"} if free else set())), free=free, barred=frozenset(barred)
            )
        if query.clause == "on":
            words |= _JOINS | (EXPECTED_END if _ends(names, frames) else frozenset())
        else:
            words |= _BEHIND.get(query.clause, EXPECTED_END)
            if query.clause == "set" and not _ends(names, frames):
                words -= {b"where", b"returning"}
    return Expected(frozenset(words))


def _ends(names: Names, frames: Frames) -> bool:
    """True when the query has all sources that it needs."""
    return closed(names, frames, len(frames) - 1) is not None


def wide_enough(frame: Frame, query: Query) -> bool:
    """True when the query has as many results as are asked for, as far as that is known."""
    return query.expected is None or bool(query.stars) or frame.commas + 1 == query.expected


def _columns(names: Names, frame: Frame, query: Query) -> frozenset[bytes]:
    if frame.kind != "using":
        return query.sources[0].columns or frozenset()
    *earlier, joined = (names.columns if one.columns is None else one.columns for one in query.sources)
    return joined & frozenset().union(*earlier)


def _sources(names: Names, frame: Frame, query: Query) -> frozenset[bytes]:
    if query.clause == "target":
        return frozenset(names.tables) | ({b"or"} if frame.last == "update" else frozenset())
    words = {b"json_each", b"json_tree"} | ({b"select", b"values"} if frame.kind == "sources" else set())
    room = None
    if query.stars and query.expected is not None:
        room = query.expected - sum(len(one.columns or ()) for one in query.sources)
    for table, columns in names.tables.items():
        if (room is None or names.widths[table] <= room) and added(query, Source(table, columns)) is not None:
            words.add(table)
    return frozenset(words)


def _tail(names: Names, frames: Frames, frame: Frame, query: Query) -> Expected:
    need = unclear(query)
    name = query.sources[-1].name
    # `singer.name FROM singer AS s` would need a second singer.
    named = need != "alias" and any(name == qualifier for qualifier, _ in query.qualified)
    aliases = frame.last in ("table", "derived") and not (named and name)
    words = {b"as"} if aliases else set()
    joined = query.join == "join" and frame.last != "using" and len(query.sources) > 1
    if joined and need != "alias":
        words |= {b"using"} if _columns(names, frame._replace(kind="using"), query) else set()
    if not need:
        words |= _JOINS | ({b"on"} if joined else set())
        if frame.kind == "query" and _ends(names, frames):
            words |= EXPECTED_END
    return Expected(frozenset(words), aliases, barred=_barred_aliases(names, query))


def _barred_aliases(names: Names, query: Query) -> frozenset[bytes]:
    """Aliases that another source has, or that must be of a table with other columns."""
    taken = {source.name for source in query.sources}
    columns = query.sources[-1].columns
    if columns is not None:
        taken |= {qualifier for qualifier, column in query.qualified if column not in (b"*", *columns)}
    return frozenset(taken)
