"""From a JSON Schema pattern to a regular language, and from a language to the engine's syntax.

`language` gives the set of whole texts in which the pattern is found (JSON Schema searches, it does not
anchor); `written` gives a regular expression for Rust's `regex` syntax, without look-around.
"""

from __future__ import annotations

from functools import lru_cache

from . import charset as cs
from . import regular as rx
from .automaton import automaton, to_regex
from .ecma import parse
from .ecma_nodes import Alt, Cat, Class, End, Look, Node, PatternError, Rep, Start

__all__ = ["MAX_TEXT", "language", "plain", "written"]

MAX_TEXT = 200_000
"""Longest regular expression (characters) that is handed to the engine."""
LONG = 100
"""Bounded repetitions from which on the engine may fail to prove two patterns disjoint."""
MAX_MADE_TEXT = 20_000
"""Longest one that is made from an automaton: beyond it, the engine's lexer is slow or refuses it."""

_NUL = cs.make([(0, 0)])
_SPECIAL = frozenset("\\.+*?()|[]{}^$#&-~/ ")


def _char(code: int) -> str:
    ch = chr(code)
    if ch.isascii() and (ch.isalnum() or ch == "_"):
        return ch
    if code > 0xFF:
        return f"\\x{{{code:x}}}"
    if ch in _SPECIAL or code < 0x21 or code > 0x7E:
        return f"\\x{code:02x}"
    return ch


def _single(charset: cs.Charset) -> set[int]:
    return {c for c in (0x22, 0x5C) if any(low <= c <= high for low, high in charset)}


@lru_cache(maxsize=8192)
def _class(charset: cs.Charset) -> str:
    if charset == cs.ANY:
        return "(?s:.)"
    if charset[0][0] == charset[-1][1]:
        return _char(charset[0][0])
    if charset[0][0] == 0 and not {0x22, 0x5C} <= _single(charset):
        # llguidance 1.9.1 lets every escape, also of a quote and a backslash, into a class that holds all of
        # U+0000 to U+001F: without U+0000 the class is taken exactly
        charset = cs.subtract(charset, _NUL)
    body, sign = charset, ""
    outside = cs.complement(charset)
    if outside and len(outside) < len(charset):
        body, sign = outside, "^"
    text = "".join(_char(low) if low == high else f"{_char(low)}-{_char(high)}" for low, high in body)
    return f"[{sign}{text}]"


def _bounds(low: int, high: int | None) -> str:
    plain = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((low, high))
    if plain:
        return plain
    if high is None:
        return f"{{{low},}}"
    return f"{{{low}}}" if low == high else f"{{{low},{high}}}"


def plain(r: rx.Regex) -> str:
    if r.kind == "nothing":
        return "[a&&b]"
    if r.kind == "empty":
        return "(?:)"
    if r.kind == "set":
        return _class(r.charset)
    if r.kind == "cat":
        return "".join(_grouped(p, "alt") for p in r.parts)
    if r.kind == "alt":
        rest = [p for p in r.parts if p is not rx.EPSILON]
        if len(rest) < len(r.parts):
            body = rest[0] if len(rest) == 1 else rx.alt(*rest)
            return _grouped(body, "alt", "cat", "rep") + "?"
        return "|".join(plain(p) for p in rest)
    return _grouped(r.parts[0], "alt", "cat", "rep") + _bounds(*r.bounds)


def _grouped(r: rx.Regex, *kinds: str) -> str:
    text = plain(r)
    if r.kind == "alt" and rx.EPSILON in r.parts and kinds == ("alt",):
        return text  # already closed by its "?"
    return f"(?:{text})" if r.kind in kinds else text


def _simple_complement(r: rx.Regex, long: bool) -> rx.Regex | None:
    """The complement of a plain sequence of characters and repeated characters, without an automaton.

    Without `long`, texts that are only wrong by their length above LONG are left out.
    """
    if r is rx.EPSILON:
        return rx.any_of_length(1, None)
    if r is rx.ALL:
        return rx.NOTHING
    if r.kind == "set" or (r.kind == "cat" and r.parts[0].kind == "set"):
        first = r if r.kind == "set" else r.parts[0]
        rest = _simple_complement(rx.cat(*r.parts[1:]) if r.kind == "cat" else rx.EPSILON, long)
        if rest is None:
            return None
        other = rx.cat(rx.chars(cs.complement(first.charset)), rx.ALL)
        return rx.alt(rx.EPSILON, other, rx.cat(first, rest))
    if r.kind == "rep" and r.parts[0].kind == "set":
        low, high = r.bounds
        one = r.parts[0]
        options = [rx.cat(rx.ALL, rx.chars(cs.complement(one.charset)), rx.ALL)]
        if low:
            options.append(rx.repeat(one, 0, low - 1))
        if high is not None and (long or high < LONG):
            options.append(rx.repeat(one, high + 1, None))
        return rx.alt(*options)
    return None


def _shorter(r: rx.Regex) -> rx.Regex:
    """A part of `r`: no repetition that stands in it positively goes beyond LONG."""
    if r.kind == "rep":
        low, high = r.bounds
        body = _shorter(r.parts[0])
        return rx.repeat(body, low, max(low, min(high, LONG)) if high is not None else None)
    if r.kind in ("cat", "alt", "and"):
        make = {"cat": rx.cat, "alt": rx.alt, "and": rx.both}[r.kind]
        return make(*(_shorter(p) for p in r.parts))
    return r


def _plainer(r: rx.Regex, long: bool, depth: int = 0) -> rx.Regex:
    """`r` without "and" and "not".

    Raises:
        TooComplexError: its automaton exceeds the limits, and so do those of its parts.
    """
    if rx.is_plain(r):
        return r
    if r.kind == "not":
        outside = _simple_complement(r.parts[0], long)
        if outside is not None:
            return outside
    try:
        made = to_regex(automaton(r))
        if _length(made, {}) > MAX_MADE_TEXT:
            raise rx.TooComplexError("the regular expression grows too long")
        return made
    except rx.TooComplexError:
        complements = [p for p in r.parts if p.kind == "not"] if r.kind == "and" else []
        if depth > 1 or len(complements) > 2:
            raise
        for part in complements:
            # long repetitions: the "and" of each alternative of the complement is small
            outside = _simple_complement(part.parts[0], long)
            if outside is not None:
                others = [p for p in r.parts if p is not part]
                options = outside.parts if outside.kind == "alt" else (outside,)
                return rx.alt(*(_plainer(rx.both(o, *others), long, depth + 1) for o in options))
        raise


def _length(r: rx.Regex, known: dict[int, int]) -> int:
    """About the number of characters of `plain(r)`; shared parts are counted wherever they stand."""
    found = known.get(r.serial)
    if found is None:
        own = len(_class(r.charset)) if r.kind == "set" else 4
        found = known[r.serial] = own + sum(_length(p, known) for p in r.parts)
    return found


@lru_cache(maxsize=2048)
def written(r: rx.Regex, *, long: bool = True) -> str | None:
    """Rust syntax for the whole texts of `r`, anchored at both ends; None when there are none.

    Without `long`, only for texts whose bounded repetitions stay within LONG.

    Raises:
        TooComplexError: `r` uses and/not and its automaton, or the text itself, exceeds the limits.
    """
    r = _plainer(r if long else _shorter(r), long)
    if r is rx.NOTHING:
        return None
    if _length(r, {}) > MAX_TEXT:
        raise rx.TooComplexError("the regular expression grows too long")
    return f"^(?:{plain(r)})$"


class _Translation:
    def __init__(self, either: bool) -> None:
        self.either = either

    def pure(self, node: Node) -> rx.Regex:
        """The texts that `node` itself consumes; it holds no anchor and no look-ahead."""
        if isinstance(node, Class):
            return rx.chars(node.either if self.either else node.both)
        if isinstance(node, Cat):
            return rx.cat(*(self.pure(p) for p in node.parts))
        if isinstance(node, Alt):
            return rx.alt(*(self.pure(p) for p in node.options))
        if isinstance(node, Rep):
            return rx.repeat(self.pure(node.body), node.low, node.high)
        raise PatternError("an anchor or look-ahead inside a repetition")

    def follow(self, node: Node, begin: bool, first: rx.Regex, later: rx.Regex) -> rx.Regex:
        """Rests of text in which `node` matches here and `first` or `later` matches after it.

        `begin` says that "here" is the start of the text; `first` is what follows when `node` consumed
        nothing there, `later` what follows anywhere else.
        """
        if not _has_assertion(node):
            body = self.pure(node)
            if not begin or first is later:
                return rx.cat(body, later)
            consumed = rx.cat(_non_empty(body), later)
            return rx.alt(first, consumed) if body.nullable else consumed
        if isinstance(node, Start):
            return first if begin else rx.NOTHING
        if isinstance(node, End):
            # Python's "$" also stands before a final newline
            end = rx.repeat(rx.literal("\n"), 0, 1) if self.either else rx.EPSILON
            return rx.both(end, first if begin else later)
        if isinstance(node, Look):
            inner = _Translation(self.either != node.negative)
            ahead = inner.follow(node.body, begin, rx.ALL, rx.ALL)
            return rx.both(rx.negate(ahead) if node.negative else ahead, first if begin else later)
        if isinstance(node, Alt):
            return rx.alt(*(self.follow(o, begin, first, later) for o in node.options))
        if isinstance(node, Cat):
            at_begin, elsewhere = first, later
            for part in reversed(node.parts):
                at_begin, elsewhere = (
                    self.follow(part, True, at_begin, elsewhere),
                    self.follow(part, False, elsewhere, elsewhere),
                )
            return at_begin if begin else elsewhere
        assert isinstance(node, Rep)
        if node.low == 0 and node.high == 1:
            return rx.alt(first if begin else later, self.follow(node.body, begin, first, later))
        if (node.low, node.high) == (1, 1):
            return self.follow(node.body, begin, first, later)
        raise PatternError("an anchor or look-ahead inside a repetition")


def _non_empty(body: rx.Regex) -> rx.Regex:
    if not body.nullable:
        return body
    if body.kind == "rep" and body.bounds[0] == 0 and not body.parts[0].nullable:
        return rx.repeat(body.parts[0], 1, body.bounds[1])
    return rx.both(body, rx.any_of_length(1, None))


def _has_assertion(node: Node) -> bool:
    if isinstance(node, (Start, End, Look)):
        return True
    if isinstance(node, Rep):
        return _has_assertion(node.body)
    if isinstance(node, (Cat, Alt)):
        return any(_has_assertion(p) for p in (node.parts if isinstance(node, Cat) else node.options))
    return False


@lru_cache(maxsize=4096)
def language(pattern: str, *, either: bool = False) -> rx.Regex:
    """Texts in which `pattern` is found by every dialect, or (`either`) by at least one of them.

    Raises:
        PatternError: see `ecma.parse`.
    """
    tree = parse(pattern)
    reading = _Translation(either)
    here = reading.follow(tree, True, rx.ALL, rx.ALL)
    beyond = reading.follow(tree, False, rx.ALL, rx.ALL)
    if beyond is rx.NOTHING:
        return here
    if here is beyond:
        return rx.cat(rx.ALL, here)
    return rx.alt(here, rx.cat(rx.any_of_length(1, None), beyond))
