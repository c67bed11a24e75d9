"""Deterministic automata of regular languages, and back to expressions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from . import charset as cs
from . import regular as rx

__all__ = ["Automaton", "automaton", "to_regex"]


def _sets(r: rx.Regex, into: set[cs.Charset]) -> None:
    if r.kind == "set":
        into.add(r.charset)
    for part in r.parts:
        _sets(part, into)


def atoms(sets: Iterable[cs.Charset], limit: int) -> list[cs.Charset]:
    """The coarsest partition of all characters that every one of `sets` is a union of."""
    pieces: list[cs.Charset] = [cs.ANY]
    for one in sets:
        split: list[cs.Charset] = []
        for piece in pieces:
            inside = cs.intersect(piece, one)
            outside = cs.subtract(piece, one) if inside else piece
            split += [p for p in (inside, outside) if p]
        pieces = split
        if len(pieces) > limit:
            raise rx.TooComplexError(f"more than {limit} character classes")
    return pieces


@dataclass(frozen=True)
class Automaton:
    """A deterministic automaton, state 0 first; `edges[s]` maps a target state to its characters."""

    edges: tuple[dict[int, cs.Charset], ...]
    final: frozenset[int]

    @property
    def empty(self) -> bool:
        return not self.final


def automaton(r: rx.Regex, *, max_states: int = 200, max_atoms: int = 150) -> Automaton:
    """The automaton of `r`, restricted to states from which a text can be completed.

    Raises:
        rx.TooComplexError: more than `max_states` states or `max_atoms` character classes.
    """
    sets: set[cs.Charset] = set()
    _sets(r, sets)
    pieces = atoms(sorted(sets), max_atoms)
    index = {r.serial: 0}
    queue, edges = [r], []
    final: set[int] = set()
    for state in queue:
        if state.nullable:
            final.add(index[state.serial])
        row: dict[int, list[cs.Charset]] = {}
        for piece in pieces:
            after = rx.derive(state, piece[0][0])
            if after is rx.NOTHING:
                continue
            if after.serial not in index:
                index[after.serial] = len(queue)
                queue.append(after)
                if len(queue) > max_states:
                    raise rx.TooComplexError(f"more than {max_states} states")
            row.setdefault(index[after.serial], []).append(piece)
        edges.append({target: cs.union(*some) for target, some in row.items()})
    live = set(final)
    while True:
        more = {s for s, row in enumerate(edges) if s not in live and any(t in live for t in row)}
        if not more:
            break
        live |= more
    trimmed = [
        {t: some for t, some in row.items() if t in live} if s in live else {} for s, row in enumerate(edges)
    ]
    return Automaton(tuple(trimmed), frozenset(final))


def to_regex(a: Automaton) -> rx.Regex:
    """State elimination, cheapest state first."""
    count = len(a.edges)
    start, end = count, count + 1
    out: dict[int, dict[int, rx.Regex]] = {s: {} for s in range(count + 2)}
    into: dict[int, set[int]] = {s: set() for s in range(count + 2)}

    def add(s: int, t: int, r: rx.Regex) -> None:
        out[s][t] = rx.alt(out[s].get(t, rx.NOTHING), r)
        into[t].add(s)

    for s, row in enumerate(a.edges):
        for t, some in row.items():
            add(s, t, rx.chars(some))
    add(start, 0, rx.EPSILON)
    for s in a.final:
        add(s, end, rx.EPSILON)
    left = set(range(count))
    while left:
        s = min(left, key=lambda q: (len(into[q] - {q}) * len(out[q].keys() - {q}), q))
        left.discard(s)
        loop = rx.repeat(out[s].pop(s, rx.NOTHING), 0, None)
        into[s].discard(s)
        for before in into[s]:
            first = out[before].pop(s)
            for after, last in out[s].items():
                add(before, after, rx.cat(first, loop, last))
        for after in out[s]:
            into[after].discard(s)
        out[s] = {}
    return out[start].get(end, rx.NOTHING)
