"""Rules and terminals, written as a grammar of the engine."""

from __future__ import annotations

from collections.abc import Mapping

from xpress_struct.constraints.lark.rules import Rules

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
    lines += [f"{lexemes[n].lower()}: {lexemes[n]}{between}" for n in terminals if n in rules.terminals]
    for origin, expansions in rules.of.items():
        sides = []
        for expansion in expansions:
            places = (lexemes[s.name].lower() if s.terminal else named[s.name] for s in expansion)
            sides.append(" ".join(places) or '""')
        lines.append(f"{named[origin]}: {' | '.join(sides)}")
    lines += [f"{lexemes[name]}: {text}" for name, text in terminals.items()]
    return "\n".join(lines) + "\n"


def _filled(rule: str, lexemes: Mapping[str, str]) -> str:
    for name, lexeme in lexemes.items():
        rule = rule.replace(f"{{{name}}}", lexeme)
    return rule
