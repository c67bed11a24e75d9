"""Random texts of a Lark grammar: its rules are expanded at random, its terminals drawn from their patterns.

It knows nothing of parsers, so what it writes tests a grammar against the judge of its language.
"""

from __future__ import annotations

import random
import re
import sys
from collections import defaultdict
from typing import Any

import lark

if sys.version_info >= (3, 11):
    from re import _constants as sre
    from re import _parser as sre_parser
else:
    import sre_constants as sre
    import sre_parse as sre_parser

_LETTERS = "abcxyzTQ059_ .,-'\"#\\{}[]()=:;éß\n\t"
_TRIES = 500
_NEWLINE, _BLOCKS = "_NEWLINE", {"_INDENT": 1, "_DEDENT": -1}


class Sampler:
    """Draws texts.

    Args:
        grammar: a loaded grammar.
        seed: of the draws.
        room: about how many rules a text expands before its shortest ending is taken.
    """

    def __init__(self, grammar: lark.Lark, seed: int = 0, room: int = 60) -> None:
        self._random, self._room = random.Random(seed), room
        self._terminals = {terminal.name: terminal.pattern for terminal in grammar.terminals}
        self._start = grammar.options.start[0]
        self._rules: dict[str, list[list[tuple[bool, str]]]] = defaultdict(list)
        for rule in grammar.rules:
            symbols = [(symbol.is_term, str(symbol.name)) for symbol in rule.expansion]
            self._rules[str(rule.origin.name)].append(symbols)
        self._heights = self._least_heights()

    def text(self) -> str:
        """One text."""
        pieces, depth = list[str](), 0
        names = self.terminals()
        for place, name in enumerate(names):
            if name == _NEWLINE:
                # The blanks at the end of a line feed say which blocks begin and end there.
                for following in names[place + 1 :]:
                    if following not in _BLOCKS:
                        break
                    depth += _BLOCKS[following]
                pieces.append(self._random.choice(("\n", "\n\n", "  # why\n")) + "  " * depth)
            elif name not in _BLOCKS:
                pieces.append(self.draw(name))
        return "".join(pieces)

    def terminals(self) -> list[str]:
        """Names of the terminals of one text."""
        room = self._random.randrange(self._room)
        todo, done = [(False, self._start)], list[str]()
        while todo:
            is_terminal, name = todo.pop()
            if is_terminal:
                done.append(name)
                continue
            choices = self._rules[name]
            if room <= 0:
                least = min(map(self._height, choices))
                choices = [choice for choice in choices if self._height(choice) == least]
            room -= 1
            todo += reversed(self._random.choice(choices))
        return done

    def draw(self, name: str) -> str:
        """A text of one terminal."""
        pattern = self._terminals[name]
        flags = 0
        for flag in pattern.flags:
            flags |= getattr(re, flag.upper())
        source = pattern.to_regexp() if isinstance(pattern, lark.lexer.PatternStr) else pattern.value
        whole = re.compile(source, flags)
        for _ in range(_TRIES):
            text = self._expand(sre_parser.parse(source, flags), flags)
            if whole.fullmatch(text):
                return text
        raise ValueError(f"no text of {name} found in {_TRIES} draws")

    def _height(self, choice: list[tuple[bool, str]]) -> int:
        return max((0 if is_term else self._heights.get(name, 10**6) for is_term, name in choice), default=0)

    def _least_heights(self) -> dict[str, int]:
        """The least height of a derivation of each rule, to a fixed point."""
        self._heights: dict[str, int] = {}
        changed = True
        while changed:
            changed = False
            for name, choices in self._rules.items():
                height = 1 + min(map(self._height, choices))
                if height < self._heights.get(name, 10**6):
                    self._heights[name], changed = height, True
        return self._heights

    def _expand(self, parsed: Any, flags: int) -> str:
        return "".join(self._item(op, argument, flags) for op, argument in parsed)

    def _item(self, op: Any, argument: Any, flags: int) -> str:
        if op is sre.LITERAL:
            letter = chr(argument)
            return self._random.choice((letter.lower(), letter.upper())) if flags & re.I else letter
        if op is sre.NOT_LITERAL:
            return self._random.choice([c for c in _LETTERS if ord(c) != argument])
        if op is sre.ANY:
            return self._random.choice([c for c in _LETTERS if c != "\n" or flags & re.S])
        if op is sre.IN:
            return self._of_class(argument)
        if op is sre.BRANCH:
            return self._expand(self._random.choice(argument[1]), flags)
        if op is sre.SUBPATTERN:
            return self._expand(argument[3], (flags | argument[1]) & ~argument[2])
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            least, most, body = argument
            count = self._random.choice((least, self._random.randint(least, min(most, least + 4))))
            return "".join(self._expand(body, flags) for _ in range(count))
        assert op in (sre.ASSERT, sre.ASSERT_NOT, sre.AT), op
        return ""

    def _of_class(self, members: Any) -> str:
        if members[0][0] is sre.NEGATE:
            others = [c for c in _LETTERS if not any(_holds(*member, c) for member in members[1:])]
            return self._random.choice(others)
        op, argument = self._random.choice(members)
        if op is sre.RANGE:
            return chr(self._random.randint(*argument))
        if op is sre.LITERAL:
            return chr(argument)
        return self._random.choice([c for c in _LETTERS if _holds(op, argument, c)])


def _holds(op: Any, argument: Any, character: str) -> bool:
    if op is sre.LITERAL:
        return ord(character) == argument
    if op is sre.RANGE:
        return argument[0] <= ord(character) <= argument[1]
    letter = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}[str(argument).rsplit("_", 1)[1]]
    return bool(re.match(letter, character)) != ("_NOT_" in str(argument))
