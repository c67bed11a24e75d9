"""Terminals that must not stand next to each other.

`else` followed at once by a letter is a name to lark's lexer; a string that a quote follows is another
string. Such neighbours are kept apart by the rules: what is ignored stands between them, or they do not meet.
Having written a terminal with nothing behind it is the state of an automaton, whose product with the grammar
is taken.
"""

from __future__ import annotations

from collections.abc import Mapping

from xpress_struct.constraints.lark.alphabet import Alphabet
from xpress_struct.constraints.lark.automata import Dfa
from xpress_struct.constraints.lark.product import product
from xpress_struct.constraints.lark.rules import Rules, Symbol

__all__ = ["BARE", "INSIDE", "SPACED", "separate"]

BARE, SPACED, INSIDE = "$bare", "$spaced", "$inside"
"""Endings of a symbol's name: nothing that is ignored stands behind it, or something does; and it stands
inside brackets (under an Indenter)."""

_State = tuple[str, ...]

_MOST_GROUPS = 3


def separate(
    rules: Rules,
    dfas: Mapping[str, Dfa],
    apart: Mapping[str, int],
    between: int,
    alphabet: Alphabet,
    *,
    whole: frozenset[str] = frozenset(),
    silent: frozenset[str] = frozenset(),
) -> tuple[Rules, dict[str, tuple[str, int]]] | None:
    """The rules in which no terminal is followed at once by what must not follow it.

    Args:
        apart: per terminal, the mask of what must not follow (characters, and the end of the text).
        between: mask of what ignored text can begin with; 0 when nothing is ignored.
        whole: terminals that are refused when some of their texts must not stand somewhere.
        silent: terminals that have no text of their own.

    Returns:
        The rules, whose terminals end in `BARE` or `SPACED` where it matters, and the new terminals in them:
        those texts of a terminal that do not begin with some characters. None when there are too many rules.
    """
    cut: dict[str, tuple[str, int]] = {}
    masks = _grouped(apart) if len(set(apart.values())) > _MOST_GROUPS else dict(apart)
    groups = {name: str(mask) for name, mask in masks.items()}

    def step(state: _State, terminal: str) -> list[tuple[_State, tuple[Symbol, ...]]]:
        if terminal in silent:
            return [(state, (Symbol(terminal, True),))]
        name = terminal
        barred = int(state[0]) & dfas[terminal].first if state else 0
        if barred:
            if terminal in whole or barred == dfas[terminal].first:
                return []
            name = f"{terminal}^{barred}"
            cut[name] = (terminal, barred)
        if terminal not in masks:
            return [((), (Symbol(name, True),))]
        found: list[tuple[_State, tuple[Symbol, ...]]] = [((groups[terminal],), (Symbol(name + BARE, True),))]
        if between and not masks[terminal] & between:
            found.append(((), (Symbol(name + SPACED, True),)))
        return found

    made = product(rules, step, lambda state: not state or not int(state[0]) >> alphabet.end & 1)
    return None if made is None else (made, cut)


def _grouped(apart: Mapping[str, int]) -> dict[str, int]:
    """The masks, those that overlap made one: every two different ones make the product larger."""
    groups: list[int] = []
    for mask in apart.values():
        for other in [group for group in groups if group & mask]:
            groups.remove(other)
            mask |= other
        groups.append(mask)
    return {name: next(group for group in groups if group & mask) for name, mask in apart.items()}
