"""What a lexer of lark takes as which terminal, when several could match.

lark's basic lexer tries its terminals in the order (priority, width, length, name) as one alternation of `re`,
and then calls a text by a literal's name when a literal spells it. So a terminal takes a text when it takes it
alone, no terminal before it in that order matches at its beginning, and no literal spells it. Those texts are
regular, and disjoint; the longest of them is what the lexer takes. The contextual lexer does the same with the
terminals of one parser state.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xpress_struct.constraints.json_schema.regex_text import plain
from xpress_struct.constraints.lark import automata
from xpress_struct.constraints.lark.alphabet import Alphabet
from xpress_struct.constraints.lark.automata import Dfa
from xpress_struct.constraints.lark.terminals import Terminal, fullmatch_prefix

__all__ = ["Scanners", "Taken"]


@dataclass(frozen=True)
class Taken:
    """The texts that a scanner takes as one terminal.

    Attributes:
        dfa: their automaton; empty when the scanner never takes the terminal.
        forbidden: mask of what must not follow them.
        before: names of the terminals that come first and take away texts.
        words: names of the literals whose texts it does not take.
        derived: its expression must be made from the automaton.
    """

    dfa: Dfa
    forbidden: int
    before: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    derived: bool = False


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
        self._taken: dict[tuple[str, frozenset[str], frozenset[str]], Taken] = {}
        self._clash: dict[tuple[str, str], bool] = {}
        self._spelled: dict[tuple[str, str], bool] = {}

    def alone(self, name: str) -> Taken:
        """What a terminal takes when nothing competes, as with Earley's dynamic lexer."""
        terminal = self.terminals[name]
        return Taken(terminal.own, terminal.forbidden)

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
        spelled = {
            t.name: [s for s in literals if self._spells(t, s)] for t in present if not t.literal
        }
        embedded = {
            s.name
            for t in present
            for s in spelled.get(t.name, ())
            if s.definition.pattern.flags <= t.definition.pattern.flags
        }
        order = [t for t in present if t.name not in embedded]
        result: dict[str, Taken] = {}
        renamed: dict[str, list[Dfa]] = {}
        for place, terminal in enumerate(order):
            before = frozenset(o.name for o in order[:place] if self._clashes(terminal, o))
            # A literal spells no text that is dropped anyway.
            words = [] if terminal.name in self.ignored else spelled.get(terminal.name, [])
            result[terminal.name] = self.taken(terminal.name, before, frozenset(w.name for w in words))
            if words:
                left = self.taken(terminal.name, before, frozenset()).dfa
                for word in words:
                    renamed.setdefault(word.name, []).append(automata.meet(word.own, left))
                    left = automata.without_words(left, word.own)
        for name in {*embedded, *renamed}:
            scanned = [result[name].dfa] if name in result else []
            result[name] = self._either([*scanned, *renamed.get(name, [])], name)
        return result

    def _either(self, parts: list[Dfa], name: str) -> Taken:
        own = self.terminals[name].own
        joined = parts[0] if parts else Dfa([[-1] * self.alphabet.size], frozenset())
        for part in parts[1:]:
            joined = automata.union(joined, part)
        return Taken(joined, 0, derived=not automata.same(joined, own))

    def taken(self, name: str, before: frozenset[str], words: frozenset[str]) -> Taken:
        """A terminal's own texts, less those that other terminals take."""
        key = (name, before, words)
        found = self._taken.get(key)
        if found is None:
            terminal = self.terminals[name]
            dfa, forbidden = terminal.own, terminal.forbidden
            for other in sorted(before):
                dfa, more = automata.without_prefixes(dfa, self.terminals[other].matching, self.alphabet)
                forbidden |= more
            for word in sorted(words):
                dfa = automata.without_words(dfa, self.terminals[word].own)
            found = self._taken[key] = Taken(dfa, forbidden, before, words)
        return found

    def common(self, name: str, options: list[Taken]) -> Taken:
        """The texts that every one of several scanners takes as a terminal."""
        if all(option == options[0] for option in options):
            return options[0]
        before = frozenset().union(*(option.before for option in options))
        words = frozenset().union(*(option.words for option in options))
        found = self.taken(name, before, words)
        if not any(option.derived for option in options):
            return found
        dfa = found.dfa
        for option in options:
            dfa = automata.meet(dfa, option.dfa)
        return Taken(dfa, found.forbidden, derived=True)

    def expression(self, name: str, taken: Taken) -> str:
        """The right side of a terminal's definition in the engine's grammar."""
        terminal = self.terminals[name]
        if taken.derived:
            return f"/{plain(automata.expression(taken.dfa, self.alphabet))}/"
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
