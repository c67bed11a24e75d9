"""How words, names and values move on in an SQL statement."""

from __future__ import annotations

from xpress_struct.constraints.sql.expected import callable_, expected, may_call, takes_more
from xpress_struct.constraints.sql.frames import Frame, Frames, Query, Source, done, innermost, replaced, top
from xpress_struct.constraints.sql.scope import (
    Names,
    added,
    closed,
    qualified,
    qualifiers,
    used,
)

__all__ = ["UNKNOWN", "joined", "limits_numbers", "number", "qualifier", "quoted", "string", "word"]

UNKNOWN: Frames = ()
"""Nothing is known any more: all is left to SQLite."""

_TO_OPERAND = frozenset(
    b"and or like glob escape between when then else case where by having on limit offset distinct "
    b"all".split()
)
_TO_OPERATOR = frozenset(
    b"null true false current_date current_time current_timestamp isnull notnull end asc desc first last "
    b"preceding following row".split()
)
_SIDES = frozenset(b"left right full inner cross outer".split())
_SETS = frozenset(b"union intersect except".split())


def word(names: Names, frames: Frames, text: bytes, opens: bool) -> Frames | None:
    """The frames behind a word; `opens`: a bracket follows. None where the word cannot come."""
    frame = frames[-1]
    if not expected(names, frames).takes(names, text):
        return None
    want = frame.want
    if text in names.reserved or want == "word":
        return _keyword(names, frames, text.decode(errors="replace"))
    if want == "operand":
        return _called(names, frames, text) if opens else _used(names, frames, text)
    if want == "qualified":
        found = qualified(names, frames, frame.qualifier, text)
        return found and _column_done(found, text)
    if want == "source":
        return _source(names, frames, text, opens)
    if want == "column":
        return _column(names, frames, text)
    if want in ("tail", "table alias"):
        return _renamed(frames, text)
    if want == "free":
        return done(frames) if frame.last == "collate" else frames
    return _alias(frames, text)


def _used(names: Names, frames: Frames, text: bytes) -> Frames | None:
    if limits_numbers(frames):
        query = frames[-1].inside
        if text in query.results:
            return _column_done(frames, text)
        if query.compound and query.clause == "order":
            return None
    found = used(names, frames, text)
    return found and _column_done(found, text)


def _column_done(frames: Frames, text: bytes) -> Frames:
    """The frames behind a column."""
    frame = frames[-1]
    return done(frames, bare=text if frame.at_term else b"")


def _called(names: Names, frames: Frames, text: bytes) -> Frames | None:
    numbers = callable_(names, *may_call(names, frames)).get(text)
    if not numbers:
        return None
    if not takes_more(numbers, 0):
        return (*frames, Frame("call", "operator", "star", name=text, numbers=numbers))
    return (*frames, Frame("call", "operand", name=text, numbers=numbers))


def _source(names: Names, frames: Frames, text: bytes, opens: bool) -> Frames | None:
    place = innermost(frames)
    query = frames[place].inside
    if opens and text in (b"json_each", b"json_tree"):
        return (*frames, Frame("call", "operand", name=text, numbers=frozenset((1, 2))))
    if text not in names.tables:
        return None
    source = Source(text, names.tables[text])
    if query.clause == "target":
        width = names.widths[text] if frames[-1].last == "into" else None
        changing = frames[-1].last in ("into", "from")
        frames = replaced(frames, place, sources=(source,), closed=changing, expected=width)
        return top(frames, want="word", last="target", name=text)
    return joined(frames, source, "table")


def joined(frames: Frames, source: Source, last: str) -> Frames | None:
    """The frames behind one more source of FROM."""
    place = innermost(frames)
    more = added(frames[place].inside, source)
    if more is None:
        return None
    return top(replaced(frames, place, **more._asdict()), want="tail", last=last)


def _renamed(frames: Frames, text: bytes) -> Frames:
    place = innermost(frames)
    *earlier, last = frames[place].inside.sources
    frames = replaced(frames, place, sources=(*earlier, last._replace(name=text)))
    return top(frames, want="word" if frames[place].inside.clause == "target" else "tail", last="aliased")


def _column(names: Names, frames: Frames, text: bytes) -> Frames | None:
    if frames[-1].kind == "using":
        place = innermost(frames)
        *earlier, last = frames[place].inside.sources
        frames = replaced(frames, place, sources=(*earlier, last._replace(shared=last.shared | {text})))
    return done(frames)


def _alias(frames: Frames, text: bytes) -> Frames:
    """A name of a result."""
    place = innermost(frames)
    frames = replaced(frames, place, results=frames[place].inside.results | {text})
    return done(frames, "aliased")


def _keyword(names: Names, frames: Frames, text: str) -> Frames | None:
    frame, place = frames[-1], innermost(frames)
    if text == "with":
        return UNKNOWN
    if frame.query is not None:
        moved = _clause(names, frames, text)
        if moved is not frames:
            return moved
    if text in ("select", "values"):
        scalar = 1 if frame.kind in ("group", "in") else None
        start = Query(expected=scalar, derived=frame.kind == "sources")
        return _clause(names, (*frames[:-1], Frame("query", "word", query=start)), text)
    if text == "not":
        after = {"operand": "operand", "operator": "word"}.get(frame.want, "word")
        return top(frames, want=after, last="is not" if frame.last == "is" else "not")
    if text == "distinct" and frame.last in ("is", "is not"):
        return top(frames, want="word", last="is distinct")
    if text == "from" and frame.last == "is distinct":
        return top(frames, want="operand", last="is")
    if text in ("distinct", "all") and frame.kind == "call":
        return top(frames, last="distinct", numbers=frozenset((1,)))
    if text.encode() in _SIDES or text in ("natural", "join"):
        return _join(frames, text)
    if text == "on":
        return top(replaced(frames, place, clause="on"), want="operand", last="on")
    if text == "as":
        return _as(frames)
    if text == "is":
        return top(frames, want="operand", last="is")
    if text == "collate":
        return top(frames, want="free", last="collate")
    if frame.kind == "window" and text in ("rows", "range", "groups"):
        return top(frames, want="operand", last="frame")
    if text.encode() in _TO_OPERAND:
        return top(frames, want="operand", last=text)
    if text.encode() in _TO_OPERATOR:
        return done(frames)
    return top(frames, want="word", last=text)


def _join(frames: Frames, text: str) -> Frames:
    place, last = innermost(frames), frames[-1].last
    join = "natural" if text == "natural" or (frames[-1].want == "word" and last == "natural") else "join"
    frames = replaced(frames, place, join=join, clause="from")
    if text == "join":
        return top(frames, want="source", last=text)
    return top(frames, want="word", last="natural" if join == "natural" else text)


def _as(frames: Frames) -> Frames:
    frame = frames[-1]
    if frame.kind == "cast":
        return top(frames, want="free", last="type")
    clause = frames[innermost(frames)].inside.clause
    return top(frames, want="table alias" if clause in ("from", "target") else "alias", last="as")


def _clause(names: Names, frames: Frames, text: str) -> Frames | None:
    """The frames behind a word that begins a clause of the innermost query; as they were, if it does not."""
    frame, place = frames[-1], len(frames) - 1
    query = frame.inside
    if frame.want == "operand":
        return frames
    if text in ("insert", "replace") and query.clause == "start":
        return top(replaced(frames, place, clause="target"), want="word", last="insert")
    if text in ("update", "delete") and query.clause == "start":
        want = "source" if text == "update" else "word"
        return top(replaced(frames, place, clause="target"), want=want, last=text)
    if query.clause == "target":
        return _target(frames, text)
    if text == "select":
        return top(replaced(frames, place, clause="select"), want="operand", last="select", commas=0)
    if text == "values":
        return top(replaced(frames, place, clause="values", closed=True), want="word", last="values")
    if text == "from" and query.clause in ("select", "set") and frame.last != "is distinct":
        results = query.named if query.clause == "select" else query.results
        frames = replaced(frames, place, clause="from", results=results, bare=b"")
        return top(frames, want="source", last="from")
    if text == "on" and query.clause == "values":
        return UNKNOWN  # upsert
    if text == "by" and frame.last in ("group", "order"):
        frames = replaced(frames, place, clause=frame.last, bare=b"")
        return top(frames, want="operand", last="by")
    if text.encode() not in _SETS and text not in ("where", "group", "order", "having", "limit", "returning"):
        return frames
    over = closed(names, frames, place)
    if over is None:
        return None
    if text.encode() in _SETS:
        return _next_operand(over)
    if text == "group":
        over = replaced(over, place, grouped=True)
    if text in ("group", "order"):
        return top(over, want="word", last=text)
    if text == "returning":
        own = frames[0].name
        if own not in names.tables or len(frames) > 1:
            return None
        over = replaced(over, place, sources=(Source(own, names.tables[own]),))
        over = top(over, commas=0)
    return top(
        replaced(over, place, clause=text), want="operand", last="select" if text == "returning" else text
    )


def _target(frames: Frames, text: str) -> Frames:
    """Words around the table that a statement changes."""
    place, last = len(frames) - 1, frames[-1].last
    if text in ("into", "from") or (last == "or" and frames[0].name == b"update"):
        return top(frames, want="source", last=text)
    if text == "or":
        return top(frames, want="word", last=text, name=b"update" if last == "update" else b"")
    if text == "set":
        return top(replaced(frames, place, clause="set"), want="column", last=text)
    if text == "select":
        query = replaced(frames, place, clause="select", closed=False, sources=())
        return top(query, want="operand", last=text, commas=0)
    if text == "values" and last != "default":
        return top(replaced(frames, place, clause="values", sources=()), want="word", last=text)
    if text in ("where", "returning"):
        last = "select" if text == "returning" else text
        return top(replaced(frames, place, clause=text), want="operand", last=last, commas=0)
    if text == "as":
        return top(frames, want="table alias", last=text)
    return top(frames, want="word", last=text)


def _next_operand(frames: Frames) -> Frames:
    """The frames behind a set operator."""
    place = len(frames) - 1
    query = frames[place].inside
    width = query.expected if query.width is None else query.width
    new = Query(expected=width, results=query.results, derived=query.derived, compound=True)
    return top(replaced(frames, place, **new._asdict()), want="word", last="set", commas=0)


def quoted(names: Names, frames: Frames, text: bytes) -> Frames | None:
    """The frames behind a name or a text in double quotes."""
    frame = frames[-1]
    if frame.want == "operand":
        if frame.kind == "query" and frame.inside.compound and frame.inside.clause == "order":
            return done(frames) if text in frame.inside.results else None
        if text not in names.columns:
            return None if text in names.tables else done(frames)
        # SQLite takes a name that no source has for a text.
        found = _used(names, frames, text)
        return done(frames) if found is None and names.plain(text) else found
    if frame.want in ("operator", "alias"):
        return _alias(frames, text)
    if not expected(names, frames).takes(names, text):
        return None
    return word(names, frames, text, False) if frame.want != "source" else _source(names, frames, text, False)


def string(frames: Frames) -> Frames | None:
    """The frames behind a text in single quotes."""
    frame = frames[-1]
    if frame.want == "alias":
        return _alias(frames, b"'")
    if frame.kind == "query" and frame.inside.compound and frame.inside.clause == "order":
        return None
    return done(frames)


def limits_numbers(frames: Frames) -> bool:
    """True where a number, alone, is that of a result: in ORDER BY and GROUP BY."""
    frame = frames[-1]
    return frame.query is not None and frame.query.clause in ("order", "group") and frame.last in ("by", ",")


def number(frames: Frames, text: bytes) -> Frames | None:
    """The frames behind a number."""
    frame = frames[-1]
    if frame.want != "operand":
        return frames if frame.want == "free" else None
    if limits_numbers(frames):
        query = frame.inside
        if query.compound and not text.isdigit():
            return None
        if text.isdigit() and query.width is not None and not 0 < int(text) <= query.width:
            return None
    return done(frames)


def qualifier(names: Names, frames: Frames, text: bytes) -> Frames | None:
    """The frames behind `name.`."""
    found, aliases = qualifiers(names, frames)
    if frames[-1].want != "operand" or not (text in found or (aliases and names.alias(text))):
        return None
    return top(frames, want="qualified", qualifier=text)
