"""Rules and terminals, written as a grammar of the engine."""

from __future__ import annotations

from collections.abc import Mapping

from xpress_struct.constraints.lark.factoring import factored
from xpress_struct.constraints.lark.rules import Rules
from xpress_struct.constraints.lark.separation import BARE, INSIDE, SPACED

__all__ = ["plain_name", "write_grammar"]

_NOTHING = '""'


def write_grammar(rules: Rules, terminals: Mapping[str, str], ignored: str, inside: str = "") -> str:
    """The engine's grammar.

    Args:
        rules: the grammar.
        terminals: right sides of the terminals' definitions, by name.
        ignored: right side of the rule for what may stand before the first token, between tokens and after
            the last, with `{name}` for terminals; "" for nothing.
        inside: the same for what may also stand inside brackets.
    """
    lexemes = {name: f"T{number}" for number, name in enumerate(terminals)}
    named = {origin: f"r{number}" for number, origin in enumerate(rules.of)}
    lines = [f"start: {'ign? ' if ignored else ''}{named[rules.start]}"]
    if ignored:
        lines.append(f"ign: {_filled(ignored, lexemes)}")
    if inside:
        also = f"ign | ign? {_filled(inside, lexemes)}" if ignored else _filled(inside, lexemes)
        lines.append(f"within: {also}")
    places: dict[str, str] = {}
    for name in sorted(rules.terminals):
        lexeme = lexemes[plain_name(name)]
        between = "within" if name.endswith(INSIDE) and inside else "ign" if ignored else ""
        kind = name.removesuffix(INSIDE)
        if kind.endswith(BARE) or not between:
            places[name] = lexeme
            continue
        spaced = kind.endswith(SPACED)
        places[name] = f"{'s' if spaced else 't'}{lexeme[1:]}{'w' if between == 'within' else ''}"
        lines.append(f"{places[name]}: {lexeme} {between}{'' if spaced else '?'}")
    written = {
        named[origin]: [
            tuple(places[s.name] if s.terminal else named[s.name] for s in expansion)
            for expansion in expansions
        ]
        for origin, expansions in rules.of.items()
    }
    for name, sides in factored(written).items():
        lines.append(f"{name}: {' | '.join(' '.join(side) or _NOTHING for side in sides)}")
    lines += [f"{lexemes[name]}: {text}" for name, text in terminals.items()]
    return "\n".join(lines) + "\n"


def _filled(rule: str, lexemes: Mapping[str, str]) -> str:
    for name, lexeme in lexemes.items():
        rule = rule.replace(f"{{{name}}}", lexeme)
    return rule


def plain_name(name: str) -> str:
    """A terminal's name without what was noted on where it stands."""
    return name.removesuffix(INSIDE).removesuffix(BARE).removesuffix(SPACED)
