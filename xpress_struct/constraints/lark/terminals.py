"""The terminals of a grammar: what each takes alone, and as which regular expression the engine gets it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from xpress_struct.constraints.json_schema import charset as cs
from xpress_struct.constraints.json_schema.regex_text import plain
from xpress_struct.constraints.lark import automata
from xpress_struct.constraints.lark.alphabet import Alphabet
from xpress_struct.constraints.lark.matching import Matching, follow_pattern
from xpress_struct.constraints.lark.program import Program, compile_pattern

__all__ = ["Terminal", "read_terminals"]

_NEWLINE = cs.make([(10, 10)])


@dataclass
class Terminal:
    """One terminal.

    Attributes:
        name: as in the grammar.
        definition: lark's own TerminalDef.
        text: regular expression of `own`, in the engine's syntax.
        matching: what `re` takes at a place, step by step.
        own: the texts that `re` takes as this terminal, when no other is near.
        forbidden: mask of what must not follow such a text (see `automata.own`).
        inexact: why `own` is only an upper bound, or "".
        rewritten: what was done to the pattern, or "".
    """

    name: str
    definition: Any
    text: str
    matching: Matching
    own: automata.Dfa
    forbidden: int
    inexact: str
    rewritten: str = ""
    program: Program = field(repr=False, default_factory=Program)

    @property
    def literal(self) -> bool:
        """Whether it is written as a string."""
        return bool(self.definition.pattern.type == "str")

    @property
    def begun(self) -> str:
        """Regular expression of every text at whose beginning it matches, in the engine's syntax."""
        return f"(?:{self.text})(?s:.)*"


def read_terminals(definitions: list[Any], flags: int) -> tuple[dict[str, Terminal], Alphabet]:
    """The terminals that have a pattern, by name.

    Args:
        definitions: lark's TerminalDefs; declared ones, which have no pattern, must be left out.
        flags: lark's `g_regex_flags`.

    Raises:
        UnsupportedFeatureError: a pattern uses what cannot be enforced.
        regular.TooComplexError: a pattern is too large.
    """
    programs = {d.name: compile_pattern(d.pattern.to_regexp(), flags, d.name) for d in definitions}
    alphabet = Alphabet({_NEWLINE, *(one for p in programs.values() for one in p.charsets)})
    return {d.name: _read(d, programs[d.name], alphabet) for d in definitions}, alphabet


def _read(definition: Any, program: Program, alphabet: Alphabet) -> Terminal:
    matching = follow_pattern(program, alphabet)
    own, forbidden = automata.own(matching, alphabet)
    own = automata.minimal(own)
    rewritten = ""
    if program.plain is None:
        rewritten = "assertions resolved"
    elif matching.ordered:
        every, _ = automata.own(follow_pattern(program, alphabet, cut=False), alphabet)
        if not automata.same(every, own):
            rewritten = "only what the first branch that matches takes"
    if own.empty:
        text = ""
    elif rewritten or program.plain is None:
        text = plain(automata.expression(own, alphabet))
    else:
        text = plain(program.plain)
    return Terminal(
        definition.name, definition, text, matching, own, forbidden, matching.inexact, rewritten, program
    )


def fullmatch_prefix(terminal: Terminal, text: str, flags: int) -> bool:
    """Whether `re.match` takes exactly this text from it."""
    found = re.compile(terminal.definition.pattern.to_regexp(), flags).match(text)
    return found is not None and found.group(0) == text
