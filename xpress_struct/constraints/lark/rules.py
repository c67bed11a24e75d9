"""A context-free grammar over terminals' names, and the usual facts about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

__all__ = ["END", "Rule", "Rules", "Symbol", "merged", "reached_from"]

END = "$END"


@dataclass(frozen=True)
class Symbol:
    """A terminal or a nonterminal."""

    name: str
    terminal: bool


Rule = tuple[str, tuple[Symbol, ...]]


class Rules:
    """Rules (origin, expansion) and a start symbol.

    Args:
        rules: all rules; those that derive no text, or are not reached, are left out.
        start: a nonterminal.
        dead: terminals that are never taken.
    """

    def __init__(self, rules: Iterable[Rule], start: str, dead: Iterable[str] = ()) -> None:
        self.start = start
        self.all = _useful(list(dict.fromkeys(rules)), start, frozenset(dead))
        self.of: dict[str, list[tuple[Symbol, ...]]] = {}
        for origin, expansion in self.all:
            self.of.setdefault(origin, []).append(expansion)

    @property
    def empty(self) -> bool:
        """True when no text is in the language."""
        return self.start not in self.of

    @cached_property
    def terminals(self) -> frozenset[str]:
        """Those that stand in a rule."""
        return frozenset(s.name for _, expansion in self.all for s in expansion if s.terminal)

    @cached_property
    def nullable(self) -> frozenset[str]:
        """Nonterminals that derive the empty text."""
        found: set[str] = set()
        while True:
            more = {
                o
                for o, e in self.all
                if o not in found and all(not s.terminal and s.name in found for s in e)
            }
            if not more:
                return frozenset(found)
            found |= more

    @cached_property
    def first(self) -> dict[str, frozenset[str]]:
        """Per nonterminal, the terminals that its texts can begin with."""
        found: dict[str, set[str]] = {origin: set() for origin in self.of}
        changed = True
        while changed:
            changed = False
            for origin, expansion in self.all:
                new = self._starts(expansion, found) - found[origin]
                if new:
                    found[origin] |= new
                    changed = True
        return {origin: frozenset(names) for origin, names in found.items()}

    def _starts(self, expansion: tuple[Symbol, ...], first: dict[str, set[str]]) -> set[str]:
        names: set[str] = set()
        for symbol in expansion:
            if symbol.terminal:
                return names | {symbol.name}
            names |= first[symbol.name]
            if symbol.name not in self.nullable:
                break
        return names

    @cached_property
    def follow(self) -> dict[str, frozenset[str]]:
        """Per terminal, the terminals that can come directly behind it, and END."""
        after: dict[str, set[str]] = {origin: set() for origin in self.of}
        after[self.start].add(END)
        behind: dict[str, set[str]] = {name: set() for name in self.terminals}
        changed = True
        while changed:
            changed = False
            for origin, expansion in self.all:
                rest = set(after[origin])
                for symbol in reversed(expansion):
                    target = (behind if symbol.terminal else after)[symbol.name]
                    if not rest <= target:
                        target |= rest
                        changed = True
                    if symbol.terminal:
                        rest = {symbol.name}
                    elif symbol.name in self.nullable:
                        rest = rest | self.first[symbol.name]
                    else:
                        rest = set(self.first[symbol.name])
        return {name: frozenset(names) for name, names in behind.items()}

    @cached_property
    def shifts(self) -> list[frozenset[str]]:
        """Per LR(0) state, the terminals that can come next for certain."""
        kernel0 = frozenset((i, 0) for i, (origin, _) in enumerate(self.all) if origin == self.start)
        by_origin: dict[str, list[int]] = {}
        for i, (origin, _) in enumerate(self.all):
            by_origin.setdefault(origin, []).append(i)
        seen, queue, found = {kernel0}, [kernel0], []
        for kernel in queue:
            goto: dict[Symbol, set[tuple[int, int]]] = {}
            items, stack = set(kernel), list(kernel)
            while stack:
                rule, dot = stack.pop()
                expansion = self.all[rule][1]
                if dot == len(expansion):
                    continue
                symbol = expansion[dot]
                goto.setdefault(symbol, set()).add((rule, dot + 1))
                if not symbol.terminal:
                    for other in by_origin[symbol.name]:
                        if (other, 0) not in items:
                            items.add((other, 0))
                            stack.append((other, 0))
            found.append(frozenset(s.name for s in goto if s.terminal))
            for target in map(frozenset, goto.values()):
                if target not in seen:
                    seen.add(target)
                    queue.append(target)
        return list(dict.fromkeys(found))


def _useful(rules: list[Rule], start: str, dead: frozenset[str]) -> list[Rule]:
    live: set[str] = set()
    while True:
        more = {
            origin
            for origin, expansion in rules
            if origin not in live
            and all(s.name not in dead if s.terminal else s.name in live for s in expansion)
        }
        if not more:
            break
        live |= more
    kept = [(o, e) for o, e in rules if all(s.name not in dead if s.terminal else s.name in live for s in e)]
    by_origin: dict[str, list[tuple[Symbol, ...]]] = {}
    for origin, expansion in kept:
        by_origin.setdefault(origin, []).append(expansion)
    reached = reached_from([start], by_origin)
    return [(o, e) for o, e in kept if o in reached]


def reached_from(origins: Iterable[str], rules: Mapping[str, Iterable[tuple[Symbol, ...]]]) -> set[str]:
    """The nonterminals that stand in what some nonterminals derive, and those themselves."""
    reached = set(origins)
    stack = list(reached)
    while stack:
        for expansion in rules.get(stack.pop(), ()):
            for symbol in expansion:
                if not symbol.terminal and symbol.name not in reached:
                    reached.add(symbol.name)
                    stack.append(symbol.name)
    return reached


def merged(rules: Rules) -> Rules:
    """The same texts, with nonterminals that have the same rules made one."""
    if rules.empty:
        return rules
    names = sorted(rules.of)
    block = dict.fromkeys(names, 0)
    count = 1
    while True:
        keys: dict[object, int] = {}
        block = {
            name: keys.setdefault(
                (
                    block[name],
                    frozenset(
                        tuple(s.name if s.terminal else block[s.name] for s in expansion)
                        for expansion in rules.of[name]
                    ),
                ),
                len(keys),
            )
            for name in names
        }
        if len(keys) == count:
            break
        count = len(keys)
    shown: dict[int, str] = {}
    for name in [rules.start, *names]:
        shown.setdefault(block[name], name)
    kept = set(shown.values())
    return Rules(
        [
            (origin, tuple(s if s.terminal else Symbol(shown[block[s.name]], False) for s in expansion))
            for origin, expansion in rules.all
            if origin in kept
        ],
        rules.start,
    )
