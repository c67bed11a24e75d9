"""What a lexer of lark takes as which terminal, when several could match.

lark's basic lexer tries its terminals in the order (priority, width, length, name) as one alternation of
`re`, and then calls a text by a literal's name when a literal spells it. So a terminal takes a text when it
takes it alone, no terminal before it in that order matches at its beginning, and no literal spells it. Those
texts are regular, and disjoint; the longest of them is what the lexer takes. The contextual lexer does the
same with the terminals of one parser state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from xpress_struct.constraints.json_schema.regex_text import plain
from xpress_struct.constraints.lark import automata
from xpress_struct.constraints.lark.alphabet import Alphabet
from xpress_struct.constraints.lark.automata import Dfa
from xpress_struct.constraints.lark.terminals import Terminal, fullmatch_prefix

__all__ = ["Scanners", "Taken"]

_Source = tuple[str, frozenset[str], frozenset[str]]


@dataclass(frozen=True)
class Taken:
    """The texts that a scanner takes as one terminal, by what is taken away from its own.

    Attributes:
        before: names of the terminals that come first and take away texts.
        words: names of the literals whose texts it does not take.
        scanned: False when only `renamed` texts are taken.
        renamed: of a literal, what is first taken as another terminal and then called by its name: that
            terminal, the terminals before it, and the literals that are tried first.
    """

    before: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    scanned: bool = True
    renamed: frozenset[_Source] = frozenset()


class Scanners:
    """Scanners over the terminals of one grammar, each made once.

    Args:
        terminals: by name.
        ignored: names of the terminals that are dropped.
        flags: lark's `g_regex_flags`.
    """

    def __init__(
        self, terminals: dict[str, Terminal], alphabet: Alphabet, ignored: Iterable[str], flags: int
    ) -> None:
        self.terminals, self.alphabet, self.flags = terminals, alphabet, flags
        self.ignored = frozenset(ignored)
        self._order = sorted(terminals.values(), key=_lark_order)
        self._made: dict[frozenset[str], dict[str, Taken]] = {}
        self._dfas: dict[tuple[str, Taken], tuple[Dfa, int]] = {}
        self._clash: dict[tuple[str, str], bool] = {}
        self._spelled: dict[tuple[str, str], bool] = {}

    def scanner(self, accepted: Iterable[str]) -> dict[str, Taken]:
        """What each of these terminals takes in a scanner of them and the ignored ones."""
        names = frozenset(accepted) | self.ignored
        found = self._made.get(names)
        if found is None:
            found = self._made[names] = self._scanner(names)
        return found

    def _scanner(self, names: frozenset[str]) -> dict[str, Taken]:
        present = [t for t in self._order if t.name in names]
        literals = [t for t in present if t.literal]
        spelled = {t.name: [s for s in literals if self._spells(t, s)] for t in present if not t.literal}
        embedded = {
            s.name
            for t in present
            for s in spelled.get(t.name, ())
            if s.definition.pattern.flags <= t.definition.pattern.flags
        }
        order = [t for t in present if t.name not in embedded]
        result: dict[str, Taken] = {}
        renamed: dict[str, set[_Source]] = {name: set() for name in embedded}
        for place, terminal in enumerate(order):
            before = frozenset(o.name for o in order[:place] if self._clashes(terminal, o))
            # A literal spells no text that is dropped anyway.
            words = [] if terminal.name in self.ignored else spelled.get(terminal.name, [])
            result[terminal.name] = Taken(before, frozenset(w.name for w in words))
            for earlier, word in enumerate(words):
                if word.name in self.ignored:
                    continue  # it is dropped by its first name only
                others = frozenset(w.name for w in words[:earlier])
                renamed.setdefault(word.name, set()).add((terminal.name, before, others))
        for name, sources in renamed.items():
            found = result.get(name, Taken(scanned=False))
            result[name] = replace(found, renamed=frozenset(sources))
        return result

    def dfa(self, name: str, taken: Taken) -> tuple[Dfa, int]:
        """The texts, and the mask of what must not follow them."""
        key = (name, taken)
        found = self._dfas.get(key)
        if found is None:
            found = self._dfas[key] = self._find(name, taken)
        return found

    def _find(self, name: str, taken: Taken) -> tuple[Dfa, int]:
        terminal = self.terminals[name]
        dfa, forbidden = automata.nothing(self.alphabet), 0
        if taken.scanned:
            dfa, forbidden = terminal.own, terminal.forbidden
            for other in sorted(taken.before):
                dfa, more = automata.without_prefixes(dfa, self.terminals[other].matching, self.alphabet)
                forbidden |= more
            for word in sorted(taken.words):
                dfa = automata.without_words(dfa, self.terminals[word].own)
            dfa = automata.minimal(dfa)
        for other, before, words in sorted(taken.renamed, key=str):
            # Only what it shares with them can matter.
            near = frozenset(w for w in words if not automata.meet(self.terminals[w].own, terminal.own).empty)
            source, more = self.dfa(other, Taken(before, near))
            forbidden |= more
            dfa = automata.union(dfa, automata.meet(terminal.own, source))
        return dfa, forbidden

    def common(self, name: str, options: Sequence[Taken]) -> tuple[Dfa, int, Taken | None]:
        """What every one of several scanners takes as a terminal.

        Returns:
            The texts, what must not follow them, and how they come about; None when only the automaton tells.
        """
        if self.terminals[name].literal:
            dfa, forbidden = self.dfa(name, options[0])
            for option in options[1:]:
                other, more = self.dfa(name, option)
                dfa, forbidden = automata.meet(dfa, other), forbidden | more
            return dfa, forbidden, Taken() if automata.same(dfa, self.terminals[name].own) else None
        joined = Taken(
            frozenset().union(*(option.before for option in options)),
            frozenset().union(*(option.words for option in options)),
        )
        return *self.dfa(name, joined), joined

    def expression(self, name: str, dfa: Dfa, taken: Taken | None) -> str:
        """The right side of a terminal's definition in the engine's grammar."""
        terminal = self.terminals[name]
        if taken is None:
            return f"/{plain(automata.expression(dfa, self.alphabet))}/"
        text = f"/{terminal.text}/"
        minus = [f"/{self._begun(other)}/" for other in sorted(taken.before)]
        minus += [f"/{self.terminals[word].text}/" for word in sorted(taken.words)]
        return f"{text} & ~({' | '.join(minus)})" if minus else text

    def _begun(self, name: str) -> str:
        terminal = self.terminals[name]
        if terminal.program.plain is not None:
            return f"(?:{plain(terminal.program.plain)})(?s:.)*"
        return plain(automata.expression(automata.begun(terminal.matching, self.alphabet), self.alphabet))

    def _clashes(self, terminal: Terminal, earlier: Terminal) -> bool:
        key = (terminal.name, earlier.name)
        if key not in self._clash:
            self._clash[key] = automata.begins(terminal.own, earlier.matching)
        return self._clash[key]

    def _spells(self, terminal: Terminal, literal: Terminal) -> bool:
        if terminal.definition.priority != literal.definition.priority:
            return False
        key = (terminal.name, literal.name)
        if key not in self._spelled:
            value = literal.definition.pattern.value
            self._spelled[key] = fullmatch_prefix(terminal, value, self.flags)
        return self._spelled[key]


def _lark_order(terminal: Terminal) -> tuple[int, int, int, str]:
    pattern = terminal.definition.pattern
    return -terminal.definition.priority, -pattern.max_width, -len(pattern.value), terminal.name
