"""What `xs.lark` takes, and what it says of what it does not take."""

from __future__ import annotations

from pathlib import Path

import lark
import pytest
from lark.indenter import Indenter

import xpress_struct as xs
from xpress_struct.errors import ArgumentError, GrammarError, UnsupportedFeatureError

SUM = 'start: N ("+" N)*\nN: /[0-9]+/\n%ignore " "\n'


def test_a_lark_object_keeps_its_options() -> None:
    """The start rule, parser and lexer of a Lark object count, and not the defaults."""
    loaded = lark.Lark('x: "a" y\ny: "b"', start=["x", "y"], parser="lalr", lexer="basic")
    constraint = xs.lark(loaded, start="x")
    assert (constraint.report.parser, constraint.report.lexer) == ("lalr", "basic")
    assert constraint.accepts("ab")
    assert xs.lark(loaded, start="y").accepts("b")
    with pytest.raises(ArgumentError, match="start"):
        xs.lark(loaded)


def test_relative_imports_lie_beside_the_file(tmp_path: Path) -> None:
    """A file imports from beside it, a text from `import_paths`."""
    (tmp_path / "parts.lark").write_text('WORD: "a".."c"\n', encoding="utf-8")
    (tmp_path / "whole.lark").write_text("%import .parts.WORD\nstart: WORD+\n", encoding="utf-8")
    assert xs.lark(tmp_path / "whole.lark").accepts("abc")
    assert xs.lark("%import parts.WORD\nstart: WORD+\n", import_paths=[tmp_path]).accepts("abc")


@pytest.mark.parametrize(
    ("options", "feature"),
    [
        ({"lexer_callbacks": {"N": lambda token: token}, "parser": "lalr"}, "lexer_callbacks"),
        ({"use_bytes": True, "parser": "lalr"}, "use_bytes"),
        ({"parser": None, "lexer": "basic"}, "parser"),
    ],
)
def test_options_that_change_what_is_parsed_are_refused(options: dict, feature: str) -> None:
    """Options of a Lark object that are not understood are refused by name."""
    with pytest.raises(UnsupportedFeatureError) as caught:
        xs.lark(lark.Lark(SUM, **options))
    assert caught.value.feature == feature


@pytest.mark.parametrize(
    ("grammar", "line", "column", "words"),
    [
        ('start: "a" b\n', 1, 12, ("b", "Define it")),
        ('start: x\nx: "a"\nx: "b"\n', 3, 1, ("x", "%extend")),
        ("start: A\nA: B\n", 2, 4, ("B", "%import")),
        ("start: A\nA: /a*/\n", 2, 1, ("A", "at least one character")),
        ('other: "a"\n', None, None, ("start", "start=")),
        ('start: "a" )\n', 1, 12, (")", "^")),
        ('start: x "a" | y "a"\nx: "b"\ny: "b"\n', None, None, ("earley",)),
    ],
)
def test_b33_faults_have_place_and_hint(
    grammar: str, line: int | None, column: int | None, words: tuple[str, ...]
) -> None:
    """A faulty grammar is told with line, column and what to do."""
    with pytest.raises(GrammarError) as caught:
        xs.lark(grammar, parser="lalr")
    assert (caught.value.line, caught.value.column) == (line, column)
    assert all(word in str(caught.value) for word in words)


def test_a_grammar_of_the_package_is_lalr() -> None:
    """It is read as LALR unless told otherwise, and made once; others are Earley's, as in lark."""
    made = xs.lark("csv")
    assert made.report.parser == "lalr"
    assert xs.lark("csv", parser="lalr") is made
    assert xs.lark("csv", parser="earley").report.parser == "earley"
    assert xs.lark(SUM).report.parser == "earley"


class _Lines(Indenter):
    NL_type, INDENT_type, DEDENT_type = "_NL", "_IN", "_OUT"
    OPEN_PAREN_types, CLOSE_PAREN_types = [], []
    tab_len = 8


def test_line_breaks_that_lark_never_takes_are_a_fault() -> None:
    """An Indenter whose line breaks are always read as another terminal is told."""
    grammar = 'start: "a" _NL _IN X _OUT | X\n_NL: /\\n */\nX.2: /[\\nx]+/\n%declare _IN _OUT\n'
    with pytest.raises(GrammarError, match="_NL"):
        xs.lark(grammar, parser="lalr", lexer="basic", postlex=_Lines())


def test_left_recursion_is_fine() -> None:
    """Left recursion is no fault, under either parser."""
    for parser in ("earley", "lalr"):
        assert xs.lark('start: start "+" "1" | "1"', parser=parser).accepts("1+1+1")


def test_a_terminal_that_is_only_declared_is_refused() -> None:
    """%declare without an Indenter says nothing about a terminal's text."""
    with pytest.raises(UnsupportedFeatureError, match="postlex"):
        xs.lark("start: A\n%declare A\n", parser="lalr")


def test_a_language_without_texts_is_a_fault() -> None:
    """A literal that lark always reads as another terminal leaves nothing to say."""
    with pytest.raises(GrammarError, match="No text"):
        xs.lark('start: KW\nKW.-1: "ab"\nN: /[a-z]+/\n%ignore N', parser="lalr")


def test_blanks_stand_at_both_ends_in_bounded_runs() -> None:
    """Ignored blanks stand before, between and after, at most `max_blanks` together."""
    constraint = xs.lark(SUM, max_blanks=3)
    assert constraint.accepts("   1 +   2  ")
    assert not constraint.accepts("1    + 2")
    assert constraint.report.bounded
