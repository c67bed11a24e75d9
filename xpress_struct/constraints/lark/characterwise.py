"""Terminals as rules over single characters, for lark's lexer "dynamic_complete", which tries every split.

There a terminal may take any text that its pattern takes, however the text goes on. No lexeme that goes for
the longest text can follow that, so the lexemes are classes of characters, and the terminals are right-linear
rules over them (one for each state of their automaton).
"""

from __future__ import annotations

from collections.abc import Mapping

from xpress_struct.constraints.json_schema import regular as rx
from xpress_struct.constraints.json_schema.regex_text import plain
from xpress_struct.constraints.lark.alphabet import Alphabet
from xpress_struct.constraints.lark.automata import Dfa
from xpress_struct.constraints.lark.rules import Rule, Rules, Symbol

__all__ = ["by_characters"]

_MOST_STATES = 600


def by_characters(
    rules: Rules, dfas: Mapping[str, Dfa], ignored: list[str], alphabet: Alphabet
) -> tuple[list[Rule], dict[str, str]]:
    """Rules over classes of characters for the same texts, and the classes' definitions by name.

    Args:
        ignored: terminals that may stand before, between and after the others.

    Raises:
        regular.TooComplexError: the terminals have too many states.
    """
    names = [*sorted(rules.terminals), *ignored]
    if sum(len(dfas[name].rows) for name in names) > _MOST_STATES:
        raise rx.TooComplexError("its terminals are too large for the lexer 'dynamic_complete'")
    made: list[Rule] = [("$start", (Symbol("$ignored", False), Symbol(rules.start, False)))]
    made.append(("$ignored", ()))
    used = 0
    for name in names:
        for state, row in enumerate(dfas[name].rows):
            if state in dfas[name].final:
                made.append((f"{name}/{state}", ()))
            for place, target in enumerate(row):
                if target >= 0:
                    used |= 1 << place
                    places = (Symbol(f"${place}", True), Symbol(f"{name}/{target}", False))
                    made.append((f"{name}/{state}", places))
    for name in ignored:
        made.append(("$ignored", (Symbol(f"{name}/0", False), Symbol("$ignored", False))))
    for origin, expansion in rules.all:
        written: list[Symbol] = []
        for symbol in expansion:
            if symbol.terminal:
                written += [Symbol(f"{symbol.name}/0", False), Symbol("$ignored", False)]
            else:
                written.append(symbol)
        made.append((origin, tuple(written)))
    classes = {
        f"${i}": f"/{plain(rx.chars(one))}/" for i, one in enumerate(alphabet.classes) if used >> i & 1
    }
    return made, classes
