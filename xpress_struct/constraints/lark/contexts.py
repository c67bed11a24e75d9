"""Where lark's lexer looks for which terminals."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

import lark as lark_library

from xpress_struct.constraints.lark import automata
from xpress_struct.constraints.lark.automata import Dfa
from xpress_struct.constraints.lark.proofs import Context
from xpress_struct.constraints.lark.rules import Rule, Rules, Symbol
from xpress_struct.constraints.lark.scanners import Scanners, Taken
from xpress_struct.constraints.lark.table import Table

__all__ = ["Found", "contexts_of", "rules_of", "taken_everywhere", "variants_of"]


class Found(NamedTuple):
    """What lark's lexer takes as a terminal wherever it looks for it.

    Attributes:
        dfa: the texts.
        forbidden: mask of what must not follow them.
        how: what was taken away from the terminal's own texts; None when only the automaton tells.
        split: no text is taken as it everywhere, so the texts are those that are taken somewhere.
    """

    dfa: Dfa
    forbidden: int
    how: Taken | None
    split: bool = False


def rules_of(parser: lark_library.Lark) -> list[Rule]:
    """The rules as lark compiled them."""
    return [
        (rule.origin.name, tuple(Symbol(s.name, s.is_term) for s in rule.expansion)) for rule in parser.rules
    ]


def contexts_of(
    parser: lark_library.Lark, terminals: frozenset[str], rules: list[Rule], start: str
) -> list[Context]:
    """The places where lark's lexer looks for terminals; none when it looks for each alone (dynamic)."""
    lexer = parser.options.lexer
    if lexer in ("dynamic", "dynamic_complete"):
        return []
    if parser.options.parser != "lalr":
        return [Context(terminals, names) for names in Rules(rules, start).shifts]
    postlex = parser.options.postlex
    always = frozenset(postlex.always_accept if postlex else ())
    table = Table(parser)
    accepted = {state: frozenset(row.keys() | always) for state, row in table.rows.items()}
    contexts = []
    for state, row in table.rows.items():
        targets = {name: to for name, (shift, to) in row.items() if shift and name in terminals}
        scanned = terminals & accepted[state] if lexer == "contextual" else terminals
        after = {name: accepted[to] for name, to in targets.items()}
        contexts.append(Context(frozenset(scanned), frozenset(targets), after, frozenset(), state, table))
    return contexts


def taken_everywhere(scanners: Scanners, contexts: list[Context], dropped: Set[str]) -> Mapping[str, Found]:
    """What is taken as each terminal in all of the contexts in which the parser goes on with it.

    Args:
        dropped: names of the terminals that never reach the parser in some contexts.
    """
    if not contexts:
        return {n: Found(t.own, t.forbidden, Taken()) for n, t in scanners.terminals.items()}
    read: dict[frozenset[str], set[str]] = {}
    for context in contexts:
        names = context.table.rows[context.state].keys() if context.table else context.scanned
        read.setdefault(context.scanned, set(dropped)).update(names)
    options: dict[str, dict[Taken, None]] = {}
    for scanned, counted in read.items():
        for name, taken in scanners.scanner(scanned).items():
            if name in counted:
                options.setdefault(name, {})[taken] = None
    found = {}
    for name, some in options.items():
        found[name] = Found(*scanners.common(name, list(some)))
        if found[name].dfa.empty:
            somewhere, forbidden = scanners.dfa(name, next(iter(some)))
            for other in some:
                dfa, more = scanners.dfa(name, other)
                somewhere, forbidden = automata.union(somewhere, dfa), forbidden | more
            found[name] = Found(somewhere, forbidden, None, split=not somewhere.empty)
    return found


def variants_of(
    scanners: Scanners, contexts: list[Context], dfas: Mapping[str, Dfa]
) -> dict[frozenset[str], dict[str, Dfa]]:
    """Per set of scanned terminals, the texts that are taken as a terminal there, and not everywhere."""
    made: dict[tuple[str, Taken], Dfa] = {}
    found: dict[frozenset[str], dict[str, Dfa]] = {}
    for scanned in {context.scanned for context in contexts}:
        found[scanned] = {}
        for name, taken in scanners.scanner(scanned).items():
            key = (name, taken)
            if key not in made:
                here, _ = scanners.dfa(name, taken)
                made[key] = (
                    automata.minimal(automata.without_words(here, dfas[name])) if name in dfas else here
                )
            if not made[key].empty:
                found[scanned][name] = made[key]
    return found
