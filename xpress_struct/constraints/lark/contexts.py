"""Where lark's lexer looks for which terminals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import lark as lark_library

from xpress_struct.constraints.lark.automata import Dfa
from xpress_struct.constraints.lark.proofs import Context
from xpress_struct.constraints.lark.rules import Rule, Rules, Symbol
from xpress_struct.constraints.lark.scanners import Scanners, Taken

__all__ = ["Found", "contexts_of", "rules_of", "taken_everywhere"]


class Found(NamedTuple):
    """What lark's lexer takes as a terminal wherever it looks for it.

    Attributes:
        dfa: the texts.
        forbidden: mask of what must not follow them.
        how: what was taken away from the terminal's own texts; None when only the automaton tells.
    """

    dfa: Dfa
    forbidden: int
    how: Taken | None


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
    if lexer == "basic":
        return [Context(terminals, names) for names in Rules(rules, start).shifts]
    table = parser.parser.parser._parse_table  # lark has no public way to its parse table
    postlex = parser.options.postlex
    always = frozenset(postlex.always_accept if postlex else ())
    contexts = []
    for row in table.states.values():
        certain = {name for name, (action, _) in row.items() if str(action) == "Shift"}
        scanned = frozenset(terminals & (row.keys() | always))
        contexts.append(Context(scanned, frozenset(terminals & certain)))
    return contexts


def taken_everywhere(scanners: Scanners, contexts: list[Context]) -> Mapping[str, Found]:
    """What is taken as each terminal in all of these contexts."""
    if not contexts:
        return {n: Found(t.own, t.forbidden, Taken()) for n, t in scanners.terminals.items()}
    options: dict[str, dict[Taken, None]] = {}
    for scanned in {context.scanned for context in contexts}:
        for name, taken in scanners.scanner(scanned).items():
            options.setdefault(name, {})[taken] = None
    return {name: Found(*scanners.common(name, list(some))) for name, some in options.items()}
