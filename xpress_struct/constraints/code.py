"""Code and configuration files: a shipped grammar, and the language's own parser at the end."""

from __future__ import annotations

import ast
import configparser
import importlib
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from llguidance import LLMatcher

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.lark import lark
from xpress_struct.constraints.matcher import GrammarMatcher
from xpress_struct.constraints.report import Checked
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import ArgumentError, OutputValidationError

__all__ = ["code"]

# A function at the margin, with its decorators.
_FUNCTION = re.compile(r"^(?:@[^\n]*\n(?:[ \t)\]}#][^\n]*\n|\n)*)*(?:async[ \t]+)?def\b", re.MULTILINE)


def code(language: str = "python", *, prefix: str = "") -> Constraint:
    """A constraint: the text is code that the language's own parser takes.

    Args:
        language: "python" (`ast.parse`), "toml" (`tomllib`) or "ini" (`configparser`).
        prefix: Python only: the code before the text, up to somewhere inside of a function at the margin,
            such as "def area(r):\\n". The text is then the rest of that function, and ends with it.

    Returns:
        A constraint whose value is the code, with its prefix. TOML and INI forbid to name a thing twice,
        which no context-free grammar can say: there `checked_after` names the parser.

    Raises:
        ArgumentError: the language is not known, or the prefix is no beginning of a function.
    """
    if language not in _LANGUAGES:
        raise ArgumentError(f"language={language!r}: it must be one of {', '.join(map(repr, _LANGUAGES))}.")
    parses, checked = _LANGUAGES[language]
    if not prefix:
        constraint = lark(language)
        return replace(constraint, parser=partial(_parsed, parses, ""), checked_after=checked)
    if language != "python":
        raise ArgumentError(f"A prefix is the beginning of a function; {language!r} has none.")
    heads = [found.start() for found in _FUNCTION.finditer(prefix)]
    if not heads:
        raise ArgumentError(f"The prefix has no `def` at the margin: {prefix[:60]!r}.")
    constraint = lark(language, start="function")
    return replace(
        constraint,
        parser=partial(_parsed, parses, prefix),
        matcher_class=partial(_behind, constraint, prefix[heads[-1] :]),
    )


def _behind(constraint: Constraint, prefix: str, engine: LLMatcher, vocabulary: Vocabulary) -> GrammarMatcher:
    """A matcher whose text begins behind a prefix."""
    matcher = constraint.matcher_class(engine, vocabulary)
    fits = matcher.consume_text(prefix)
    if fits < len(prefix):
        raise ArgumentError(
            f"The prefix is no beginning of a function: {prefix[:fits][-40:]!r} fits, then "
            f"{prefix[fits : fits + 20]!r} does not."
        )
    return matcher


def _parsed(parses: Callable[[str], object], prefix: str, text: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of doubtful code, which parses
            parses(prefix + text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, configparser.Error) as error:
        raise OutputValidationError(
            f"The language's own parser refuses the text: {error}", text=text
        ) from error
    return prefix + text


def _parse_toml(text: str) -> object:
    try:
        return importlib.import_module("tomllib").loads(text)
    except ModuleNotFoundError:  # before Python 3.11
        return None


def _parse_ini(text: str) -> None:
    configparser.ConfigParser().read_string(text)


_TWICE = "that nothing is named twice is not context-free"
_LANGUAGES: dict[str, tuple[Callable[[str], object], tuple[Checked, ...]]] = {
    "python": (ast.parse, ()),
    "toml": (_parse_toml, (Checked("tomllib", "", _TWICE),)),
    "ini": (_parse_ini, (Checked("configparser", "", _TWICE),)),
}
