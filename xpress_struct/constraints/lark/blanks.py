"""What `%ignore` drops: where it may stand, and how long runs of blanks may be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from xpress_struct.constraints.json_schema import charset as cs
from xpress_struct.constraints.json_schema import regular as rx
from xpress_struct.constraints.json_schema.regex_text import plain
from xpress_struct.constraints.lark import automata
from xpress_struct.constraints.lark.alphabet import Alphabet
from xpress_struct.constraints.lark.automata import Dfa

__all__ = ["Ignored", "arrange"]

_BLANK = cs.make([(0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0)])
BLANKS, STRIPPED = "$blanks", "$stripped"


@dataclass(frozen=True)
class Ignored:
    """What may stand between two tokens.

    Attributes:
        rule: right side of the engine's rule for it, over `{name}` for lexemes; "" when nothing may.
        terminals: definitions of lexemes that are made for it, by name.
        bounded: notes on what is left out.
        clear: False when a terminal may begin with what is ignored.
    """

    rule: str = ""
    terminals: Mapping[str, str] = field(default_factory=dict)
    bounded: tuple[str, ...] = ()
    clear: bool = True

    @property
    def used(self) -> frozenset[str]:
        """Names of the terminals in the rule."""
        return frozenset(re.findall(r"\{([^{}]+)\}", self.rule))


def arrange(
    ignored: Mapping[str, Dfa],
    others: Mapping[str, Dfa],
    texts: Mapping[str, str],
    alphabet: Alphabet,
    max_blanks: int,
) -> Ignored:
    """Arranges the ignored terminals.

    Args:
        ignored, others: per terminal, the texts that are taken as it.
        texts: definitions of the ignored ones.

    Runs of blanks are one lexeme of at most `max_blanks` characters, where lark would drop the same run in
    one way only: each ignored blank stands for any number of its characters, and no other terminal begins
    with one of them (or goes on through all of them, as a comment with blanks in front does).
    """
    usable = {name: dfa for name, dfa in ignored.items() if not dfa.empty}
    if not usable:
        return Ignored()
    blank_mask = alphabet.mask(_BLANK)
    blanks = {
        name: dfa for name, dfa in usable.items() if not automata.symbols(dfa) & ~blank_mask and _plain(dfa)
    }
    marks = 0
    for dfa in blanks.values():
        marks |= automata.symbols(dfa)
    run = Dfa([[1 if marks >> c & 1 else -1 for c in range(alphabet.size)]] * 2, frozenset({1}))
    stripped = {
        name: without
        for name, dfa in usable.items()
        if name not in blanks and (without := _stripped(dfa, marks))
    }
    rest = [dfa for name, dfa in {**usable, **others, **stripped}.items() if name not in blanks]
    clear = all(not dfa.first & marks or not automata.not_extended(run, dfa) & marks for dfa in rest)
    if not blanks or not clear:
        starts = 0
        for dfa in usable.values():
            starts |= dfa.first
        return Ignored(
            f"({' | '.join(f'{{{name}}}' for name in usable)})+",
            {},
            ("runs of ignored text are not bounded",),
            clear=all(not dfa.first & starts for dfa in others.values()),
        )
    text = f"/{plain(rx.repeat(rx.chars(alphabet.charset(marks)), 1, max_blanks))}/"
    comments = " | ".join(
        f"{{{name}{STRIPPED if name in stripped else ''}}}" for name in usable if name not in blanks
    )
    blank = plain(rx.chars(alphabet.charset(marks)))
    made = {name + STRIPPED: f"{texts[name]} & ~(/{blank}(?s:.)*/)" for name in stripped}
    rule = f"{{{BLANKS}}}"
    if comments:
        rule = f"{rule} | {rule}? (({comments}) {rule}?)+"
    return Ignored(
        rule, {BLANKS: text, **made}, (f"runs of ignored blanks: at most {max_blanks} characters",)
    )


def _stripped(dfa: Dfa, marks: int) -> Dfa | None:
    """A comment that may begin with any blanks, without those; None for any other.

    The blanks are then read as blanks, which a lexer that never goes back needs where no comment follows.
    """
    small = automata.minimal(dfa)
    first = small.rows[0]
    if not dfa.first & marks or any(first[c] != 0 for c in range(len(first)) if marks >> c & 1):
        return None
    start = [-1 if marks >> c & 1 else target for c, target in enumerate(first)]
    # The old first state is reached again from others, so the new one is added to it.
    shifted = [[target + 1 if target >= 0 else -1 for target in row] for row in [start, *small.rows]]
    return Dfa(shifted, frozenset(state + 1 for state in small.final))


def _plain(dfa: Dfa) -> bool:
    """Whether it is one character of a set, or any number of them from one on."""
    small = automata.minimal(dfa)
    return len(small.rows) == 2 and 0 not in small.final
