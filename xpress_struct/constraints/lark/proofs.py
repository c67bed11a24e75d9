"""Proofs that the engine's lexer splits a text as lark's does.

The engine takes the longest text among the terminals that the grammar allows at a place. lark's lexer also
looks at terminals that are not allowed there, and look-aheads ask for the next character. Where neither can
change what is taken, it is proved; what is left is returned as reasons, and the text is then checked by lark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from xpress_struct.constraints.lark import automata
from xpress_struct.constraints.lark.alphabet import Alphabet
from xpress_struct.constraints.lark.automata import Dfa
from xpress_struct.constraints.lark.rules import END, Rule, Rules

__all__ = ["Context", "Proofs"]


@dataclass(frozen=True)
class Context:
    """A place in the parser.

    Attributes:
        scanned: the terminals that lark's lexer looks for there.
        certain: those of them that the grammar certainly allows there.
    """

    scanned: frozenset[str]
    certain: frozenset[str]


def _without(rules: list[Rule], silent: frozenset[str]) -> list[Rule]:
    return [(origin, tuple(s for s in expansion if s.name not in silent)) for origin, expansion in rules]


class Proofs:
    """Looks for texts that lark would split differently.

    Args:
        dfas: per terminal (ignored ones included), the texts that are emitted as it.
        ignored: names of the terminals that are dropped between others.
        silent: terminals that have no text of their own.

    Attributes:
        follow: per terminal, the mask of what may stand behind it (characters, and the end).
    """

    def __init__(
        self,
        rules: Rules,
        dfas: Mapping[str, Dfa],
        alphabet: Alphabet,
        ignored: Iterable[str],
        *,
        silent: Iterable[str] = (),
    ) -> None:
        self.rules, self.dfas, self.alphabet = rules, dfas, alphabet
        self.ignored = frozenset(ignored)
        self._extends: dict[tuple[str, str], int] = {}
        everything = [*rules.terminals, *self.ignored]
        spoken = Rules(_without(rules.all, frozenset(silent)), rules.start) if silent else rules
        self.follow: dict[str, int] = {name: self._first(everything) | 1 << alphabet.end for name in self.ignored}
        for name in spoken.terminals:
            mask = self._first([*spoken.follow[name], *self.ignored])
            self.follow[name] = mask | (END in spoken.follow[name]) << alphabet.end

    def _first(self, names: Iterable[str]) -> int:
        mask = 0
        for name in names:
            if name in self.dfas:
                mask |= self.dfas[name].first
        return mask

    def longer(self, contexts: Iterable[Context]) -> dict[tuple[str, str], int]:
        """Where lark might take a longer text, as a terminal that may not be allowed there.

        Returns:
            Per pair (terminal meant, terminal that lark would take), the mask of the characters that would
            have to follow.
        """
        pairs = {
            (name, other)
            for context in contexts
            for other in context.scanned - context.certain - self.ignored
            for name in context.scanned | self.ignored
            if other != name
        }
        found: dict[tuple[str, str], int] = {}
        for name, other in sorted(pairs):
            if not self._together(name, other):
                danger = self._extension(name, other) & self.follow.get(name, 0)
                if danger:
                    found[name, other] = danger
        return found

    def _together(self, name: str, other: str) -> bool:
        """Whether one terminal may come wherever the other may."""
        return name in self.rules.terminals and not self._places[name] & ~self._places.get(other, 0)

    @cached_property
    def _places(self) -> dict[str, int]:
        """Per terminal, the mask of the parser's states in which it may come."""
        found = dict.fromkeys(self.rules.terminals, 0)
        for place, shifts in enumerate(self.rules.shifts):
            for name in shifts:
                found[name] |= 1 << place
        return found

    def _extension(self, name: str, other: str) -> int:
        if name not in self.dfas or other not in self.dfas:
            return 0
        key = (name, other)
        if key not in self._extends:
            self._extends[key] = automata.extensions(self.dfas[name], self.dfas[other])
        return self._extends[key]

    def followed(self, name: str, forbidden: int, contexts: Iterable[Context]) -> int:
        """Mask of what can stand behind a terminal although its look-ahead refuses it."""
        danger = forbidden & self.follow.get(name, 0)
        found = 0
        for context in contexts:
            if name not in context.certain or not danger:
                continue
            left = danger
            for other in (context.certain | self.ignored) - {name}:
                if other in self.dfas:
                    left &= automata.not_extended(self.dfas[name], self.dfas[other]) | 1 << self.alphabet.end
            found |= left
        return found
