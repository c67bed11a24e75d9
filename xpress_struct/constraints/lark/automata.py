"""Deterministic automata over a grammar's alphabet: the texts that a lexer takes as one token."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from xpress_struct.constraints.json_schema import regular as rx
from xpress_struct.constraints.json_schema.automaton import Automaton, to_regex
from xpress_struct.constraints.lark.alphabet import Alphabet
from xpress_struct.constraints.lark.matching import Matching

__all__ = [
    "Dfa",
    "begins",
    "begun",
    "expression",
    "extensions",
    "meet",
    "minimal",
    "not_extended",
    "own",
    "same",
    "union",
    "without_prefixes",
    "without_words",
]

_MOST_STATES = 20_000


@dataclass(frozen=True)
class Dfa:
    """State 0 first. Every state but the first leads to an accepted text.

    Attributes:
        rows: per state, the state behind each class of characters, or -1.
        final: the states in which a text is accepted.
    """

    rows: list[list[int]]
    final: frozenset[int]

    @property
    def empty(self) -> bool:
        return not self.final

    @cached_property
    def first(self) -> int:
        """Mask of the classes that a text can begin with."""
        return sum(1 << c for c, target in enumerate(self.rows[0]) if target >= 0)

    @cached_property
    def edges(self) -> list[list[tuple[int, int]]]:
        """Per state, the classes that lead on, each with the state behind it."""
        return [[(c, target) for c, target in enumerate(row) if target >= 0] for row in self.rows]

    def accepts(self, word: Iterable[int]) -> bool:
        """Whether a text, given by its classes, is accepted."""
        state = 0
        for symbol in word:
            state = self.rows[state][symbol]
            if state < 0:
                return False
        return state in self.final


def own(matching: Matching, alphabet: Alphabet) -> tuple[Dfa, int]:
    """The texts that a pattern takes, and the mask of what must not follow them.

    A look-ahead at the end makes a text depend on what follows. Here it is taken when it can be; the second
    result has every symbol (the end of the text is the last) before which it would not be.
    """
    final, forbidden = set(), 0
    for state, (row, match) in enumerate(zip(matching.rows, matching.matched, strict=True)):
        stops = sum(1 << c for c, target in enumerate(row) if target < 0) | 1 << alphabet.end
        if match & stops:
            final.add(state)
            forbidden |= stops & ~match
    return _trim(matching.rows, final), forbidden


def same(left: Dfa, right: Dfa) -> bool:
    """Whether two automata accept the same texts."""
    seen, stack = {(0, 0)}, [(0, 0)]
    while stack:
        a, b = stack.pop()
        if (a in left.final) != (b in right.final):
            return False
        for x, y in zip(left.rows[a], right.rows[b], strict=True):
            if (x < 0) != (y < 0):
                return False
            if x >= 0 and (x, y) not in seen:
                seen.add((x, y))
                stack.append((x, y))
    return True


def begins(dfa: Dfa, matching: Matching) -> bool:
    """Whether a pattern matches at the beginning of some text of `dfa`."""
    seen, stack = {(0, 0)}, [(0, 0)]
    while stack:
        a, b = stack.pop()
        match = matching.matched[b]
        if a in dfa.final and match:
            return True
        row = matching.rows[b]
        for symbol, x in dfa.edges[a]:
            if match >> symbol & 1:
                return True
            y = row[symbol]
            if y >= 0 and (x, y) not in seen:
                seen.add((x, y))
                stack.append((x, y))
    return False


def begun(matching: Matching, alphabet: Alphabet) -> Dfa:
    """The texts at whose beginning a pattern matches."""
    done = len(matching.rows)
    rows = [
        [done if match >> c & 1 else target for c, target in enumerate(row)]
        for row, match in zip(matching.rows, matching.matched, strict=True)
    ]
    rows.append([done] * alphabet.size)
    final = {s for s, match in enumerate(matching.matched) if match >> alphabet.end & 1}
    return _trim(rows, {*final, done})


def without_prefixes(dfa: Dfa, other: Matching, alphabet: Alphabet) -> tuple[Dfa, int]:
    """The texts of `dfa` at whose beginning `other` matches nothing; and what must not follow them."""
    end = 1 << alphabet.end
    index = {(0, 0): 0}
    queue = [(0, 0)]
    rows, final, forbidden = [], set(), 0
    for state, (a, b) in enumerate(queue):
        match = other.matched[b] if b >= 0 else 0
        row = [-1] * len(dfa.rows[a])
        for symbol, target in dfa.edges[a]:
            if match >> symbol & 1:
                continue
            key = (target, other.rows[b][symbol] if b >= 0 else -1)
            if key not in index:
                index[key] = len(queue)
                queue.append(key)
                if len(queue) > _MOST_STATES:
                    raise rx.TooComplexError(f"more than {_MOST_STATES} states")
            row[symbol] = index[key]
        rows.append(row)
        if a in dfa.final and not match & end:
            final.add(state)
            forbidden |= match & sum(1 << c for c, target in enumerate(dfa.rows[a]) if target < 0)
    return _trim(rows, final), forbidden


def without_words(dfa: Dfa, other: Dfa) -> Dfa:
    """The texts of `dfa` that are not texts of `other`."""
    index = {(0, 0): 0}
    queue = [(0, 0)]
    rows, final = [], set()
    for state, (a, b) in enumerate(queue):
        row = [-1] * len(dfa.rows[a])
        for symbol, target in dfa.edges[a]:
            key = (target, other.rows[b][symbol] if b >= 0 else -1)
            if key not in index:
                index[key] = len(queue)
                queue.append(key)
            row[symbol] = index[key]
        rows.append(row)
        if a in dfa.final and b not in other.final:
            final.add(state)
    return _trim(rows, final)


def nothing(alphabet: Alphabet) -> Dfa:
    """No text."""
    return Dfa([[-1] * alphabet.size], frozenset())


def meet(dfa: Dfa, other: Dfa) -> Dfa:
    """The texts of both."""
    return _paired(dfa, other, all)


def union(left: Dfa, right: Dfa) -> Dfa:
    """The texts of either."""
    return _paired(left, right, any)


def _paired(left: Dfa, right: Dfa, goes_on: Callable[[tuple[bool, bool]], bool]) -> Dfa:
    """Both automata side by side; `goes_on` says whether a text does that both, or one of them, take."""
    dead = [-1] * len(left.rows[0])
    index = {(0, 0): 0}
    queue = [(0, 0)]
    rows, final = [], set()
    for state, (a, b) in enumerate(queue):
        row = []
        for x, y in zip(left.rows[a] if a >= 0 else dead, right.rows[b] if b >= 0 else dead, strict=True):
            if not goes_on((x >= 0, y >= 0)):
                row.append(-1)
                continue
            if (x, y) not in index:
                index[x, y] = len(queue)
                queue.append((x, y))
            row.append(index[x, y])
        rows.append(row)
        if goes_on((a in left.final, b in right.final)):
            final.add(state)
    return minimal(_trim(rows, final))


def extensions(dfa: Dfa, other: Dfa) -> int:
    """Mask of the characters with which `other` can go on where a text of `dfa` has ended for good."""
    seen, stack, found = {(0, 0)}, [(0, 0)], 0
    while stack:
        a, b = stack.pop()
        row = dfa.rows[a]
        for symbol, y in other.edges[b]:
            x = row[symbol]
            if x < 0:
                if a in dfa.final:
                    found |= 1 << symbol
            elif (x, y) not in seen:
                seen.add((x, y))
                stack.append((x, y))
    return found


def expression(dfa: Dfa, alphabet: Alphabet) -> rx.Regex:
    """A regular expression of the same texts."""
    dfa = minimal(dfa)
    edges = []
    for row in dfa.rows:
        masks: dict[int, int] = {}
        for symbol, target in enumerate(row):
            if target >= 0:
                masks[target] = masks.get(target, 0) | 1 << symbol
        edges.append({target: alphabet.charset(mask) for target, mask in masks.items()})
    return to_regex(Automaton(tuple(edges), dfa.final))


def _trim(rows: list[list[int]], final: set[int]) -> Dfa:
    into: list[set[int]] = [set() for _ in rows]
    for state, row in enumerate(rows):
        for target in row:
            if target >= 0:
                into[target].add(state)
    alive, stack = set(final), list(final)
    while stack:
        for state in into[stack.pop()]:
            if state not in alive:
                alive.add(state)
                stack.append(state)
    order = [0, *(s for s in range(1, len(rows)) if s in alive)]
    number = {state: place for place, state in enumerate(order)}
    kept = [
        [number[t] if t in alive else -1 for t in rows[s]] if s in alive else [-1] * len(rows[s])
        for s in order
    ]
    return Dfa(kept, frozenset(number[s] for s in final))


def minimal(dfa: Dfa) -> Dfa:
    """The smallest automaton of the same texts (Moore's refinement)."""
    # Most classes of characters behave alike in one automaton; a column of each kind tells the states apart.
    narrow = list(zip(*dict.fromkeys(zip(*dfa.rows, strict=True)), strict=True))
    block = [int(s in dfa.final) for s in range(len(dfa.rows))]
    count = 0
    while True:
        keys: dict[tuple[int, ...], int] = {}
        to = [*block, -1]  # -1 leads to -1
        block = [
            keys.setdefault((block[s], *[to[t] for t in row]), len(keys)) for s, row in enumerate(narrow)
        ]
        if len(keys) == count:
            break
        count = len(keys)
    rows: list[list[int]] = [[] for _ in range(count)]
    for s, row in enumerate(dfa.rows):
        rows[block[s]] = [block[t] if t >= 0 else -1 for t in row]
    return Dfa(rows, frozenset(block[s] for s in dfa.final))  # state 0 comes first, so its block is 0


def not_extended(dfa: Dfa, other: Dfa) -> int:
    """Mask of the characters with which `other` cannot go on behind some text of `dfa`."""
    seen, stack, found = {(0, 0)}, [(0, 0)], 0
    while stack:
        a, b = stack.pop()
        after = other.rows[b] if b >= 0 else [-1] * len(dfa.rows[a])
        for symbol, (x, y) in enumerate(zip(dfa.rows[a], after, strict=True)):
            if y < 0 and a in dfa.final:
                found |= 1 << symbol
            if x >= 0 and (x, y) not in seen:
                seen.add((x, y))
                stack.append((x, y))
    return found


def stops(dfa: Dfa, alphabet: Alphabet) -> int:
    """Mask of what a text can be followed by without going on as a text; the end of the text is in it."""
    found = 1 << alphabet.end
    for state in dfa.final:
        found |= sum(1 << c for c, target in enumerate(dfa.rows[state]) if target < 0)
    return found


def ends_before(dfa: Dfa) -> int:
    """Mask of the characters that never carry on a text of `dfa` behind its end."""
    found = (1 << len(dfa.rows[0])) - 1
    for state in dfa.final:
        found &= ~sum(1 << c for c, target in enumerate(dfa.rows[state]) if target >= 0)
    return found


def symbols(dfa: Dfa) -> int:
    """Mask of the classes that stand in some text."""
    return sum(1 << c for c in {c for row in dfa.rows for c, target in enumerate(row) if target >= 0})


def carried_on(dfa: Dfa, newline: int, blanks: int) -> int:
    """Mask of the characters that carry on a text which ends with a line feed and blanks.

    Args:
        newline: the class of the line feed.
        blanks: mask of the blanks.
    """
    seen, stack, found = {(0, False)}, [(0, False)], 0
    while stack:
        state, fresh = stack.pop()
        for symbol, target in enumerate(dfa.rows[state]):
            if target < 0:
                continue
            if fresh and state in dfa.final:
                found |= 1 << symbol
            key = (target, symbol == newline or (fresh and bool(blanks >> symbol & 1)))
            if key not in seen:
                seen.add(key)
                stack.append(key)
    return found


def unguarded(matching: Matching, other: Dfa, alphabet: Alphabet) -> int:
    """Mask of what a text of a pattern must not be followed by, where `other` does not read on with it."""
    seen, stack, found = {(0, 0)}, [(0, 0)], 0
    while stack:
        a, b = stack.pop()
        row, match = matching.rows[a], matching.matched[a]
        after = other.rows[b] if b >= 0 else [-1] * alphabet.size
        stops = sum(1 << c for c, target in enumerate(row) if target < 0) | 1 << alphabet.end
        if match & stops:
            goes_on = sum(1 << c for c, target in enumerate(after) if target >= 0)
            found |= stops & ~match & ~goes_on
        for x, y in zip(row, after, strict=True):
            if x >= 0 and (x, y) not in seen:
                seen.add((x, y))
                stack.append((x, y))
    return found


def always_read(dfa: Dfa) -> int:
    """Mask of the characters that carry on every text of `dfa`."""
    found = (1 << len(dfa.rows[0])) - 1
    for state in dfa.final:
        found &= sum(1 << c for c, target in enumerate(dfa.rows[state]) if target >= 0)
    return found


def last(dfa: Dfa) -> int:
    """Mask of the characters that a text can end with."""
    found = 0
    for row in dfa.rows:
        found |= sum(1 << c for c, target in enumerate(row) if target in dfa.final)
    return found
