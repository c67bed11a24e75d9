"""Rules and terminals, written as a grammar of the engine."""

from __future__ import annotations

from collections.abc import Mapping

from xpress_struct.constraints.lark.rules import Rules
from xpress_struct.constraints.lark.separation import BARE, SPACED

__all__ = ["write_grammar"]


def write_grammar(rules: Rules, terminals: Mapping[str, str], ignored: str) -> str:
    """The engine's grammar.

    Args:
        rules: the grammar.
        terminals: right sides of the terminals' definitions, by name.
        ignored: right side of the rule for what may stand before the first token, between tokens and after
            the last, with `{name}` for terminals; "" for nothing.
    """
    lexemes = {name: f"T{number}" for number, name in enumerate(terminals)}
    named = {origin: f"r{number}" for number, origin in enumerate(rules.of)}
    between = " ign?" if ignored else ""
    lines = [f"start: {'ign? ' if ignored else ''}{named[rules.start]}"]
    if ignored:
        lines.append(f"ign: {_filled(ignored, lexemes)}")
    places: dict[str, str] = {}
    for name in sorted(rules.terminals):
        base = name.removesuffix(BARE).removesuffix(SPACED)
        lexeme = lexemes[base]
        if name.endswith(BARE):
            places[name] = lexeme
            continue
        places[name] = f"{'s' if name.endswith(SPACED) else 't'}{lexeme[1:]}"
        behind = " ign" if name.endswith(SPACED) else between
        lines.append(f"{places[name]}: {lexeme}{behind}")
    for origin, expansions in rules.of.items():
        sides = []
        for expansion in expansions:
            written = (places[s.name] if s.terminal else named[s.name] for s in expansion)
            sides.append(" ".join(written) or '""')
        lines.append(f"{named[origin]}: {' | '.join(sides)}")
    lines += [f"{lexemes[name]}: {text}" for name, text in terminals.items()]
    return "\n".join(lines) + "\n"


def _filled(rule: str, lexemes: Mapping[str, str]) -> str:
    for name, lexeme in lexemes.items():
        rule = rule.replace(f"{{{name}}}", lexeme)
    return rule
