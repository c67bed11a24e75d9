"""Terminals that run into each other, for Earley's dynamic lexer.

There "iff" may be the keyword `if` and the name `f`, because each terminal is tried alone; a lexer that goes
for the longest text sees one name. So where a terminal may be followed at once by another, while a third
would read on, the two are also offered as one lexeme. A terminal that waits to be joined to the next one is
the state of an automaton, whose product with the grammar is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xpress_struct.constraints.lark import automata
from xpress_struct.constraints.lark.automata import Dfa
from xpress_struct.constraints.lark.product import product
from xpress_struct.constraints.lark.rules import END, Rules, Symbol

__all__ = ["fuse", "waiting"]

_MOST_WAITING = 8
_LONGEST = 2  # terminals that wait together, where few do

_State = tuple[str, ...]


def waiting(rules: Rules, dfas: Mapping[str, Dfa], ignored: Iterable[str]) -> list[str]:
    """The terminals behind which another one would read on into what may follow."""
    found = set()
    for shifts in rules.shifts:
        for name in shifts:
            follow = 0
            for other in rules.follow[name] - {END}:
                follow |= dfas[other].first
            for other in {*shifts, *ignored} - {name}:
                if automata.extensions(dfas[name], dfas[other]) & follow:
                    found.add(name)
    return sorted(found)


def fuse(
    rules: Rules, dfas: Mapping[str, Dfa], waits: list[str], forbidden: Mapping[str, int]
) -> Rules | None:
    """The rules with joined terminals ("A+B") beside the plain ones; None when there would be too many.

    Args:
        waits: the terminals that are joined to the next one.
        forbidden: per terminal, the mask of what must not follow it.
    """
    if len(waits) > _MOST_WAITING:
        return None
    longest = _LONGEST if len(waits) <= 3 else 1
    carried_on = {name: ~automata.ends_before(dfas[name]) | forbidden[name] for name in waits}

    def step(state: _State, terminal: str) -> list[tuple[_State, tuple[Symbol, ...]]]:
        # What waits, taken alone, must end where this one begins.
        if state and (
            terminal not in rules.follow[state[-1]] or carried_on[state[-1]] & dfas[terminal].first
        ):
            return []
        chain = (*state, terminal)
        found: list[tuple[_State, tuple[Symbol, ...]]] = [((), (Symbol("+".join(chain), True),))]
        if terminal in waits and len(state) < longest:
            found.append((chain, ()))
        return found

    return product(rules, step, lambda state: not state)
