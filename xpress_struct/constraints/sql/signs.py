"""How signs move on in an SQL statement: brackets, commas, stars and operators."""

from __future__ import annotations

from xpress_struct.constraints.sql.clauses import joined
from xpress_struct.constraints.sql.expected import arguments, takes_more
from xpress_struct.constraints.sql.frames import Frame, Frames, Source, done, innermost, replaced, top
from xpress_struct.constraints.sql.scope import STAR, Names, closed, qualified, unclear

__all__ = ["finished", "sign"]

_BRACKETS = {
    "in": Frame("in", "operand"),
    "exists": Frame("exists", "word"),
    "cast": Frame("cast", "operand"),
    "over": Frame("window", "word"),
    "filter": Frame("filter", "word"),
    "using": Frame("using", "column"),
    "values": Frame("row", "operand"),
    "row": Frame("row", "operand"),
    "target": Frame("columns", "column"),
}


def sign(names: Names, frames: Frames, char: str) -> Frames | None:
    """The frames behind a sign that is no part of a name, a number or a text."""
    frame = frames[-1]
    if frame.last == "window" and frame.want == "operator":
        return None
    if char == "(":
        return _opened(frames)
    if char == ")":
        return _closed(names, frames)
    if char == ",":
        return _comma(names, frames)
    if char == ";":
        return finished(names, frames)
    if char == "*" and frame.want in ("operand", "qualified"):
        return _star(names, frames)
    if frame.kind == "query" and frame.inside.compound and frame.inside.clause == "order":
        return None
    if frame.want == "operator" and frame.last not in ("aliased", "star"):
        frames = top(frames, want="operand", last="sign")
        return frames if frame.query is None else replaced(frames, len(frames) - 1, bare=b"")
    return frames if frame.want == "operand" else None


def _opened(frames: Frames) -> Frames | None:
    frame = frames[-1]
    if frame.want == "operand":
        if frame.kind == "query" and frame.inside.compound and frame.inside.clause == "order":
            return None
        return (*frames, Frame("group", "operand"))
    if frame.want == "source":
        return (*frames, Frame("sources", "source"))
    if frame.want == "free":
        return (*frames, Frame("free", "free"))
    if frame.want == "word":
        target = frame.query is not None and frame.query.clause == "target"
        opened = _BRACKETS.get("target" if target else frame.last)
        return opened and (*frames, opened)
    return None


def _closed(names: Names, frames: Frames) -> Frames | None:
    frame, below = frames[-1], frames[:-1]
    if not below:
        return None
    if frame.query is not None:
        over = finished(names, frames)
        if over is None:
            return None
        below = over[:-1]
        return joined(below, Source(b"", None), "derived") if frame.query.derived else done(below)
    if frame.kind == "call":
        return _returned(names, frames)
    place = innermost(below)
    query = below[place].inside
    if frame.kind == "sources":
        return None if unclear(query) else top(below, want="tail", last="group")
    if frame.kind == "using":
        return None if unclear(query) else top(below, want="tail", last="using")
    if frame.kind == "columns":
        below = replaced(below, place, expected=frame.commas + 1)
        return top(below, want="word", last="columns")
    if frame.kind == "row":
        if query.expected not in (None, frame.commas + 1):
            return None
        below = replaced(below, place, expected=frame.commas + 1, width=frame.commas + 1)
        return top(below, want="word", last="row")
    if frame.kind == "free":
        return top(below, want="free")
    return done(below, "filtered" if frame.kind == "filter" else "done")


def _returned(names: Names, frames: Frames) -> Frames | None:
    """The frames behind a call."""
    frame, below = frames[-1], frames[:-1]
    count = 0 if (frame.want == "operand" and frame.last == "(") or frame.last == "star" else frame.commas + 1
    if not arguments(frame.numbers, count):
        return None
    if below[-1].want == "source":
        return joined(below, Source(frame.name, None), "table")
    function = names.functions[frame.name]
    last = "done"
    if function.window_only:
        last = "window"
    elif count in function.aggregate:
        last = "aggregate"
        below = replaced(below, innermost(below), aggregate=True)
    return done(below, last)


def _star(names: Names, frames: Frames) -> Frames | None:
    frame = frames[-1]
    if frame.kind == "call":
        counts = frame.name == b"count" and frame.last == "(" and 0 in frame.numbers
        return top(frames, want="operator", last="star") if counts else None
    if frame.kind != "query" or frame.inside.clause not in ("select", "returning"):
        return None
    if frame.last not in ("select", "distinct", "all", ","):
        return None
    query = frame.inside
    if query.expected is not None and query.expected - frame.commas not in names.widths.values():
        return None
    if frame.want == "qualified" and query.clause == "returning":
        return None
    star = b""
    found: Frames | None = frames
    if frame.want == "qualified":
        star, found = frame.qualifier, qualified(names, frames, frame.qualifier, STAR)
    return found and done(replaced(found, len(frames) - 1, stars=(*query.stars, star)), "star")


def _comma(names: Names, frames: Frames) -> Frames | None:
    frame = frames[-1]
    if frame.kind in ("call", "row"):
        numbers = frame.numbers
        if frame.kind == "row":
            needed = frames[innermost(frames)].inside.expected
            numbers = frozenset((-1 if needed is None else needed,))
        if not takes_more(numbers, frame.commas + 1) or frame.last == "star":
            return None
        return top(frames, want="operand", last=",", commas=frame.commas + 1)
    if frame.kind == "group":
        return None
    if frame.want == "tail":
        return _another(frames)
    if frame.query is None:
        want = {"using": "column", "columns": "column", "free": "free"}.get(frame.kind, "operand")
        return (
            _another(frames)
            if frame.kind == "sources"
            else top(frames, want=want, last=",", commas=frame.commas + 1)
        )
    query, place = frame.query, len(frames) - 1
    if query.clause == "select":
        if query.expected is not None and frame.commas + 2 > query.expected:
            return None
        frames = replaced(frames, place, results=query.named)
    if query.clause == "on":
        return _another(frames)
    want = {"set": "column", "values": "word"}.get(query.clause, "operand")
    frames = replaced(frames, place, bare=b"")
    return top(frames, want=want, last="row" if want == "word" else ",", commas=frame.commas + 1)


def _another(frames: Frames) -> Frames | None:
    place = innermost(frames)
    if unclear(frames[place].inside):
        return None
    return top(replaced(frames, place, clause="from", join=""), want="source", last=",")


def finished(names: Names, frames: Frames) -> Frames | None:
    """The frames at the end of a query; None where it lacks something."""
    frame = frames[-1]
    if frame.query is None or frame.want in ("operand", "source") or frame.last == "window":
        return None
    if frame.query.clause in ("select", "from", "on", "set"):
        return closed(names, frames, len(frames) - 1)
    return frames
