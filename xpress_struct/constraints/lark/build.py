"""`lark`: a Lark grammar -> Constraint."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import lark as lark_library
from llguidance import LLMatcher

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.lark.faults import not_lark
from xpress_struct.constraints.lark.gate import GatedMatcher, Judge
from xpress_struct.constraints.lark.indentation import read_indenter
from xpress_struct.constraints.lark.reading import check_options, load, read_text
from xpress_struct.constraints.lark.report import LarkReport
from xpress_struct.constraints.lark.shipped import post_lexer, shipped_grammars
from xpress_struct.constraints.lark.translation import translate
from xpress_struct.constraints.matcher import GrammarMatcher
from xpress_struct.constraints.report import Checked
from xpress_struct.errors import ArgumentError, GrammarError

__all__ = ["lark"]

# What the engine's own dialect has and lark has not: tokens of a model by name or id, and its directives.
_STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|#[^\n]*|/(?!/)(?:\\.|[^/\\\n])+/')
_ENGINE_ONLY = re.compile(r"<[^<>\s]+>|%(?:json|regex|lark|llguidance)\b")

_Bounds = tuple[int, int, int]  # max_blanks, indent, max_depth


def lark(
    grammar: str | Path | lark_library.Lark,
    *,
    start: str = "start",
    parser: Literal["earley", "lalr"] | None = None,
    lexer: Literal["auto", "basic", "contextual", "dynamic", "dynamic_complete"] = "auto",
    import_paths: Sequence[str | Path] = (),
    postlex: Any = None,
    g_regex_flags: int = 0,
    max_blanks: int = 32,
    indent: int = 4,
    max_depth: int = 10,
) -> Constraint:
    """A constraint: the text is parsed by `lark` with this grammar and these options.

    Args:
        grammar: the grammar's text (several lines, or one with a rule), the path of a file, the name of a
            grammar that comes with the package ("json"), or a `lark.Lark` object, whose own options then
            count in place of those below.
        start: the rule to begin with. Of a Lark object with several start rules, the one meant.
        parser, lexer, import_paths, postlex, g_regex_flags: as in `lark.Lark`, with the same defaults; but
            a grammar of the package is read with parser="lalr" and its own post-lexer.
        max_blanks: longest run of ignored blanks, in characters; lark itself has no bound.
        indent, max_depth: with an Indenter, the spaces of one level of indentation, and the deepest level.

    Returns:
        A constraint whose value is the text. Its `report` says what was rewritten, proved, gated and
        bounded. Where lark alone can tell whether a text may end, it is asked, and `checked_after` says so.

    Raises:
        GrammarError: the grammar is malformed, or is GBNF or EBNF; with line and column.
        UnsupportedFeatureError: it uses what cannot be enforced; with the feature's name.
        CompileLimitError: it is too large.
    """
    for name, value in (("max_blanks", max_blanks), ("indent", indent), ("max_depth", max_depth)):
        if value < 1:
            raise ArgumentError(f"{name} is {value}; it must be at least 1.")
    bounds = (max_blanks, indent, max_depth)
    if isinstance(grammar, lark_library.Lark):
        starts = grammar.options.start
        if start not in starts:
            if start != "start" or len(starts) > 1:
                raise ArgumentError(f"start={start!r} is none of the Lark object's: {', '.join(starts)}.")
            start = starts[0]
        return _constraint(grammar, start, bounds)
    paths = tuple(str(path) for path in import_paths)
    name = str(grammar)
    if name in shipped_grammars() and postlex is None:
        return _of_package(name, start, parser or "lalr", lexer, paths, g_regex_flags, bounds)
    return _of_text(grammar, start, parser or "earley", lexer, paths, postlex, g_regex_flags, bounds)


@lru_cache(maxsize=32)
def _of_package(
    name: str, start: str, parser: str, lexer: str, paths: tuple[str, ...], flags: int, bounds: _Bounds
) -> Constraint:
    return _of_text(name, start, parser, lexer, paths, post_lexer(name), flags, bounds)


def _of_text(
    grammar: str | Path,
    start: str,
    parser: str,
    lexer: str,
    paths: tuple[str, ...],
    postlex: Any,
    flags: int,
    bounds: _Bounds,
) -> Constraint:
    text, path = read_text(grammar)
    not_lark(text)
    try:
        loaded = load(
            text,
            path,
            start=start,
            parser=parser,
            lexer=lexer,
            import_paths=paths,
            postlex=postlex,
            g_regex_flags=flags,
        )
    except GrammarError:
        if not _ENGINE_ONLY.search(_STRING_OR_COMMENT.sub("", text)):
            raise
        return Constraint("lark", LLMatcher.grammar_from_lark(text), str)
    return _constraint(loaded, start, bounds)


def _constraint(loaded: lark_library.Lark, start: str, bounds: _Bounds) -> Constraint:
    max_blanks, indent, max_depth = bounds
    check_options(loaded)
    made = translate(loaded, start, max_blanks, read_indenter(loaded.options.postlex, indent, max_depth))
    judge = Judge(loaded, start)
    return Constraint(
        "lark",
        LLMatcher.grammar_from_lark(made.grammar),
        judge.parse,
        checked_after=_checked(made.report),
        matcher_class=partial(GatedMatcher, judge) if made.report.gated else GrammarMatcher,
        report=made.report,
    )


def _checked(report: LarkReport) -> tuple[Checked, ...]:
    return tuple(Checked("lark", "", reason) for reason in report.gated)
