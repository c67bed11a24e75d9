"""Regular languages over Unicode text, closed under and/or/not, by derivatives (Brzozowski 1964).

Expressions are built by the functions below, which keep them in a normal form (associative, commutative,
idempotent), so that an expression has finitely many derivatives and equal ones are the same object.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import count

from . import charset as cs

__all__ = [
    "ALL",
    "EPSILON",
    "NON_EMPTY",
    "NOTHING",
    "Regex",
    "TooComplexError",
    "alt",
    "any_of_length",
    "both",
    "cat",
    "chars",
    "derive",
    "is_plain",
    "literal",
    "matches",
    "negate",
    "repeat",
    "trim_cache",
]


class TooComplexError(ValueError):
    """The automaton of an expression exceeds the size limits."""


@dataclass(frozen=True, eq=False)
class Regex:
    """One interned expression; compare with `is`."""

    kind: str  # nothing, empty, set, cat, alt, and, not, rep
    args: tuple[object, ...]
    nullable: bool
    serial: int

    @property
    def parts(self) -> tuple[Regex, ...]:
        return tuple(a for a in self.args if isinstance(a, Regex))

    @property
    def charset(self) -> cs.Charset:
        return self.args[0]  # type: ignore[return-value]

    @property
    def bounds(self) -> tuple[int, int | None]:
        return self.args[1], self.args[2]  # type: ignore[return-value]


_interned: dict[tuple[object, ...], Regex] = {}
_serials = count()
_MAX_INTERNED = 250_000
_KEPT = 50_000  # expressions that stay after a rewriting


def _make(kind: str, args: tuple[object, ...], nullable: bool) -> Regex:
    key = (kind, *(a.serial if isinstance(a, Regex) else a for a in args))
    found = _interned.get(key)
    if found is None:
        found = _interned[key] = Regex(kind, args, nullable, next(_serials))
    return found


def trim_cache() -> None:
    """Forget the expressions when there are many of them; those in use stay valid."""
    if len(_interned) > _KEPT:
        _interned.clear()
        _interned.update(_constants)
        _derive_cached.cache_clear()


NOTHING = _make("nothing", (), False)
EPSILON = _make("empty", (), True)
ALL = _make("rep", (_make("set", (cs.ANY,), False), 0, None), True)


NON_EMPTY = _make("rep", (ALL.args[0], 1, None), False)


_constants = dict(_interned)


def chars(charset: cs.Charset) -> Regex:
    return _make("set", (charset,), False) if charset else NOTHING


def cat(*parts: Regex) -> Regex:
    flat: list[Regex] = []
    for part in parts:
        if part is NOTHING:
            return NOTHING
        for piece in part.parts if part.kind == "cat" else () if part is EPSILON else (part,):
            if piece is not ALL or not flat or flat[-1] is not ALL:
                flat.append(piece)
    if not flat:
        return EPSILON
    if len(flat) == 1:
        return flat[0]
    return _make("cat", tuple(flat), all(p.nullable for p in flat))


def repeat(body: Regex, low: int, high: int | None) -> Regex:
    if high == 0 or body is EPSILON:
        return EPSILON
    if body is NOTHING:
        return EPSILON if low == 0 else NOTHING
    if (low, high) == (1, 1):
        return body
    if body.kind == "rep" and low == 0 and high is None and body.bounds[0] <= 1:
        return repeat(body.parts[0], 0, None) if body.bounds[1] is None else _rep(body, 0, None)
    return _rep(body, low, high)


def _rep(body: Regex, low: int, high: int | None) -> Regex:
    return _make("rep", (body, low, high), low == 0 or body.nullable)


def alt(*options: Regex) -> Regex:
    flat: dict[int, Regex] = {}
    sets: list[cs.Charset] = []
    for option in options:
        for part in option.parts if option.kind == "alt" else (option,):
            if part is ALL:
                return ALL
            if part.kind == "set":
                sets.append(part.charset)
            elif part is not NOTHING:
                flat[part.serial] = part
    if sets:
        joined = chars(cs.union(*sets))
        flat[joined.serial] = joined
    if EPSILON.serial in flat and any(p.nullable for p in flat.values() if p is not EPSILON):
        del flat[EPSILON.serial]
    if not flat:
        return NOTHING
    ordered = [flat[k] for k in sorted(flat)]
    if len(ordered) == 1:
        return ordered[0]
    return _make("alt", tuple(ordered), any(p.nullable for p in ordered))


def both(*options: Regex) -> Regex:
    flat: dict[int, Regex] = {}
    sets: list[cs.Charset] = []
    for option in options:
        for part in option.parts if option.kind == "and" else (option,):
            if part is NOTHING:
                return NOTHING
            if part.kind == "set":
                sets.append(part.charset)
            elif part is not ALL:
                flat[part.serial] = part
    if NON_EMPTY.serial in flat and any(not p.nullable for p in flat.values() if p is not NON_EMPTY):
        del flat[NON_EMPTY.serial]
    if sets:
        flat.pop(NON_EMPTY.serial, None)
        common = sets[0]
        for other in sets[1:]:
            common = cs.intersect(common, other)
        if not common:
            return NOTHING
        joined = chars(common)
        flat[joined.serial] = joined
    if EPSILON.serial in flat:
        return EPSILON if all(p.nullable for p in flat.values()) else NOTHING
    if not flat:
        return ALL
    ordered = [flat[k] for k in sorted(flat)]
    if len(ordered) == 1:
        return ordered[0]
    return _make("and", tuple(ordered), all(p.nullable for p in ordered))


def negate(body: Regex) -> Regex:
    if body is NOTHING:
        return ALL
    if body is ALL:
        return NOTHING
    if body.kind == "not":
        return body.parts[0]
    return _make("not", (body,), not body.nullable)


def literal(text: str) -> Regex:
    return cat(*(chars(cs.make([(ord(c), ord(c))])) for c in text))


def any_of_length(low: int, high: int | None) -> Regex:
    return repeat(chars(cs.ANY), low, high)


def is_plain(r: Regex) -> bool:
    """Whether `r` can be written without "and" and "not"."""
    return r.kind not in ("and", "not") and all(is_plain(p) for p in r.parts)


def derivative(r: Regex, code: int) -> Regex:
    """What may follow the character `code` in the texts of `r` that begin with it."""
    if r.kind == "set":
        return EPSILON if any(low <= code <= high for low, high in r.charset) else NOTHING
    if r.kind == "cat":
        options: list[Regex] = []
        for i, part in enumerate(r.parts):
            options.append(cat(derive(part, code), *r.parts[i + 1 :]))
            if not part.nullable:
                break
        return alt(*options)
    if r.kind == "alt":
        return alt(*(derive(p, code) for p in r.parts))
    if r.kind == "and":
        return both(*(derive(p, code) for p in r.parts))
    if r.kind == "not":
        return negate(derive(r.parts[0], code))
    if r.kind == "rep":
        low, high = r.bounds
        left = None if high is None else high - 1
        return cat(derive(r.parts[0], code), repeat(r.parts[0], max(low - 1, 0), left))
    return NOTHING


@lru_cache(maxsize=50_000)
def _derive_cached(serial: int, code: int, r: Regex) -> Regex:
    return derivative(r, code)


def derive(r: Regex, code: int) -> Regex:
    if r.kind in ("nothing", "empty", "set"):
        return derivative(r, code)
    if len(_interned) > _MAX_INTERNED:
        raise TooComplexError("too many expressions")
    return _derive_cached(r.serial, code, r)


@lru_cache(maxsize=65536)
def matches(r: Regex, text: str) -> bool:
    for ch in text:
        r = derivative(r, ord(ch))
        if r is NOTHING or r is ALL:
            break
    return r.nullable
