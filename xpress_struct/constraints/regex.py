"""Regular expressions and choices as constraints.

A pattern means what Python's `re.fullmatch` says. It is read with Python's own parser and written
again in the syntax of the engine, construct by construct, so that nothing is dropped or read
differently: `\\w` and `\\s` become Python's sets, anchors at the ends go (the whole text must match
anyway), and what a finite automaton cannot express is refused by name.
"""

from __future__ import annotations

import enum
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache as memoise
from functools import partial
from typing import Any

from llguidance import LLMatcher

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.errors import (
    ArgumentError,
    GrammarError,
    OutputValidationError,
    UnsupportedFeatureError,
)

if sys.version_info >= (3, 11):
    from re import _constants as sre
    from re import _parser as sre_parser
else:
    import sre_constants as sre
    import sre_parse as sre_parser

__all__ = ["choice", "engine_regex", "regex"]

_REFUSED = {
    sre.ASSERT: "look-ahead or look-behind",
    sre.ASSERT_NOT: "negative look-ahead or look-behind",
    sre.GROUPREF: "back-reference",
    sre.GROUPREF_EXISTS: "conditional group",
}
for _name, _what in (("ATOMIC_GROUP", "atomic group"), ("POSSESSIVE_REPEAT", "possessive repeat")):
    if hasattr(sre, _name):
        _REFUSED[getattr(sre, _name)] = _what

_STARTS = {sre.AT_BEGINNING, sre.AT_BEGINNING_STRING}
_ENDS = {sre.AT_END, sre.AT_END_STRING}


def regex(pattern: str | re.Pattern[str]) -> Constraint:
    """A constraint: the whole text matches a regular expression (`re.fullmatch`).

    Args:
        pattern: Python syntax, or a compiled pattern with its flags (I, S, X, A).

    Returns:
        A constraint whose value is the text.

    Raises:
        GrammarError: the pattern is malformed; `line` and `column` say where.
        UnsupportedFeatureError: it uses look-around, back-references, `\\b`, multi-line anchors,
            conditional or atomic groups.
        CompileLimitError: it is too large.
    """
    if not isinstance(pattern, (str, re.Pattern)):
        raise ArgumentError(f"regex takes a text pattern, not {type(pattern).__name__}.")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise GrammarError(
            f"Not a regular expression: {error.msg} at line {error.lineno}, column {error.colno} "
            f"of {pattern!r}.",
            line=error.lineno,
            column=error.colno,
        ) from None
    if not isinstance(compiled.pattern, str):
        raise ArgumentError("regex takes a text pattern, not bytes.")
    grammar = LLMatcher.grammar_from_regex(engine_regex(compiled))
    return Constraint("regex", grammar, partial(_parse_regex, compiled))


def choice(options: Iterable[Any] | type[enum.Enum]) -> Constraint:
    """A constraint: the text is one of the given options.

    Args:
        options: strings, numbers or booleans (written with `str`), or an Enum class (its values).

    Returns:
        A constraint whose value is the chosen option itself, or the Enum member.

    Raises:
        ArgumentError: no options, or two that are written alike.
    """
    if isinstance(options, str):
        raise ArgumentError(f"choice takes a list of options, not one text: [{options!r}]?")
    by_text: dict[str, Any] = {}
    for option in options:
        text = str(option.value if isinstance(option, enum.Enum) else option)
        if text in by_text:
            raise ArgumentError(f"choice has two options written {text!r}; each must be distinct.")
        by_text[text] = option
    if not by_text:
        raise ArgumentError("choice needs at least one option.")
    grammar = LLMatcher.grammar_from_regex("|".join(f"(?:{_escape(text)})" for text in by_text))
    return Constraint("choice", grammar, partial(_parse_choice, by_text))


def _parse_regex(pattern: re.Pattern[str], text: str) -> str:
    if pattern.fullmatch(text) is None:
        raise OutputValidationError(f"{text!r} does not match {pattern.pattern!r}.", text=text)
    return text


def _parse_choice(options: dict[str, Any], text: str) -> Any:
    if text not in options:
        raise OutputValidationError(f"{text!r} is none of the options.", text=text)
    return options[text]


def engine_regex(pattern: re.Pattern[str]) -> str:
    """The pattern in the engine's syntax (Rust's `regex`), matching the same whole texts.

    Raises:
        UnsupportedFeatureError: the pattern is not regular, or needs an anchor in the middle.
    """
    tree = sre_parser.parse(pattern.pattern, pattern.flags)
    return _sequence(list(tree), pattern.flags, True, True)


def _sequence(items: Sequence[Any], flags: int, first: bool, last: bool) -> str:
    """Writes a run of parse nodes; `first` and `last` say whether it touches the text's ends."""
    parts = []
    for index, (op, argument) in enumerate(items):
        at_first = first and all(_empty(item) for item in items[:index])
        at_last = last and all(_empty(item) for item in items[index + 1 :])
        parts.append(_node(op, argument, flags, at_first, at_last))
    return "".join(parts)


def _empty(item: tuple[Any, Any]) -> bool:
    return item[0] is sre.AT


def _node(op: Any, argument: Any, flags: int, first: bool, last: bool) -> str:
    if op in _REFUSED:
        raise _unsupported(_REFUSED[op])
    if op is sre.AT:
        multiline = flags & re.MULTILINE and argument in (sre.AT_BEGINNING, sre.AT_END)
        if (argument in _STARTS and first) or (argument in _ENDS and last):
            return ""
        raise _unsupported("multi-line anchor" if multiline else f"{_AT_NAMES[argument]} inside")
    if op is sre.BRANCH:
        return _group("|".join(_sequence(b, flags, first, last) for b in argument[1]))
    if op is sre.SUBPATTERN:
        _, added, removed, inner = argument
        return _group(_sequence(inner, (flags | added) & ~removed, first, last))
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        # Lazy or greedy, the set of whole texts is the same.
        low, high, inner = argument
        once = high == 1
        body = _group(_sequence(inner, flags, first and once, last and once))
        return f"{body}{{{low},{'' if high is sre.MAXREPEAT else high}}}"
    if op is sre.ANY:
        return "(?s:.)" if flags & re.DOTALL else "[^\\n]"
    return _folded(_characters(op, argument, flags), flags)


def _characters(op: Any, argument: Any, flags: int) -> str:
    if op is sre.LITERAL:
        return _escape(chr(argument))
    if op is sre.NOT_LITERAL:
        return f"[^{_in_class(argument)}]"
    if op is sre.IN:
        negated = argument[0][0] is sre.NEGATE
        members = "".join(_member(o, a, flags) for o, a in argument[negated:])
        return f"[{'^' if negated else ''}{members}]"
    raise _unsupported(str(op).lower())


def _member(op: Any, argument: Any, flags: int) -> str:
    if op is sre.LITERAL:
        return _in_class(argument)
    if op is sre.RANGE:
        return f"{_in_class(argument[0])}-{_in_class(argument[1])}"
    if op is sre.CATEGORY:
        return _category(str(argument), bool(flags & re.ASCII))
    raise _unsupported(str(op).lower())


@memoise
def _category(name: str, ascii_only: bool) -> str:
    """A class for one of Python's categories, as ranges read off Python itself."""
    letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[name.rsplit("_", 1)[1]]
    probe = re.compile(f"\\{letter}", re.ASCII if ascii_only else 0)
    top = 128 if ascii_only else 0x110000
    ranges: list[list[int]] = []
    for code in range(top):
        if probe.match(chr(code)):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    members = "".join(f"{_in_class(a)}-{_in_class(b)}" for a, b in ranges)
    return f"[^{members}]" if "_NOT_" in name else members


def _folded(body: str, flags: int) -> str:
    if not flags & re.IGNORECASE:
        return body
    if flags & re.ASCII:
        raise _unsupported("the flags A and I together")  # the engine folds by Unicode only
    return f"(?i:{body})"


def _group(body: str) -> str:
    return f"(?:{body})"


def _escape(text: str) -> str:
    return "".join(c if c.isalnum() else _in_class(ord(c)) for c in text)


def _in_class(code: int) -> str:
    character = chr(code)
    return character if character.isascii() and character.isalnum() else f"\\x{{{code:X}}}"


_AT_NAMES: dict[Any, str] = {
    sre.AT_BEGINNING: "`^`",
    sre.AT_BEGINNING_STRING: "`\\A`",
    sre.AT_END: "`$`",
    sre.AT_END_STRING: "`\\Z`",
    sre.AT_BOUNDARY: "`\\b`",
    sre.AT_NON_BOUNDARY: "`\\B`",
}


def _unsupported(feature: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"The regular expression uses this: {feature}. It cannot be enforced token by token; write "
        "the same texts without it.",
        feature=feature,
    )
