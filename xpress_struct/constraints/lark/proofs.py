"""Proofs that the engine's lexer splits a text as lark's does.

The engine takes the longest text among the terminals that the grammar allows at a place. lark's lexer also
looks at terminals that are not allowed there, and look-aheads ask for the next character. Where neither can
change what is taken, it is proved; what is left is returned as reasons, and the text is then checked by lark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property

from xpress_struct.constraints.lark import automata
from xpress_struct.constraints.lark.alphabet import Alphabet
from xpress_struct.constraints.lark.automata import Dfa
from xpress_struct.constraints.lark.matching import Matching
from xpress_struct.constraints.lark.rules import END, Rule, Rules
from xpress_struct.constraints.lark.table import Table

__all__ = ["Context", "Proofs"]


@dataclass(frozen=True)
class Context:
    """A place in the parser.

    Attributes:
        scanned: the terminals that lark's lexer looks for there.
        certain: those of them that the grammar certainly allows there.
        after: per certain terminal, what lark's lexer looks for behind it; empty when that is not known.
        never: terminals that the grammar never allows, though lark's table does.
        state, table: of the LALR parser, or None.
    """

    scanned: frozenset[str]
    certain: frozenset[str]
    after: Mapping[str, frozenset[str]] = field(default_factory=dict)
    never: frozenset[str] = frozenset()
    state: int = -1
    table: Table | None = None

    def without(self, names: Set[str]) -> Context:
        """The same place in a grammar that never allows some terminals."""
        return replace(self, certain=self.certain - names, never=self.never | names)

    def sure(self, name: str) -> bool:
        """Whether the grammar allows a terminal here, whatever came before."""
        return name not in self.never and self.table is not None and self.state in self.table.sure(name)

    def implied(self, name: str, other: str) -> bool:
        """Whether the grammar allows `other` here whenever it allows `name`."""
        return (
            other not in self.never
            and self.table is not None
            and self.state in self.table.implied(name, other)
        )


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
        self.silent = frozenset(silent)
        self._masks: dict[frozenset[str], int] = {}
        self._harmless = {name: {name} for name in dfas}  # terminals that never read on behind it
        self._extends: dict[tuple[str, str], int] = {}
        self._further: dict[tuple[str, int], int] = {}
        self._guards: dict[tuple[str, str], int] = {}
        everything = [*rules.terminals, *self.ignored]
        spoken = Rules(_without(rules.all, self.silent), rules.start) if silent else rules
        self.follow: dict[str, int] = {
            name: self._first(everything) | 1 << alphabet.end for name in self.ignored
        }
        for name in spoken.terminals:
            mask = self._first([*spoken.follow[name], *self.ignored])
            self.follow[name] = mask | (END in spoken.follow[name]) << alphabet.end

    def _first(self, names: Iterable[str]) -> int:
        """Mask of what the texts of some terminals begin with."""
        mask = 0
        for name in names:
            if name in self.dfas:
                mask |= self.dfas[name].first
        return mask

    def longer(
        self, contexts: Iterable[Context], variants: Mapping[frozenset[str], Mapping[str, Dfa]]
    ) -> dict[tuple[str, str], int]:
        """Where lark might take a longer text, as a terminal that may not be allowed there.

        Args:
            variants: see `contexts.variants_of`; texts that are not emitted.

        Returns:
            Per pair (terminal meant, terminal that lark would take), the mask of the characters that would
            have to follow.
        """
        contexts = list(contexts)
        anywhere = dict(self.follow)
        if all(context.after for context in contexts if context.certain):
            for name in self.rules.terminals & self.dfas.keys():
                anywhere[name] = 0
                for context in contexts:
                    if name in context.certain:
                        anywhere[name] |= self._follow_at(context, name)
        found: dict[tuple[str, str], int] = {}
        for context in contexts:
            uncertain = context.scanned - context.certain - self.ignored
            more = variants.get(context.scanned, {})
            names = (context.scanned | self.ignored) & self.dfas.keys()
            for name in names if uncertain or more else ():
                certain = name in context.certain
                follow = self._follow_at(context, name) if certain else anywhere.get(name, 0)
                for other, texts in more.items():
                    danger = self._beyond(name, texts) & follow
                    if danger:
                        found[name, other] = found.get((name, other), 0) | danger
                for other in uncertain - self._harmless[name]:
                    danger = self._extension(name, other) & follow
                    if not danger or (not certain and self._together(name, other)):
                        continue
                    if not (context.sure(other) if name in self.ignored else context.implied(name, other)):
                        found[name, other] = found.get((name, other), 0) | danger
        return found

    def _beyond(self, name: str, texts: Dfa) -> int:
        key = (name, id(texts))
        if key not in self._further:
            self._further[key] = automata.extensions(self.dfas[name], texts)
        return self._further[key]

    def _follow_at(self, context: Context, name: str) -> int:
        """Mask of what may stand behind a terminal that comes in this place."""
        after = context.after.get(name)
        if after is None or after & self.silent:
            return self.follow.get(name, 0)
        if after not in self._masks:
            mask = self._first([*after, *self.ignored]) | (END in after) << self.alphabet.end
            self._masks[after] = mask
        return self._masks[after]

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
        if other not in self.dfas:
            return 0
        key = (name, other)
        if key not in self._extends:
            self._extends[key] = automata.extensions(self.dfas[name], self.dfas[other])
        if not self._extends[key]:
            self._harmless[name].add(other)
        return self._extends[key]

    def followed(
        self, name: str, forbidden: int, matching: Matching | None, contexts: Iterable[Context]
    ) -> int:
        """Mask of what can stand behind a terminal although its look-ahead refuses it.

        Args:
            forbidden: mask of what it refuses (see `automata.own`), in all.
            matching: the terminal's own automaton, which tells what it refuses behind which text; None when
                something else is refused too.
        """
        if name in self.ignored and name not in self.rules.terminals:
            return forbidden & self.follow[name]
        found = 0
        for context in contexts:
            if name not in context.certain:
                continue
            left = forbidden & self._follow_at(context, name)
            for other in (context.certain | self.ignored) - {name}:
                if left and matching and other in self.dfas:
                    left &= self._unguarded(name, matching, other)
            found |= left
        return found

    def _unguarded(self, name: str, matching: Matching, other: str) -> int:
        key = (name, other)
        if key not in self._guards:
            self._guards[key] = automata.unguarded(matching, self.dfas[other], self.alphabet)
        return self._guards[key]
