"""What is open at a place of an SQL statement: brackets, and the queries that they stand in."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Frame", "Frames", "Query", "Source", "done", "innermost", "outer", "replaced", "top"]


class Source(NamedTuple):
    """A source of FROM: what it is called, and its columns, None when they are not known.

    `shared` columns are one with those of a source before it, by USING or NATURAL.
    """

    name: bytes
    columns: frozenset[bytes] | None
    shared: frozenset[bytes] = frozenset()

    def has(self, column: bytes) -> bool:
        return self.columns is None or column in self.columns


class Query(NamedTuple):
    """One SELECT, or another statement, as far as it was read.

    Attributes:
        clause: where it stands.
        uses: columns without a qualifier that its sources must give.
        qualified: the same with qualifiers; the column `*` stands for all.
        sources: of FROM so far.
        closed: no source is added any more.
        stars: of the results, b"" for `*`, else the qualifier.
        width: how many results the query has, once known.
        expected: how many it must have.
        results: their names.
        bare: the column that is all of a result so far, b"" for none.
        compound: it stands behind a set operator.
        aggregate: it has an aggregate among its results.
        grouped: it has GROUP BY.
        derived: it is a source of FROM, and does not see the others.
        join: how the next source is added.
    """

    clause: str = "start"
    uses: frozenset[bytes] = frozenset()
    qualified: frozenset[tuple[bytes, bytes]] = frozenset()
    sources: tuple[Source, ...] = ()
    closed: bool = False
    stars: tuple[bytes, ...] = ()
    width: int | None = None
    expected: int | None = None
    results: frozenset[bytes] = frozenset()
    bare: bytes = b""
    compound: bool = False
    aggregate: bool = False
    grouped: bool = False
    derived: bool = False
    join: str = ""

    @property
    def open(self) -> bool:
        """True where FROM may still give what is used: among results, and in SET."""
        return not self.closed and self.clause in ("select", "set")

    @property
    def named(self) -> frozenset[bytes]:
        """Names of the results, with that of the last one."""
        return self.results | {self.bare} - {b""}


class Frame(NamedTuple):
    """An open bracket, or the statement itself.

    Attributes:
        kind: "query", "sources" (brackets in FROM), "call", "group", "in", "exists", "using", "columns",
            "row", "window", "filter", "cast", "free".
        want: what comes next: "operand", "operator", "column", "qualified", "source", "tail" (what
            follows a source), "alias", "table alias", "free" or "word".
        last: the word or sign that led there.
        commas: so far, at its own level.
        name: of a called function, or of the table that a statement changes.
        qualifier: that stands before a dot.
        numbers: of arguments that the call may have, -1 for any.
        query: of a query.
    """

    kind: str
    want: str
    last: str = "("
    commas: int = 0
    name: bytes = b""
    qualifier: bytes = b""
    numbers: frozenset[int] = frozenset()
    query: Query | None = None

    @property
    def at_term(self) -> bool:
        """True where a result, or a term of GROUP BY or ORDER BY, begins."""
        return self.query is not None and self.last in ("select", "distinct", "all", ",", "by")

    @property
    def inside(self) -> Query:
        assert self.query is not None
        return self.query


Frames = tuple[Frame, ...]
"""From the statement to the innermost bracket."""


def innermost(frames: Frames) -> int:
    """Where the innermost query is."""
    place = len(frames) - 1
    while frames[place].query is None:
        place -= 1
    return place


def outer(frames: Frames, place: int) -> int | None:
    """Where the query is whose columns the query at `place` sees too, or None."""
    skip = frames[place].inside.derived
    for below in range(place - 1, -1, -1):
        if frames[below].query is not None:
            if not skip:
                return below
            skip = frames[below].inside.derived
    return None


def replaced(frames: Frames, place: int, **changes: object) -> Frames:
    """The frames with another state of the query at `place`."""
    frame = frames[place]
    changed = frame._replace(query=frame.inside._replace(**changes))  # type: ignore[arg-type]
    return (*frames[:place], changed, *frames[place + 1 :])


def top(frames: Frames, **changes: object) -> Frames:
    """The frames with another state of the innermost bracket."""
    return (*frames[:-1], frames[-1]._replace(**changes))  # type: ignore[arg-type]


def done(frames: Frames, last: str = "done", bare: bytes = b"") -> Frames:
    """The frames behind an operand; `bare`: it is this column."""
    frames = top(frames, want="operator", last=last)
    return frames if frames[-1].query is None else replaced(frames, len(frames) - 1, bare=bare)
