"""A terminal's pattern as a program of small steps (Thompson 1968; ordered as in Pike's matcher).

The order of the branches is kept, because Python's `re` takes the first that matches, not the longest.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from xpress_struct.constraints.json_schema import charset as cs
from xpress_struct.constraints.json_schema import regular as rx
from xpress_struct.constraints.lark.characters import characters
from xpress_struct.errors import UnsupportedFeatureError

if sys.version_info >= (3, 11):
    from re import _constants as sre
    from re import _parser as sre_parser
else:
    import sre_constants as sre
    import sre_parse as sre_parser

__all__ = ["Program", "Step", "compile_pattern"]

_MOST_STEPS = 6000


@dataclass(frozen=True)
class Step:
    """One step of a program.

    Attributes:
        kind: "char", "split", "look", "behind", "boundary", "begin", "end" or "match".
        targets: places to go on at, the preferred one first.
        charset: of "char".
        negative: of "look", "behind" and "boundary".
        inner: place where the program of a look-ahead begins.
        before: of "behind": alternatives, each the sets of the characters just before, the last one last.
        multiline: of "begin" and "end"; "end" that is not takes a line feed behind it when `strict` is off.
    """

    kind: str
    targets: tuple[int, ...] = ()
    charset: cs.Charset = ()
    negative: bool = False
    inner: int = -1
    before: tuple[tuple[cs.Charset, ...], ...] = ()
    multiline: bool = False
    strict: bool = False


@dataclass
class Program:
    """Steps, and what the pattern needs beside them.

    Attributes:
        steps: all of them; a look-ahead's own stand among them.
        start: the first.
        history: how many characters before a place decide there.
        plain: the whole texts as a regular language, when no assertion is in the pattern.
    """

    steps: list[Step] = field(default_factory=list)
    start: int = 0
    history: int = 0
    plain: rx.Regex | None = None

    @property
    def charsets(self) -> set[cs.Charset]:
        """Every set of characters that it tells apart."""
        found = {step.charset for step in self.steps if step.kind == "char"}
        for step in self.steps:
            found.update(one for option in step.before for one in option)
            if step.kind == "boundary":
                found.add(step.charset)
            if step.kind in ("begin", "end"):
                found.add(_NEWLINE)
        return found


_NEWLINE = cs.make([(10, 10)])


def compile_pattern(pattern: str, flags: int, name: str) -> Program:
    """The program of a regular expression, or of a literal.

    Args:
        pattern: as lark hands it to `re`.
        flags: flags of the whole grammar (`g_regex_flags`).
        name: the terminal's name, for errors.

    Raises:
        UnsupportedFeatureError: it uses a construct that is not regular, or is not supported here.
        regular.TooComplexError: it is too large.
    """
    tree = sre_parser.parse(pattern, flags)
    made = _Compiler(name)
    match = made.add(Step("match"))
    made.program.start = made.sequence(list(tree), tree.state.flags | flags, match)
    program = made.program
    if not made.asserts:
        program.plain = _language(list(tree), tree.state.flags | flags)
    return program


def _unsupported(feature: str, name: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"The terminal {name} uses this: {feature}. It cannot be enforced token by token; write the same "
        "texts without it.",
        feature=feature,
    )


class _Compiler:
    """Builds a program from its end to its start."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.program = Program()
        self.asserts = False
        self._inside_look = False

    def add(self, step: Step) -> int:
        if len(self.program.steps) >= _MOST_STEPS:
            raise rx.TooComplexError(f"the terminal {self.name} is larger than {_MOST_STEPS} steps")
        self.program.steps.append(step)
        return len(self.program.steps) - 1

    def sequence(self, items: Sequence[tuple[Any, Any]], flags: int, after: int) -> int:
        for op, argument in reversed(items):
            after = self.node(op, argument, flags, after)
        return after

    def node(self, op: Any, argument: Any, flags: int, after: int) -> int:
        found = characters(op, argument, flags)
        if found is not None:
            return self.add(Step("char", (after,), found))
        if op is sre.BRANCH:
            return self.add(Step("split", tuple(self.sequence(b, flags, after) for b in argument[1])))
        if op is sre.SUBPATTERN:
            _, added, removed, inner = argument
            return self.sequence(inner, (flags | added) & ~removed, after)
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            return self.repeat(argument, flags, after, lazy=op is sre.MIN_REPEAT)
        if op in (sre.ASSERT, sre.ASSERT_NOT):
            return self.look(argument, flags, after, negative=op is sre.ASSERT_NOT)
        if op is sre.AT:
            return self.anchor(argument, flags, after)
        raise _unsupported(_NAMES.get(str(op), str(op).lower()), self.name)

    def repeat(self, argument: Any, flags: int, after: int, *, lazy: bool) -> int:
        low, high, inner = argument

        def either(enter: int, leave: int) -> int:
            return self.add(Step("split", (leave, enter) if lazy else (enter, leave)))

        if high is sre.MAXREPEAT:
            loop = self.add(Step("split"))
            body = self.sequence(inner, flags, loop)
            self.program.steps[loop] = Step("split", (after, body) if lazy else (body, after))
            after = loop
        else:
            leave = after
            for _ in range(high - low):
                after = either(self.sequence(inner, flags, after), leave)
        for _ in range(low):
            after = self.sequence(inner, flags, after)
        return after

    def look(self, argument: Any, flags: int, after: int, *, negative: bool) -> int:
        direction, inner = argument
        self.asserts = True
        if self._inside_look:
            raise _unsupported("look-around inside look-around", self.name)
        if direction < 0:
            before = self.behind(list(inner), flags)
            self.program.history = max(self.program.history, *(len(option) for option in before))
            return self.add(Step("behind", (after,), negative=negative, before=before))
        self._inside_look = True
        start = self.sequence(inner, flags, self.add(Step("match")))
        self._inside_look = False
        return self.add(Step("look", (after,), negative=negative, inner=start))

    def behind(self, items: list[tuple[Any, Any]], flags: int) -> tuple[tuple[cs.Charset, ...], ...]:
        """The alternatives of a look-behind, each a run of sets."""
        options: list[tuple[cs.Charset, ...]] = [()]
        for op, argument in items:
            found = characters(op, argument, flags)
            if found is not None:
                more: list[tuple[cs.Charset, ...]] = [(found,)]
            elif op is sre.BRANCH:
                more = [option for branch in argument[1] for option in self.behind(list(branch), flags)]
            elif op is sre.SUBPATTERN:
                _, added, removed, inner = argument
                more = list(self.behind(list(inner), (flags | added) & ~removed))
            elif op is sre.MAX_REPEAT and argument[0] == argument[1] <= 8:
                more = list(self.behind(list(argument[2]) * argument[0], flags))
            else:
                raise _unsupported("this kind of look-behind", self.name)
            options = [left + right for left in options for right in more]
            if len(options) > 64:
                raise _unsupported("a look-behind of many alternatives", self.name)
        return tuple(options)

    def anchor(self, argument: Any, flags: int, after: int) -> int:
        self.asserts = True
        if argument in (sre.AT_BOUNDARY, sre.AT_NON_BOUNDARY):
            words = characters(sre.IN, [(sre.CATEGORY, sre.CATEGORY_WORD)], flags)
            self.program.history = max(self.program.history, 1)
            negative = argument is sre.AT_NON_BOUNDARY
            return self.add(Step("boundary", (after,), words or (), negative=negative))
        multiline = bool(flags & re.MULTILINE)
        if argument in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
            self.program.history = max(self.program.history, 1)
            multiline = multiline and argument is sre.AT_BEGINNING
            return self.add(Step("begin", (after,), multiline=multiline))
        strict = argument is sre.AT_END_STRING
        return self.add(Step("end", (after,), multiline=multiline and not strict, strict=strict))


_NAMES = {
    "GROUPREF": "back-reference",
    "GROUPREF_EXISTS": "conditional group",
    "ATOMIC_GROUP": "atomic group",
    "POSSESSIVE_REPEAT": "possessive repeat",
}


def _language(items: Sequence[tuple[Any, Any]], flags: int) -> rx.Regex:
    """The whole texts that a pattern without assertions can match, whatever the order."""
    parts = []
    for op, argument in items:
        found = characters(op, argument, flags)
        if found is not None:
            parts.append(rx.chars(found))
        elif op is sre.BRANCH:
            parts.append(rx.alt(*(_language(b, flags) for b in argument[1])))
        elif op is sre.SUBPATTERN:
            _, added, removed, inner = argument
            parts.append(_language(inner, (flags | added) & ~removed))
        else:
            low, high, inner = argument
            parts.append(rx.repeat(_language(inner, flags), low, None if high is sre.MAXREPEAT else high))
    return rx.cat(*parts)
