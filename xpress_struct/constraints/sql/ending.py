"""A short end for an SQL statement, made from what is open: brackets, arguments, tables that were used."""

from __future__ import annotations

from collections.abc import Iterator

from xpress_struct.constraints.sql.expected import arguments, expected, wide_enough
from xpress_struct.constraints.sql.frames import Frames, Query, innermost
from xpress_struct.constraints.sql.reading import (
    AFTER_WORD,
    BETWEEN,
    QUOTED,
    STRING,
    WORD,
    Place,
    ends,
    follow,
    settled,
)
from xpress_struct.constraints.sql.scope import STAR, Names, givers, visible

__all__ = ["ending"]

_MOST_PIECES = 40


def ending(names: Names, place: Place) -> bytes | None:
    """Text that ends the statement, b"" where it may end as it is; None where none is thought of.

    A guess: the reader takes it, the grammar may not (it knows of CASE, for one).
    """
    text = b""
    for _ in range(_MOST_PIECES):
        if not place.frames:
            return None
        if place.mode not in (STRING, QUOTED) and ends(names, place):
            return text
        for piece in _pieces(names, place):
            behind = follow(names, place, piece)
            if behind is not None and behind != place:
                text, place = text + piece, behind
                break
        else:
            return None
    return None


def _pieces(names: Names, place: Place) -> Iterator[bytes]:
    """What may come next to get on, best first."""
    if place.mode in (STRING, QUOTED):
        yield b"'" if place.mode == STRING else b'"'
        return
    read = place if place.mode == BETWEEN else settled(names, place)
    if read is not None:
        blank = place.mode == WORD
        for piece in _behind(names, read.frames):
            yield b" " + piece if blank and piece[:1] not in b" ,()" else piece
    if place.mode in (WORD, AFTER_WORD):
        yield b"("
    if place.mode == WORD:
        words = [word for word in expected(names, place.frames).words if word.startswith(place.text)]
        # A column is an operand by itself; a function is not.
        words.sort(key=lambda word: (word not in names.columns, _shortest(word)))
        yield from (word[len(place.text) :] for word in words if word != place.text)


def _behind(names: Names, frames: Frames) -> Iterator[bytes]:
    """What may come where the next word or sign begins."""
    frame = frames[-1]
    if frame.want in ("column", "qualified"):
        yield from (_spelled(names, each) for each in sorted(names.columns, key=_shortest))
    elif frame.want == "operand":
        columns = [_spelled(names, each) for each in sorted(visible(names, frames), key=_shortest)]
        # GROUP BY 1 is the first result, which may be an aggregate.
        grouping = frame.query is not None and frame.query.clause == "group"
        yield from (*columns, b"1") if grouping else (b"1", *columns)
        yield b")"
    elif frame.want == "source":
        yield from _sources(names, frames[innermost(frames)].inside)
    elif frame.last == "window":
        yield b" OVER ()"
    elif frame.query is None:
        if frame.kind == "call" and not arguments(frame.numbers, frame.commas + 1):
            yield b", 1"
        if frame.kind == "cast":
            yield b" AS text"
        if frame.kind == "sources":
            yield from _more(names, frames[innermost(frames)].inside)
        yield b")"
    else:
        if not wide_enough(frame, frame.query):
            yield b", 1"
        yield b")"
        yield from _more(names, frame.query)


def _more(names: Names, query: Query) -> Iterator[bytes]:
    # Behind a comma a column of two sources would be ambiguous.
    joins = (b", ", b" NATURAL JOIN ") if query.sources or query.clause == "from" else (b" FROM ",)
    yield from (join + source for join in joins for source in _sources(names, query))


def _sources(names: Names, query: Query) -> Iterator[bytes]:
    """Sources that the query needs or may have, those it lacks first."""
    called = {source.name for source in query.sources}
    for qualifier in sorted({qualifier for qualifier, _ in query.qualified} - called):
        wanted = {column for name, column in query.qualified if name == qualifier} - {STAR}
        if wanted <= names.tables.get(qualifier, frozenset()):
            yield _spelled(names, qualifier)
        for table in sorted(names.tables, key=_shortest):
            if wanted <= names.tables[table]:
                yield _spelled(names, table) + b" AS " + qualifier
    lacking = {column for column in query.uses if not givers(query.sources, column)}
    # The table that gives most of what is lacking.
    yield from (
        _spelled(names, table)
        for table in sorted(names.tables, key=lambda each: (-len(names.tables[each] & lacking), each))
    )


def _spelled(names: Names, name: bytes) -> bytes:
    return name if names.plain(name) else b'"' + name.replace(b'"', b'""') + b'"'


def _shortest(name: bytes) -> tuple[int, bytes]:
    return len(name), name
