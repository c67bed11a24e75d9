"""A reader of SQL statements, byte by byte, that knows which names can come."""

from __future__ import annotations

from typing import NamedTuple

from xpress_struct.constraints.sql import clauses, signs
from xpress_struct.constraints.sql.clauses import UNKNOWN
from xpress_struct.constraints.sql.expected import expected, prefixes
from xpress_struct.constraints.sql.frames import Frame, Frames, Query
from xpress_struct.constraints.sql.scope import Names

__all__ = [
    "AFTER_WORD",
    "BETWEEN",
    "NUMBER",
    "QUOTED",
    "START",
    "STRING",
    "UNKNOWN_PLACE",
    "WORD",
    "Place",
    "ends",
    "follow",
    "settled",
]

BETWEEN, WORD, AFTER_WORD, NUMBER, STRING, STRING_END, QUOTED, QUOTED_END, AFTER_QUOTED = range(9)

_WORD_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_DIGITS = frozenset(b"0123456789")
_BLANKS = frozenset(b" \t\n\r")
_APOSTROPHE, _QUOTE, _DOT, _OPEN = b"'\".("
_NO_NAME = b"\x00"


class Place(NamedTuple):
    """Where a statement stands: what is open, and the word, number or quoted name that is not read yet."""

    frames: Frames
    mode: int = BETWEEN
    text: bytes = b""


START = Place((Frame("query", "word", "start", query=Query()),))

UNKNOWN_PLACE = Place(UNKNOWN)


def follow(names: Names, place: Place, data: bytes) -> Place | None:
    """The place behind some bytes of a legal statement; None where they cannot lead to one SQLite takes."""
    at: Place | None = place
    for byte in data:
        assert at is not None
        at = _step(names, at, byte)
        if at is None:
            return None
    assert at is not None
    return at if _viable(names, at) else None


def settled(names: Names, place: Place) -> Place | None:
    """The place with its word or name read, where another word comes next; None where none can."""
    frames = _read(names, place, False)
    return None if frames is None else Place(frames)


def ends(names: Names, place: Place) -> bool:
    """True when the statement may end here."""
    if place.frames == UNKNOWN:
        return True
    frames = _read(names, place, False)
    return frames is not None and len(frames) == 1 and signs.finished(names, frames) is not None


def _step(names: Names, place: Place, byte: int) -> Place | None:
    frames, mode, text = place
    if frames == UNKNOWN:
        return place
    if mode == STRING:
        return place if byte != _APOSTROPHE else Place(frames, STRING_END)
    if mode == QUOTED:
        if byte == _QUOTE:
            return Place(frames, QUOTED_END, text)
        return Place(frames, QUOTED, _grown(names, text, byte))
    if byte in _WORD_BYTES:
        if mode in (WORD, NUMBER):
            return Place(frames, mode, text + bytes((byte,)).lower())
        read = _read(names, place, False)
        start = NUMBER if byte in _DIGITS else WORD
        return None if read is None else _unless_unknown(read, start, bytes((byte,)).lower())
    if byte in _BLANKS:
        if mode in (WORD, AFTER_WORD):
            return Place(frames, AFTER_WORD, text)
        if mode in (QUOTED_END, AFTER_QUOTED):
            return Place(frames, AFTER_QUOTED, text)
        read = _read(names, place, False)
        return None if read is None else Place(read)
    if byte == _DOT and mode in (NUMBER, BETWEEN):
        return Place(frames, NUMBER, text + b".")
    if byte == _DOT:
        read = clauses.qualifier(names, frames, text) if mode in (WORD, QUOTED_END) else None
        return None if read is None else Place(read)
    if byte == _APOSTROPHE:
        if mode == STRING_END:
            return Place(frames, STRING)
        read = frames if mode == WORD and text == b"x" else _read(names, place, False)
        read = clauses.string(read) if read else read
        return None if read is None else _unless_unknown(read, STRING, b"")
    if byte == _QUOTE:
        if mode == QUOTED_END:
            return Place(frames, QUOTED, _grown(names, text, byte))
        read = _read(names, place, False)
        if read is None or (read and read[-1].last == "window"):
            return None
        return _unless_unknown(read, QUOTED, b"")
    read = _read(names, place, byte == _OPEN)
    if not read:
        return None if read is None else Place(UNKNOWN)
    if byte == _OPEN and len(read) > len(frames):
        return Place(read)  # a call
    read = signs.sign(names, read, chr(byte))
    return None if read is None else Place(read)


def _unless_unknown(frames: Frames, mode: int, text: bytes) -> Place:
    return Place(frames, mode, text) if frames != UNKNOWN else Place(frames)


def _grown(names: Names, text: bytes, byte: int) -> bytes:
    """The content of open quotes, as long as a name begins so."""
    grown = text + bytes((byte,)).lower()
    return grown if names.begins(grown) else _NO_NAME


def _read(names: Names, place: Place, opens: bool) -> Frames | None:
    """The frames behind the word, number or quoted name that ended."""
    frames, mode, text = place
    if mode in (WORD, AFTER_WORD):
        return clauses.word(names, frames, text, opens)
    if mode == NUMBER:
        return clauses.number(frames, text)
    if mode in (QUOTED_END, AFTER_QUOTED):
        return clauses.quoted(names, frames, text)
    return frames


def _viable(names: Names, place: Place) -> bool:
    """False when what is open cannot become anything that may come."""
    frames, mode, text = place
    if frames == UNKNOWN or mode in (BETWEEN, STRING, STRING_END):
        return True
    if mode == WORD:
        return expected(names, frames).begins(names, text)
    if mode == AFTER_WORD:
        return _read(names, place, False) is not None or _read(names, place, True) is not None
    if mode == QUOTED:
        if frames[-1].want not in ("source", "column", "qualified"):
            return True
        return text in prefixes(expected(names, frames).words)
    if mode == QUOTED_END and clauses.qualifier(names, frames, text) is not None:
        return True
    return _read(names, place, False) is not None
