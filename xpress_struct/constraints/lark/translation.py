"""A loaded grammar of lark -> a grammar of the engine, and what had to be done for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import lark as lark_library

from xpress_struct.constraints.json_schema import regular as rx
from xpress_struct.constraints.lark import automata
from xpress_struct.constraints.lark.alphabet import Alphabet
from xpress_struct.constraints.lark.automata import Dfa
from xpress_struct.constraints.lark.blanks import arrange
from xpress_struct.constraints.lark.characterwise import by_characters
from xpress_struct.constraints.lark.emission import write_grammar
from xpress_struct.constraints.lark.fusing import fuse, waiting
from xpress_struct.constraints.lark.proofs import Context, Proofs
from xpress_struct.constraints.lark.report import LarkReport
from xpress_struct.constraints.lark.rules import Rules, Symbol
from xpress_struct.constraints.lark.scanners import Scanners, Taken
from xpress_struct.constraints.lark.separation import BARE, SPACED, separate
from xpress_struct.constraints.lark.terminals import Terminal, read_terminals
from xpress_struct.errors import CompileLimitError, GrammarError, UnsupportedFeatureError

__all__ = ["Translation", "translate"]

_NO_TEXT = (
    "No text is in the language of the rule {start!r}: every way through it needs a terminal that lark's lexer "
    "never takes, or does not end."
)


class _Found(NamedTuple):
    """What lark's lexer takes as a terminal wherever it looks for it (see `Scanners.common`)."""

    dfa: Dfa
    forbidden: int
    how: Taken | None


@dataclass(frozen=True)
class Translation:
    """The engine's grammar, and the report."""

    grammar: str
    report: LarkReport


def translate(parser: lark_library.Lark, start: str, max_blanks: int) -> Translation:
    """Translates a loaded grammar.

    Args:
        start: one of its start symbols.
        max_blanks: longest run of ignored blanks, in characters.

    Raises:
        UnsupportedFeatureError: a part of it cannot be enforced.
        GrammarError: no text is in its language.
        CompileLimitError: it is too large.
    """
    try:
        return _translate(parser, start, max_blanks)
    except rx.TooComplexError as error:
        raise CompileLimitError(f"The grammar is larger than the limits allow: {error}.") from None


def _translate(parser: lark_library.Lark, start: str, max_blanks: int) -> Translation:
    lexer = str(parser.options.lexer)
    ignored = list(parser.ignore_tokens)
    plain_rules = _rules(parser)
    terminals, alphabet = read_terminals(parser.terminals, parser.options.g_regex_flags)
    declared = {s.name for _, e in plain_rules for s in e if s.terminal} - terminals.keys()
    if declared:
        name = min(declared)
        raise UnsupportedFeatureError(
            f"The terminal {name} is declared without a pattern (%declare), and nothing says how it is found.",
            feature=f"%declare {name}",
        )
    scanners = Scanners(terminals, alphabet, ignored, parser.options.g_regex_flags)
    contexts, taken = _contexts(parser, scanners, plain_rules, start)
    dfas = {name: one.dfa for name, one in taken.items() if not one.dfa.empty}
    rules = _ending(Rules(plain_rules, start, terminals.keys() - dfas.keys()), dfas, alphabet, ignored, lexer)
    if rules.empty:
        raise GrammarError(_NO_TEXT.format(start=start))
    proofs = Proofs(rules, dfas, alphabet, ignored)
    used = [name for name in terminals if name in rules.terminals or name in ignored]
    gated = [f"{name}: {terminals[name].inexact}" for name in used if terminals[name].inexact]
    apart: dict[str, int] = {}
    for (name, other), mask in proofs.longer(contexts).items():
        if name in ignored:
            gated.append(f"lark's lexer may take {other} where {name} is ignored")
        else:
            apart[name] = apart.get(name, 0) | mask
    shifts = [Context(frozenset(), names) for names in rules.shifts]
    for name in used:
        if name in taken:
            mask = proofs.followed(name, taken[name].forbidden, shifts)
            if mask and name in ignored:
                gated.append(f"what follows {name}, which is ignored, decides whether it matches")
            elif mask:
                apart[name] = apart.get(name, 0) | mask
    if lexer == "dynamic_complete":
        return _all_splits(parser, rules, dfas, ignored, alphabet, gated, terminals)
    texts = {n: scanners.expression(n, taken[n].dfa, taken[n].how) for n in used if n in dfas}
    between = arrange(
        {name: dfas[name] for name in ignored if name in dfas},
        {name: dfas[name] for name in rules.terminals},
        texts,
        alphabet,
        max_blanks,
    )
    bounded = list(between.bounded)
    waits = waiting(rules, dfas, [n for n in ignored if n in dfas]) if lexer == "dynamic" else []
    fused = fuse(rules, dfas, waits) if waits and not apart else None
    if fused is not None:
        rules = fused
        for name in rules.terminals - texts.keys():
            texts[name] = "/" + "".join(f"(?:{terminals[part].text})" for part in name.split("+")) + "/"
    elif waits:
        bounded.append(f"without a blank behind them, {', '.join(waits)} end where nothing reads on")
    if apart:
        begins = sum(1 << c for c in range(alphabet.size) if any(dfas[n].first >> c & 1 for n in dfas if n in ignored))
        separated = separate(rules, dfas, apart, begins, alphabet)
        if separated is None:
            gated += [f"what follows {name} decides what lark's lexer takes" for name in apart]
        elif separated.empty:
            raise GrammarError(_NO_TEXT.format(start=start))
        else:
            rules = separated
    kept = {n.removesuffix(BARE).removesuffix(SPACED) for n in rules.terminals} | between.used
    texts = {name: text for name, text in {**texts, **between.terminals}.items() if name in kept}
    grammar = write_grammar(rules, texts, between.rule)
    report = LarkReport(
        str(parser.options.parser),
        lexer,
        rewritten=tuple(f"{n}: {terminals[n].rewritten}" for n in used if terminals[n].rewritten),
        proved=(
            *_resolved(used, taken),
            *(f"{name} is kept apart from what would change it" for name in apart),
        ),
        gated=tuple(dict.fromkeys(gated)),
        bounded=tuple(bounded),
    )
    return Translation(grammar, report)


def _ending(
    rules: Rules, dfas: Mapping[str, Dfa], alphabet: Alphabet, ignored: list[str], lexer: str
) -> Rules:
    """The rules without terminals that swallow whatever could follow them, so that they never end."""
    while lexer != "dynamic_complete":
        endless = {
            name
            for name, follow in Proofs(rules, dfas, alphabet, ignored).follow.items()
            if name in rules.terminals and not automata.stops(dfas[name], alphabet) & follow
        }
        if not endless:
            break
        rules = Rules(rules.all, rules.start, endless)
    return rules


def _all_splits(
    parser: lark_library.Lark,
    rules: Rules,
    dfas: Mapping[str, Dfa],
    ignored: list[str],
    alphabet: Alphabet,
    gated: list[str],
    terminals: Mapping[str, Terminal],
) -> Translation:
    dropped = [name for name in ignored if name in dfas]
    starts = 0
    for name in rules.terminals:
        starts |= dfas[name].first
    # lark drops as much as a pattern takes at once; that is seen only where a token could begin inside it.
    for name in dropped:
        if any(starts >> c & 1 for row in dfas[name].rows for c, target in enumerate(row) if target >= 0):
            gated.append(f"a terminal may begin inside {name}, which is ignored")
    made, classes = by_characters(rules, dfas, dropped, alphabet)
    report = LarkReport(
        str(parser.options.parser),
        str(parser.options.lexer),
        rewritten=tuple(f"{n}: {t.rewritten}" for n, t in terminals.items() if t.rewritten),
        gated=tuple(dict.fromkeys(gated)),
        bounded=("runs of ignored text are not bounded",) if dropped else (),
    )
    return Translation(write_grammar(Rules(made, "$start"), classes, ""), report)


def _rules(parser: lark_library.Lark) -> list[tuple[str, tuple[Symbol, ...]]]:
    return [
        (rule.origin.name, tuple(Symbol(s.name, s.is_term) for s in rule.expansion)) for rule in parser.rules
    ]


def _contexts(
    parser: lark_library.Lark,
    scanners: Scanners,
    rules: list[tuple[str, tuple[Symbol, ...]]],
    start: str,
) -> tuple[list[Context], Mapping[str, _Found]]:
    """The places where lark's lexer looks for terminals, and what it takes as each of them everywhere."""
    everything = frozenset(scanners.terminals)
    lexer = parser.options.lexer
    if lexer in ("dynamic", "dynamic_complete"):
        return [], {n: _Found(t.own, t.forbidden, Taken()) for n, t in scanners.terminals.items()}
    if lexer == "basic":
        contexts = [Context(everything, names) for names in Rules(rules, start).shifts]
    else:
        contexts = list(_states(parser, everything))
    options: dict[str, list[Taken]] = {}
    for scanned in {context.scanned for context in contexts}:
        for name, one in scanners.scanner(scanned).items():
            if one not in options.setdefault(name, []):
                options[name].append(one)
    return contexts, {name: _Found(*scanners.common(name, some)) for name, some in options.items()}


def _states(parser: lark_library.Lark, everything: frozenset[str]) -> Iterable[Context]:
    table = parser.parser.parser._parse_table  # lark has no public way to its parse table
    for row in table.states.values():
        certain = frozenset(name for name, (action, _) in row.items() if str(action) == "Shift")
        yield Context(frozenset(everything & row.keys()), frozenset(everything & certain))


def _resolved(used: list[str], taken: Mapping[str, _Found]) -> Iterable[str]:
    for name in used:
        how = taken[name].how if name in taken else None
        if how is not None and how.before | how.words:
            yield f"{name} without the texts of {', '.join(sorted(how.before | how.words))}"
