"""lark's Indenter, up to a depth: blocks by indentation, and line breaks that brackets hide.

The Indenter puts INDENT and DEDENT tokens behind a line break, by the width of the blanks that it ends
with, and drops line breaks inside brackets. Here each level of indentation is a number of spaces. The level,
and the INDENT and DEDENT tokens still to come, are the state of an automaton, whose product with the grammar
is taken; what holds no line break is shared by all levels. Inside brackets a line break is one more thing to
ignore.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lark.indenter import Indenter

from xpress_struct.constraints.lark.product import State, product
from xpress_struct.constraints.lark.rules import Rule, Rules, Symbol
from xpress_struct.constraints.lark.separation import BARE, INSIDE, SPACED
from xpress_struct.errors import UnsupportedFeatureError

__all__ = ["Blocks", "indented", "read_indenter"]

_PLAIN = frozenset({"line", "fresh"})  # in a line; "fresh" right behind its line break

_LINES = 160  # lines that one line break may run over: empty ones, and comments
_MOST_BLANKS = 80


@dataclass(frozen=True)
class Blocks:
    """How a grammar is indented.

    Attributes:
        newline, indent, dedent: names of the terminals.
        opening, closing: names of the brackets.
        width: spaces of one level.
        depth: the deepest level.
    """

    newline: str
    indent: str
    dedent: str
    opening: frozenset[str]
    closing: frozenset[str]
    width: int
    depth: int

    def level(self, depth: int) -> str:
        """Name of the line break before a line of this depth."""
        return f"{self.newline}${depth}"

    @property
    def bounds(self) -> list[str]:
        """What is left out, in words."""
        return [
            f"indentation: {self.width} spaces a level, at most {self.depth} levels",
            f"a line break: at most {_LINES} lines of comments or nothing, each behind {_MOST_BLANKS} blanks",
        ]

    def texts(self, newline: str) -> dict[str, str]:
        """Definitions of the line breaks by name, from that of any line break."""
        lines = rf"(?:[ \x09]{{0,{_MOST_BLANKS}}}(?:[^ \x09\x0a\x0d][^\x0a]*)?\x0d?\x0a){{1,{_LINES}}}"
        found = {
            self.level(depth): f"{newline} & /{lines}[ ]{{{depth * self.width}}}/"
            for depth in range(self.depth + 1)
        }
        found[self.newline + INSIDE] = rf"{newline} & /{lines}[ \x09]{{0,{_MOST_BLANKS}}}/"
        return found


def read_indenter(postlex: object, width: int, depth: int) -> Blocks | None:
    """What an Indenter says; None without one.

    Raises:
        UnsupportedFeatureError: it is another kind of post-lexer, or an Indenter with its own ways.
    """
    if postlex is None:
        return None
    kind = type(postlex)
    own = ("handle_NL", "_process", "process", "always_accept")
    if not isinstance(postlex, Indenter) or any(getattr(kind, n) is not getattr(Indenter, n) for n in own):
        raise UnsupportedFeatureError(
            f"postlex is a {kind.__name__}; of post-lexers only lark's Indenter is known here, with the "
            "names of its terminals.",
            feature="postlex",
        )
    return Blocks(
        postlex.NL_type,
        postlex.INDENT_type,
        postlex.DEDENT_type,
        frozenset(postlex.OPEN_PAREN_types),
        frozenset(postlex.CLOSE_PAREN_types),
        width,
        depth,
    )


def indented(rules: Rules, blocks: Blocks, reads_on: frozenset[str]) -> Rules | None:
    """The rules with a line break for each level, and without INDENT and DEDENT; None when too many.

    Args:
        reads_on: terminals that begin with what a line break would read on with.

    Raises:
        UnsupportedFeatureError: brackets open and close in different rules.
    """
    marked = Rules(_inside_brackets(rules, blocks), rules.start)
    moving = {blocks.newline, blocks.indent, blocks.dedent}
    changing: set[str] = set()
    while True:
        more = {
            origin
            for origin, expansion in marked.all
            if origin not in changing
            and any(_base(s.name) in moving if s.terminal else s.name in changing for s in expansion)
        }
        if not more:
            break
        changing |= more

    def step(state: State, terminal: str) -> Iterable[tuple[State, tuple[Symbol, ...]]]:
        kind, depth, open_ = state[0], int(state[1]), int(state[2])
        base = _base(terminal)
        if base == blocks.newline:
            if kind != "line" and not (kind == "fresh" and base not in reads_on):
                return []
            found: list[tuple[State, tuple[Symbol, ...]]] = []
            for to in range(min(depth + 1, blocks.depth) + 1):
                written = (Symbol(blocks.level(to) + BARE, True),)
                after = "fresh" if to == depth else "indent" if to > depth else "dedent"
                found.append(((after, str(max(to, depth)), str(abs(depth - to))), written))
            return found
        if base == blocks.indent:
            return [(("fresh", str(depth), "0"), ())] if kind == "indent" else []
        if base == blocks.dedent:
            if kind == "dedent":
                left = "dedent" if open_ > 1 else "fresh"
                return [((left, str(depth - 1), str(open_ - 1)), ())]
            # At the end of the text all blocks are closed.
            return [(("end", str(depth - 1), "0"), ())] if kind in _PLAIN | {"end"} and depth else []
        if kind not in _PLAIN or (kind == "fresh" and base in reads_on):
            return []
        return [(("line", *state[1:]), (Symbol(terminal, True),))]

    # What may be empty is copied too, so that a line that has just begun is told from one that has text.
    keeps = frozenset(marked.of) - changing - marked.nullable
    keeps -= {name for name in keeps if {_base(first) for first in marked.first[name]} & reads_on}

    return product(
        marked,
        step,
        lambda state: state[0] in _PLAIN | {"end"} and state[1] == "0",
        initial=("line", "0", "0"),
        keeps=keeps | {name for name in marked.of if name.endswith(INSIDE)},
        settled=lambda state: ("line", *state[1:]) if state[0] in _PLAIN else None,
    )


def _base(terminal: str) -> str:
    return terminal.removesuffix(INSIDE).removesuffix(BARE).removesuffix(SPACED)


def _inside_brackets(rules: Rules, blocks: Blocks) -> list[Rule]:
    """The rules twice: outside brackets, and inside."""
    made: list[Rule] = []
    for origin, expansion in rules.all:
        for inside in (False, True):
            depth, written = int(inside), []
            usable = True
            for symbol in expansion:
                base = _base(symbol.name) if symbol.terminal else ""
                depth -= base in blocks.closing
                if depth < inside:
                    raise _unbalanced(origin)
                depth += base in blocks.opening
                # Inside brackets there are no line breaks, so no blocks either.
                usable = usable and not (depth and base in (blocks.newline, blocks.indent, blocks.dedent))
                written.append(Symbol(symbol.name + INSIDE * bool(depth), symbol.terminal))
            if depth != inside:
                raise _unbalanced(origin)
            if usable:
                made.append((origin + INSIDE * inside, tuple(written)))
    return made


def _unbalanced(origin: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"In the rule {origin!r} a bracket opens or closes alone; under an Indenter brackets must open and "
        "close in one rule.",
        feature="brackets across rules",
    )
