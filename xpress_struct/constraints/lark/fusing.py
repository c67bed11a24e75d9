"""Terminals that run into each other, for Earley's dynamic lexer.

There "iff" may be the keyword `if` and the name `f`, because each terminal is tried alone; a lexer that goes
for the longest text sees one name. So where a terminal may be followed at once by another, while a third
would read on, the two are also offered as one lexeme. A terminal that waits to be joined to the next one is
the state of a small automaton, and the rules are those of its product with the grammar (Bar-Hillel et al. 1961).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xpress_struct.constraints.lark import automata
from xpress_struct.constraints.lark.alphabet import Alphabet
from xpress_struct.constraints.lark.automata import Dfa
from xpress_struct.constraints.lark.rules import END, Rule, Rules, Symbol

__all__ = ["fuse", "waiting"]

_MOST_WAITING = 8
_LONGEST = 2  # terminals that wait together, where there are few of them
_MOST_RULES = 4000

_State = tuple[str, ...]


def waiting(rules: Rules, dfas: Mapping[str, Dfa], ignored: Iterable[str], alphabet: Alphabet) -> list[str]:
    """The terminals behind which another one would read on into what may follow."""
    found = {}
    for shifts in rules.shifts:
        for name in shifts:
            follow = 0
            for other in rules.follow[name] - {END}:
                follow |= dfas[other].first
            for other in {*shifts, *ignored} - {name}:
                if automata.extensions(dfas[name], dfas[other]) & follow:
                    found[name] = None
    return sorted(found)


def fuse(
    rules: Rules, dfas: Mapping[str, Dfa], waits: list[str], alphabet: Alphabet
) -> tuple[Rules, dict[str, tuple[str, ...]]] | None:
    """The rules with joined terminals beside the plain ones, and the parts of each; None when too many."""
    if len(waits) > _MOST_WAITING:
        return None
    longest = _LONGEST if len(waits) <= 3 else 1
    product = _Product(rules, dfas, frozenset(waits), longest, alphabet)
    made = product.rules()
    return None if made is None else (Rules(made, product.name((), rules.start, ())), product.joined)


class _Product:
    def __init__(
        self, rules: Rules, dfas: Mapping[str, Dfa], waits: frozenset[str], longest: int, alphabet: Alphabet
    ) -> None:
        self.grammar, self.dfas, self.waits, self.longest = rules, dfas, waits, longest
        self.alphabet = alphabet
        self.joined: dict[str, tuple[str, ...]] = {}
        self._joins: dict[tuple[str, str], bool] = {}
        # Per (state, nonterminal), the states behind its texts.
        self.behind: dict[tuple[_State, str], set[_State]] = {}

    def name(self, before: _State, origin: str, after: _State) -> str:
        return origin if not before and not after else f"{'+'.join(before)}>{origin}>{'+'.join(after)}"

    def step(self, state: _State, terminal: str) -> list[tuple[_State, Symbol | None]]:
        """Where a terminal leads, and the lexeme that is written for it."""
        if state and not self.joins(state[-1], terminal):
            return []
        chain = (*state, terminal)
        symbol = Symbol("+".join(chain), True)
        found: list[tuple[_State, Symbol | None]] = [((), symbol)]
        if terminal in self.waits and len(state) < self.longest:
            found.append((chain, None))
        return found

    def joins(self, left: str, right: str) -> bool:
        """Whether `left`, taken alone, ends where `right` begins."""
        key = (left, right)
        if key not in self._joins:
            goes_on = ~automata.ends_before(self.dfas[left])
            follows = right in self.grammar.follow[left]
            self._joins[key] = follows and not goes_on & self.dfas[right].first
        return self._joins[key]

    def paths(self, state: _State, expansion: tuple[Symbol, ...]) -> list[tuple[_State, tuple[Symbol, ...]]]:
        found: list[tuple[_State, tuple[Symbol, ...]]] = [(state, ())]
        for symbol in expansion:
            more = []
            for at, written in found:
                if symbol.terminal:
                    for after, lexeme in self.step(at, symbol.name):
                        more.append((after, (*written, lexeme) if lexeme else written))
                else:
                    for after in self.reach(at, symbol.name):
                        place = Symbol(self.name(at, symbol.name, after), False)
                        more.append((after, (*written, place)))
            found = more
        return found

    def reach(self, state: _State, origin: str) -> set[_State]:
        key = (state, origin)
        if key not in self.behind:
            self.behind[key] = set()
            self.changed = True
        return self.behind[key]

    def rules(self) -> list[Rule] | None:
        self.reach((), self.grammar.start)
        self.changed = True
        while self.changed:
            self.changed = False
            for state, origin in list(self.behind):
                for expansion in self.grammar.of[origin]:
                    new = {after for after, _ in self.paths(state, expansion)} - self.behind[state, origin]
                    if new:
                        self.behind[state, origin] |= new
                        self.changed = True
        made: list[Rule] = []
        for state, origin in self.behind:
            for expansion in self.grammar.of[origin]:
                for after, written in self.paths(state, expansion):
                    made.append((self.name(state, origin, after), written))
                    for symbol in written:
                        if symbol.terminal and "+" in symbol.name:
                            self.joined[symbol.name] = tuple(symbol.name.split("+"))
            if len(made) > _MOST_RULES:
                return None
        return made
