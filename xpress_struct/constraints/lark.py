"""Lark grammars as constraints: for now those that llguidance takes unchanged."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import lark as lark_library
from llguidance import LLMatcher

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.report import Checked
from xpress_struct.errors import (
    CompileLimitError,
    GrammarError,
    OutputValidationError,
)

__all__ = ["lark"]

_GBNF = re.compile(r"^[ \t]*<?[\w-]+>?[ \t]*::=", re.MULTILINE)
_UNKNOWN = re.compile(r'unknown name: "([^"]+)"')
_PLACE = re.compile(r"(\d+)\((\d+)\)")


def lark(grammar: str | Path) -> Constraint:
    """A constraint: the text is in the language of a Lark grammar.

    Args:
        grammar: the grammar's text (several lines, or one with a rule), the path of a file, or the
            name of a grammar that comes with the package ("json").

    Returns:
        A constraint whose value is the text. Where lark itself can load the grammar, the finished
        text is parsed by lark too: the engine resolves clashes of terminals by longest match, which
        is not always lark's own rule, so `checked_after` says "lark".

    Raises:
        GrammarError: the grammar is malformed, or is GBNF/EBNF; with line and column.
        CompileLimitError: it is too large.
    """
    text = _read(grammar)
    gbnf = _GBNF.search(text)
    if gbnf:
        line = text[: gbnf.end()].count("\n") + 1
        raise GrammarError(
            f"Line {line} has '::=', so this looks like GBNF or EBNF, not Lark. Lark writes "
            '`start: "a" | rule`.',
            line=line,
        )
    try:
        judge = lark_library.Lark(text, parser="earley")
    except Exception:  # llguidance knows constructs that lark does not; then it alone decides
        judge = None
    checked = (
        () if judge is None else (Checked("lark", "", "terminals that clash are resolved by longest match"),)
    )
    try:
        return Constraint(
            "lark",
            LLMatcher.grammar_from_lark(text),
            partial(_parse, judge),
            checked_after=checked,
        )
    except CompileLimitError:
        raise
    except GrammarError as error:
        place = _PLACE.search(str(error))
        line, column = (int(place[1]), int(place[2])) if place else (0, 0)
        unknown = _UNKNOWN.search(str(error))
        if unknown and place:
            # The engine points at the rule; the name stands somewhere in it.
            row = text.splitlines()[line - 1]
            found = re.search(rf"(?<!\w){re.escape(unknown[1])}(?!\w)", row[column - 1 :])
            column += found.start() if found else 0
        raise GrammarError(
            f"The Lark grammar does not compile (line {line}, column {column}): {error}"
            if place
            else f"The Lark grammar does not compile: {error}",
            line=line or None,
            column=column or None,
        ) from None


def _read(grammar: str | Path) -> str:
    if isinstance(grammar, str) and ("\n" in grammar or ":" in grammar):
        return grammar
    shipped = _shipped()
    path = shipped.get(str(grammar), Path(grammar))
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise GrammarError(
            f"{str(grammar)!r} is neither the text of a Lark grammar (no rule in it), nor a file that "
            f"can be read ({error.strerror or error}), nor one of the grammars that come with the "
            f"package: {', '.join(sorted(shipped))}."
        ) from None


def _shipped() -> dict[str, Path]:
    """Grammars of the package by name: inside it when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    folder = package / "grammars"
    if not folder.is_dir():
        folder = package.parent / "grammars"
    return {path.stem: path for path in folder.glob("*.lark")}


def _parse(judge: Any, text: str) -> str:
    if judge is not None:
        try:
            judge.parse(text)
        except lark_library.exceptions.LarkError as error:
            raise OutputValidationError(f"lark refuses the text: {error}", text=text) from error
    return text
