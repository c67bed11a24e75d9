"""A loaded grammar of lark -> a grammar of the engine, and what had to be done for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import lark as lark_library

from xpress_struct.constraints.json_schema import charset as cs
from xpress_struct.constraints.json_schema import regular as rx
from xpress_struct.constraints.json_schema.regex_text import plain
from xpress_struct.constraints.lark import automata
from xpress_struct.constraints.lark.blanks import Ignored, arrange
from xpress_struct.constraints.lark.characterwise import by_characters
from xpress_struct.constraints.lark.conflicts import conflicts
from xpress_struct.constraints.lark.contexts import contexts_of, rules_of, taken_everywhere, variants_of
from xpress_struct.constraints.lark.emission import plain_name, write_grammar
from xpress_struct.constraints.lark.fusing import fuse, waiting
from xpress_struct.constraints.lark.indentation import Blocks, indented
from xpress_struct.constraints.lark.proofs import Context, Proofs
from xpress_struct.constraints.lark.report import LarkReport
from xpress_struct.constraints.lark.rules import END, Rules
from xpress_struct.constraints.lark.scanners import Scanners
from xpress_struct.constraints.lark.separation import INSIDE, separate
from xpress_struct.constraints.lark.terminals import read_terminals
from xpress_struct.errors import CompileLimitError, GrammarError, UnsupportedFeatureError

__all__ = ["Translation", "translate"]


@dataclass(frozen=True)
class Translation:
    """The engine's grammar, and the report."""

    grammar: str
    report: LarkReport


def translate(parser: lark_library.Lark, start: str, max_blanks: int, blocks: Blocks | None) -> Translation:
    """Translates a loaded grammar.

    Args:
        start: one of its start symbols.
        max_blanks: longest run of ignored blanks, in characters.
        blocks: its indentation.

    Raises:
        UnsupportedFeatureError: a part of it cannot be enforced.
        GrammarError: no text is in its language.
        CompileLimitError: it is too large.
    """
    try:
        return _Translator(parser, start, max_blanks, blocks).run()
    except rx.TooComplexError as error:
        raise CompileLimitError(f"The grammar is larger than the limits allow: {error}.") from None


class _Translator:
    """One translation. The steps of `run` change `rules` and `texts` and note what they did."""

    def __init__(self, parser: lark_library.Lark, start: str, max_blanks: int, blocks: Blocks | None) -> None:
        self.parser, self.start, self.max_blanks, self.blocks = parser, start, max_blanks, blocks
        self.lexer = str(parser.options.lexer)
        self.terminals, self.alphabet = read_terminals(list(parser.terminals), parser.options.g_regex_flags)
        self.silent = frozenset((blocks.indent, blocks.dedent)) if blocks else frozenset()
        plain_rules = rules_of(parser)
        self._check_declared({s.name for _, e in plain_rules for s in e if s.terminal})
        self.scanners = scanners = Scanners(
            self.terminals, self.alphabet, parser.ignore_tokens, parser.options.g_regex_flags
        )
        self.contexts = contexts_of(parser, frozenset(self.terminals), plain_rules, start)
        dropped = scanners.ignored | ({blocks.newline} if blocks and blocks.opening else frozenset())
        self.taken = taken_everywhere(scanners, self.contexts, dropped)
        self.dfas = {name: one.dfa for name, one in self.taken.items() if not one.dfa.empty}
        if blocks and blocks.newline not in self.dfas:
            raise GrammarError(
                f"lark's lexer never takes {blocks.newline}, the Indenter's line break: other terminals come "
                "first, or there is no such terminal."
            )
        self.ignored = [name for name in parser.ignore_tokens if name in self.dfas]
        # Inside brackets a line break is dropped too.
        self.dropped = [*self.ignored, blocks.newline] if blocks else self.ignored
        self.rules = Rules(plain_rules, start, self.terminals.keys() - self.dfas.keys())
        self._end_all()
        self.used = [n for n in self.terminals if n in self.rules.terminals or n in self.dropped]
        self.texts = {
            n: scanners.expression(n, self.taken[n].dfa, self.taken[n].how)
            for n in self.used
            if n in self.dfas
        }
        self.gated = [
            f"{n} is read differently in different places"
            for n in self.used
            if n in self.taken and self.taken[n].split
        ]
        looked_for = self.terminals if self.contexts else self.used
        self.gated += [f"{n}: {self.terminals[n].inexact}" for n in looked_for if self.terminals[n].inexact]
        # The engine looks for what is forced; where what must follow is swallowed, that has no end.
        self.forcing = not self.gated
        if parser.options.parser == "lalr":
            self.gated += conflicts(parser)
        self.bounded: list[str] = []
        self.apart: dict[str, int] = {}

    def run(self) -> Translation:
        self._find_neighbours()
        self._find_double_ends()
        if self.lexer == "dynamic_complete":
            return self._all_splits()
        if not self.blocks:
            self._find_swallowed()
        between = arrange(
            {name: self.dfas[name] for name in self.ignored},
            {name: self.dfas[name] for name in self.rules.terminals - self.silent},
            self.texts,
            self.alphabet,
            self.max_blanks,
        )
        self.bounded += between.bounded
        if self.lexer == "dynamic":
            self._join()
        if self.apart:
            self._separate()
        if self.blocks:
            self._indent(self.blocks)
        return self._written(between)

    def _check_declared(self, used: set[str]) -> None:
        declared = used - self.terminals.keys() - self.silent
        if declared:
            name = min(declared)
            raise UnsupportedFeatureError(
                f"The terminal {name} is declared without a pattern (%declare), and no postlex= says how it "
                "is found.",
                feature=f"%declare {name}",
            )

    def _end_all(self) -> None:
        """Drops the terminals that swallow whatever could follow them, so that they never end."""
        if self.rules.empty:
            self._nothing_left()
        while self.lexer != "dynamic_complete":
            follow = self._proofs().follow
            endless = {
                name
                for name in self.rules.terminals - self.silent
                if not automata.stops(self.dfas[name], self.alphabet) & follow[name]
            }
            if not endless:
                return
            self.rules = Rules(self.rules.all, self.rules.start, endless)
            # lark's lexer goes on looking for them.
            self.contexts = [context.without(endless) for context in self.contexts]
            if self.rules.empty:
                name = min(endless)
                raise UnsupportedFeatureError(
                    f"The terminal {name} reads on into whatever may follow it, and nothing is ignored "
                    "between them. Such terminals cannot be told apart token by token.",
                    feature=f"terminal {name} without an end",
                )

    def _nothing_left(self) -> None:
        raise GrammarError(
            f"No text is in the language of the rule {self.start!r}: every way through it needs a terminal "
            "that lark's lexer never takes there, or does not end."
        )

    def _proofs(self) -> Proofs:
        return Proofs(self.rules, self.dfas, self.alphabet, self.dropped, silent=self.silent)

    def _find_neighbours(self) -> None:
        """Finds the terminals that must be kept apart from what would change how lark reads them."""
        proofs = self._proofs()
        variants = variants_of(self.scanners, self.contexts, self.dfas)
        for (name, other), mask in proofs.longer(self.contexts, variants).items():
            if name in self.ignored:
                self.gated.append(f"lark's lexer may take {other} where {name} is ignored")
            else:
                self.apart[name] = self.apart.get(name, 0) | mask
        shifts = self.contexts or [Context(frozenset(), names) for names in self.rules.shifts]
        for name in self.texts:
            terminal, forbidden = self.terminals[name], self.taken[name].forbidden
            matching = terminal.matching if forbidden == terminal.forbidden else None
            mask = proofs.followed(name, forbidden, matching, shifts)
            if mask and name in self.ignored:
                self.gated.append(f"what follows {name}, which is ignored, decides whether it matches")
            elif mask:
                self.apart[name] = self.apart.get(name, 0) | mask

    def _find_swallowed(self) -> None:
        """A terminal that reads on into what follows it, with nothing ignored between, leads nowhere."""
        between = 0
        for name in self.ignored:
            between |= self.dfas[name].first
        follow = self._proofs().follow
        for name in self.rules.terminals - self.silent:
            mask = automata.always_read(self.dfas[name])
            spaced = between & ~mask and not between & self.apart.get(name, 0)
            if mask & follow[name] and not spaced:
                if self.contexts:
                    self.gated.append(f"{name} reads on into what may follow it")
                self.apart[name] = self.apart.get(name, 0) | (mask & follow[name])

    def _find_double_ends(self) -> None:
        """lark's dynamic Earley fails on a text that may end by a token and by what is ignored alike."""
        ways = sum(origin == self.start for origin, _ in self.rules.all)
        if self.parser.options.parser != "earley" or self.lexer == "basic" or ways < 2:
            return
        last = {name for name, follow in self.rules.follow.items() if END in follow}
        behind = {other for name in last for other in self.rules.follow[name]}
        if self.start in self.rules.nullable:
            behind |= self.rules.first[self.start]
        for name in self.ignored:
            dropped, first = self.dfas[name], self.dfas[name].first
            clash = {
                other
                for other in self.ignored
                if other != name and automata.extensions(self.dfas[other], dropped)
            }
            clash |= {other for other in behind - {END} if self.dfas[other].first & first}
            clash |= {
                other
                for other in last
                if automata.symbols(self.dfas[other]) & first
                and automata.last(self.dfas[other]) & automata.symbols(dropped)
            }
            if clash:
                self.gated.append(
                    f"lark's Earley parser may fail where {name}, which is ignored, looks like the end of "
                    f"{', '.join(sorted(clash))}"
                )

    def _join(self) -> None:
        waits = waiting(self.rules, self.dfas, self.ignored)
        forbidden = {name: self.taken[name].forbidden for name in waits}
        joined = fuse(self.rules, self.dfas, waits, forbidden) if waits and not self.apart else None
        if joined is not None:
            self.rules = joined
            for name in joined.terminals - self.texts.keys():
                parts = (self.terminals[part].text for part in name.split("+"))
                self.texts[name] = "/" + "".join(f"(?:{part})" for part in parts) + "/"
        elif waits:
            self.bounded.append(f"{', '.join(waits)}: only where no other terminal reads on behind them")

    def _separate(self) -> None:
        begins = 0
        for name in self.ignored:
            begins |= self.dfas[name].first
        whole = (
            frozenset((self.blocks.newline, *self.blocks.opening, *self.blocks.closing))
            if self.blocks
            else frozenset()
        )
        made = separate(
            self.rules, self.dfas, self.apart, begins, self.alphabet, whole=whole, silent=self.silent
        )
        if made is None:
            self.gated += [f"what follows {name} decides what lark's lexer takes" for name in self.apart]
            return
        if made[0].empty:
            # Perhaps what is ignored could stand between, but not all of it.
            self.gated.append("what must be kept apart cannot be told from what is ignored")
            self.forcing = False
            return
        self.rules = made[0]
        for name, (terminal, barred) in made[1].items():
            begin = plain(rx.chars(self.alphabet.charset(barred)))
            self.texts[name] = f"{self.texts[terminal]} & ~(/{begin}(?s:.)*/)"

    def _indent(self, blocks: Blocks) -> None:
        blanks = self.alphabet.mask(cs.make([(9, 9), (32, 32)]))
        carry = automata.carried_on(self.dfas[blocks.newline], self.alphabet.index(10), blanks)
        reads_on = {name for name in self.dfas if self.dfas[name].first & carry}
        made = indented(self.rules, blocks, frozenset(reads_on))
        if made is None:
            raise CompileLimitError(
                f"{blocks.depth} levels of indentation make the grammar larger than the limits allow; pass a "
                "smaller max_depth."
            )
        if made.empty:
            self._nothing_left()
        self.rules = made
        self.texts.update(blocks.texts(self.texts[blocks.newline]))
        self.bounded += blocks.bounds

    def _written(self, between: Ignored) -> Translation:
        inside = ""
        if self.blocks:
            inside = f"{{{self.blocks.newline}{INSIDE}}}"
        kept = {plain_name(name) for name in self.rules.terminals} | between.used
        kept |= {inside.strip("{}")} if any(n.endswith(INSIDE) for n in self.rules.terminals) else set()
        texts = {n: text for n, text in {**self.texts, **between.terminals}.items() if n in kept}
        grammar = write_grammar(self.rules, texts, between.rule, inside if inside.strip("{}") in kept else "")
        if not (between.clear and self.forcing):
            grammar = f'%llguidance {{"no_forcing": true}}\n{grammar}'
        return Translation(grammar, self._report())

    def _all_splits(self) -> Translation:
        """For the lexer "dynamic_complete"."""
        starts = 0
        for name in self.rules.terminals:
            starts |= self.dfas[name].first
        # lark drops as much as a pattern takes; that is seen only where a token could begin inside it.
        for name in self.used:
            if self.terminals[name].program.plain is None:
                self.gated.append(f"{name}: its assertions see only a part of the text")
        for name in self.ignored:
            if automata.symbols(self.dfas[name]) & starts:
                self.gated.append(f"a terminal may begin inside {name}, which is ignored")
        if self.rules.empty:
            self._nothing_left()
        made, classes = by_characters(self.rules, self.dfas, self.ignored, self.alphabet)
        self.rules, self.apart = Rules(made, "$start"), {}
        if self.ignored:
            self.bounded.append("runs of ignored text are not bounded")
        return Translation(write_grammar(self.rules, classes, ""), self._report())

    def _report(self) -> LarkReport:
        return LarkReport(
            str(self.parser.options.parser),
            self.lexer,
            rewritten=tuple(
                f"{n}: {self.terminals[n].rewritten}" for n in self.used if self.terminals[n].rewritten
            ),
            proved=(
                *self._resolved(),
                *(f"{name} is kept apart from what would change it" for name in self.apart),
            ),
            gated=tuple(dict.fromkeys(self.gated)),
            bounded=tuple(self.bounded),
        )

    def _resolved(self) -> Iterable[str]:
        for name in self.used:
            how = self.taken[name].how if name in self.taken else None
            if how is not None and how.before | how.words:
                yield f"{name} without the texts of {', '.join(sorted(how.before | how.words))}"
