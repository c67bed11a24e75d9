"""What Python's `re` takes at a place, as a deterministic automaton.

`re.match` follows the branches of a pattern in order and stops at the first that succeeds. The automaton's
state is the ordered list of the branches still alive (R. Cox, "Regular expression matching: the virtual
machine approach", 2009); where one matches, those behind it are cut off. So what `re` takes is the *last*
match on the way, which is the longest one of the automaton: an engine whose lexer takes the longest match can
follow it exactly. Lazy repeats are branches in the other order and need nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter

from xpress_struct.constraints.json_schema import regular as rx
from xpress_struct.constraints.lark.alphabet import Alphabet
from xpress_struct.constraints.lark.program import Program

__all__ = ["Matching", "follow_pattern"]

_MOST_STATES = 3000
_UNKNOWN = -1  # the character before the first: the pattern alone does not say what it is

# A branch: the place in the program, and the look-aheads it still owes: (negative, places in their programs).
_Debts = frozenset[tuple[bool, frozenset[int]]]
_Branch = tuple[int, _Debts]


@dataclass
class Matching:
    """An automaton over classes of characters.

    Attributes:
        rows: per state, the state behind each class; -1 when nothing can match any more.
        matched: per state, the classes (and the end of the text, the bit after them) before which a match
            ends here.
        ordered: whether branches behind a match were left, so that their order may matter.
        inexact: why it is only an upper bound of what `re` takes, or "".
    """

    rows: list[list[int]]
    matched: list[int]
    ordered: bool = False
    inexact: str = ""


def follow_pattern(program: Program, alphabet: Alphabet, *, cut: bool = True) -> Matching:
    """The automaton of a program.

    Args:
        cut: False takes every whole match, as if the order of the branches did not matter.

    Raises:
        regular.TooComplexError: it has too many states.
    """
    return _Follower(program, alphabet, cut).run()


class _Follower:
    def __init__(self, program: Program, alphabet: Alphabet, cut: bool) -> None:
        self.steps, self.alphabet, self.cut = program.steps, alphabet, cut
        self.start, self.history = program.start, program.history
        self.masks = [alphabet.mask(step.charset) if step.charset else 0 for step in self.steps]
        self.newline = alphabet.index(10)
        self.inexact = ""
        self.ordered = False

    def run(self) -> Matching:
        alphabet = self.alphabet
        first: tuple[tuple[_Branch, ...], tuple[int, ...]] = (
            ((self.start, frozenset()),),
            (_UNKNOWN,) * self.history,
        )
        index = {first: 0}
        queue = [first]
        rows: list[list[int]] = []
        matched: list[int] = []
        alike = self.alike()
        for branches, before in queue:
            row, match = [-1] * alphabet.size, 0
            for symbols in alike:
                after, hit = self.advance(branches, before, symbols[0])
                if hit:
                    match |= sum(1 << symbol for symbol in symbols)
                if not after or symbols[0] == alphabet.end:
                    continue
                key = (after, (*before, symbols[0])[1:] if self.history else ())
                if key not in index:
                    index[key] = len(queue)
                    queue.append(key)
                    if len(queue) > _MOST_STATES:
                        raise rx.TooComplexError(f"more than {_MOST_STATES} states")
                for symbol in symbols:
                    row[symbol] = index[key]
            rows.append(row)
            matched.append(match)
        return Matching(_without_dead_ends(rows, matched), matched, self.ordered, self.inexact)

    def alike(self) -> list[list[int]]:
        """The symbols, those together that no step of the program tells apart."""
        alphabet = self.alphabet
        behind = {alphabet.mask(one) for step in self.steps for option in step.before for one in option}
        masks = {*self.masks, *behind, 1 << self.newline, 1 << alphabet.end}
        groups: dict[tuple[int, ...], list[int]] = {}
        for symbol in range(alphabet.size + 1):
            groups.setdefault(tuple(mask >> symbol & 1 for mask in masks), []).append(symbol)
        return list(groups.values())

    def advance(
        self, branches: tuple[_Branch, ...], before: tuple[int, ...], symbol: int
    ) -> tuple[tuple[_Branch, ...], bool]:
        """The branches behind a symbol, and whether a match ends in front of it."""
        kept: dict[_Branch, None] = {}
        hit = False
        seen: set[_Branch] = set()
        for rank, (place, debts) in enumerate(branches, 1):
            paid = self.pay(debts, before, symbol) if debts else debts
            if paid is None:
                continue
            stack = [(place, paid)]
            while stack:
                branch = stack.pop()
                if branch in seen:
                    continue
                seen.add(branch)
                at, owed = branch
                step = self.steps[at]
                if step.kind == "char":
                    if symbol != self.alphabet.end and self.masks[at] >> symbol & 1:
                        kept[step.targets[0], owed] = None
                elif step.kind == "split":
                    stack += [(target, owed) for target in reversed(step.targets)]
                elif step.kind == "match":
                    hit = True
                    if owed:
                        self.inexact = "a look-ahead goes beyond the next character"
                    if self.cut:
                        self.ordered = self.ordered or bool(stack) or rank < len(branches)
                        return tuple(kept), True
                elif step.kind == "look":
                    more = self.pay(frozenset({(step.negative, frozenset({step.inner}))}), before, symbol)
                    if more is not None:
                        stack.append((step.targets[0], owed | more))
                elif self.holds(at, before, symbol):
                    stack.append((step.targets[0], owed))
        ordered = tuple(kept)
        return (ordered if self.cut else tuple(sorted(ordered, key=itemgetter(0)))), hit

    def pay(self, debts: _Debts, before: tuple[int, ...], symbol: int) -> _Debts | None:
        """The look-aheads still open behind a symbol; None when one of them failed."""
        left = set()
        for negative, places in debts:
            open_, met = self.inner(places, before, symbol)
            # What matches whatever comes next has matched.
            met = met or (bool(open_) and self.inner(open_, before, None)[1])
            if met:
                if negative:
                    return None
            elif open_:
                left.add((negative, open_))
            elif not negative:
                return None
        return frozenset(left)

    def inner(
        self, places: frozenset[int], before: tuple[int, ...], symbol: int | None
    ) -> tuple[frozenset[int], bool]:
        """A look-ahead's own places behind a symbol, and whether it matches. Without a symbol: at once."""
        found, seen, stack = set(), set(), list(places)
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            step = self.steps[at]
            if step.kind == "match":
                return frozenset(), True
            if step.kind == "char":
                if symbol not in (None, self.alphabet.end) and self.masks[at] >> symbol & 1:
                    found.add(step.targets[0])
            elif step.kind == "split":
                stack += step.targets
            elif symbol is not None and self.holds(at, before, symbol):
                stack.append(step.targets[0])
        return frozenset(found), False

    def holds(self, at: int, before: tuple[int, ...], symbol: int) -> bool:
        """Whether an assertion about the neighbours of this place holds."""
        step = self.steps[at]
        end = symbol == self.alphabet.end
        last = before[-1] if before else _UNKNOWN
        if step.kind == "end":
            if symbol == self.newline and not step.strict and not step.multiline:
                self.inexact = "`$` before a line feed"
                return False
            return end or (step.multiline and symbol == self.newline)
        if step.kind == "begin":
            if last == _UNKNOWN:
                self.inexact = "`^` depends on what stands before the terminal"
                return True
            return step.multiline and last == self.newline
        if step.kind == "boundary":
            if last == _UNKNOWN:
                self.inexact = "`\\b` depends on what stands before the terminal"
                return True
            word = bool(self.masks[at] >> last & 1)
            follows = not end and bool(self.masks[at] >> symbol & 1)
            return (word != follows) != step.negative
        for option in step.before:
            places = before[len(before) - len(option) :]
            pairs = list(zip(option, places, strict=True))
            if all(place == _UNKNOWN or self.alphabet.mask(one) >> place & 1 for one, place in pairs):
                if _UNKNOWN in places:
                    self.inexact = "a look-behind depends on what stands before the terminal"
                    return True
                return not step.negative
        return step.negative


def _without_dead_ends(rows: list[list[int]], matched: list[int]) -> list[list[int]]:
    into: list[set[int]] = [set() for _ in rows]
    for state, row in enumerate(rows):
        for target in row:
            if target >= 0:
                into[target].add(state)
    alive = {state for state, match in enumerate(matched) if match}
    stack = list(alive)
    while stack:
        for state in into[stack.pop()]:
            if state not in alive:
                alive.add(state)
                stack.append(state)
    return [[target if target in alive else -1 for target in row] for row in rows]
