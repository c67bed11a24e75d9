"""regex, choice and lark as users meet them."""

from __future__ import annotations

import enum
import re
from pathlib import Path

import pytest

import xpress_struct as xs
from tests.cases.scripts import PROMPT, noisy, writer
from tests.stubs import label, stub_model
from xpress_struct.errors import (
    ArgumentError,
    GrammarError,
    OutputValidationError,
    UnsupportedFeatureError,
)

PATTERNS: list[str | re.Pattern[str]] = [
    "abc",
    "a|bc|",
    "a.c",
    re.compile("a.c", re.S),
    "[a-c]+[^a-c]?",
    r"\d{2,3}-\d*",
    r"\w+\s\w+",
    r"[\w.]+@[\w.]+",
    r"\D\S\W",
    "(?:ab){2}(c|d)?",
    "a{0}b",
    "a*?b+?",
    "^abc$",
    r"\Aabc\Z",
    "^(?:a|b)$",
    "(?i)abc",
    re.compile("k", re.I),
    re.compile(r"\w\d", re.A),
    "(?x) a b # comment\n c",
    "(?i:a)b",
    "(?P<n>a)b",
    r"[\]\-^\\]+",
    r"\.\*\+\?\{\}\(\)\[\]\|\\\/\"'&~#-",
    "é漢\U0001f600",
    "[à-ÿ]",
    r"\x41\u00e9\n\t",
    "[^\n]",
    "",
    r"[\d\s]x",
    r"[^\W\d_]",
    "a{2,}b{,2}",
]
TEXTS = [
    "", "a", "b", "c", "ab", "abc", "ABC", "aBc", "bc", "a\nc", "axc", "a c", "aab", "abab", "ababc",
    "ababd", "12-", "123-45", "1-", "x y", "x\u00a0y", "é y", "me@x.org", "a!?", "-a!", "K", "k",
    "\u212a", "a1", "é1", "a\u0661", "]-^\\", ".*+?{}()[]|\\/\"'&~#-", "é漢\U0001f600", "é", "à", "\u00d7",
    "Aé\n\t", "\n", "\r", "7x", "\tx", "_", "aabb", "abbb", "abc\n", "cd", "ccz", "İ", "ß", "\u017f",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS, ids=label)
def test_a_regex_means_fullmatch(pattern: str | re.Pattern[str]) -> None:
    """The texts that the mask allows are those that re.fullmatch takes."""
    constraint, judge = xs.regex(pattern), re.compile(pattern)
    for text in TEXTS:
        assert constraint.accepts(text) == (judge.fullmatch(text) is not None), text


@pytest.mark.parametrize("pattern", PATTERNS, ids=label)
def test_a_generated_text_matches(pattern: str | re.Pattern[str]) -> None:
    """What is sampled under a regex matches it."""
    model, judge = stub_model(noisy(2)), re.compile(pattern)
    for seed in range(3):
        result = model.generate(PROMPT, xs.regex(pattern), temperature=1.0, seed=seed, max_new_tokens=40)
        if result.finish_reason == "stop":
            assert judge.fullmatch(result.value)


@pytest.mark.parametrize(
    ("pattern", "feature"),
    [
        ("(?=a)b", "look-ahead"),
        ("a(?!b).", "negative look-ahead"),
        ("(?<=a)b", "look-behind"),
        ("(?<!a)b", "negative look-ahead or look-behind"),
        (r"(a)\1", "back-reference"),
        ("(?P<x>a)(?P=x)", "back-reference"),
        ("(a)?(?(1)b|c)", "conditional group"),
        (r"a\bb", r"\\b"),
        (r"a\Bb", r"\\B"),
        ("a^b", r"\^"),
        ("a$b", r"\$"),
        ("(?m)a$\nb", "multi-line anchor"),
    ],
)
def test_what_is_not_regular_is_refused_by_name(pattern: str, feature: str) -> None:
    """A construct that cannot be enforced is refused with its name, not dropped."""
    with pytest.raises(UnsupportedFeatureError) as caught:
        xs.regex(pattern)
    assert re.search(feature, caught.value.feature)
    assert caught.value.feature in str(caught.value)
    assert isinstance(caught.value, NotImplementedError)


@pytest.mark.parametrize(
    ("pattern", "line", "column"),
    [("a(b", 1, 2), ("[a", 1, 1), ("a**", 1, 3), ("ab\nc(", 2, 2), ("(?P<1>a)", 1, 5), (r"\q", 1, 1)],
)
def test_a_malformed_regex_has_a_place(pattern: str, line: int, column: int) -> None:
    """A pattern that does not parse is a GrammarError with line and column."""
    with pytest.raises(GrammarError) as caught:
        xs.regex(pattern)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert f"line {line}, column {column}" in str(caught.value)


def test_bytes_are_no_text_pattern() -> None:
    """A bytes pattern is refused."""
    with pytest.raises(ArgumentError, match="bytes"):
        xs.regex(re.compile(b"a"))


@pytest.mark.parametrize("source", [7, None, ["a"]], ids=label)
def test_what_is_no_pattern_is_refused(source: object) -> None:
    """An object that is no pattern is an error of ours."""
    with pytest.raises(xs.XPressError):
        xs.regex(source)


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


class Code(enum.IntEnum):
    OK = 200
    GONE = 410


@pytest.mark.parametrize(
    ("options", "text", "value"),
    [
        (["yes", "no"], "no", "no"),
        (("a", "ab", "abc"), "ab", "ab"),
        ([1, 2, 10], "10", 10),
        ([1.5, True, None], "True", True),
        ([1.5, True, None], "None", None),
        (Size, "l", Size.LARGE),
        (Code, "410", Code.GONE),
        ([Size.SMALL, "x"], "s", Size.SMALL),
        ({"k": 1, "m": 2}, "m", "m"),
        (["a.c", "(x", "é|漢", "line\nbreak", " blank "], "é|漢", "é|漢"),
        (["line\nbreak", "tab\t"], "line\nbreak", "line\nbreak"),
        (["", "x"], "", ""),
        ((str(i) for i in range(50)), "49", "49"),
    ],
    ids=label,
)
def test_a_choice_gives_the_option_itself(options: object, text: str, value: object) -> None:
    """The value is the option that was given, or the Enum member."""
    result = writer(text).generate(PROMPT, xs.choice(options))
    assert result.text == text
    assert result.value == value
    assert type(result.value) is type(value)


def test_a_choice_takes_nothing_else() -> None:
    """Dots and bars in options are letters, not operators."""
    constraint = xs.choice(["a.c", "x|y", "[b]"])
    assert [constraint.accepts(t) for t in ("a.c", "x|y", "[b]")] == [True] * 3
    assert not any(constraint.accepts(t) for t in ("abc", "x", "y", "b", "", "a.cx|y"))
    with pytest.raises(OutputValidationError):
        constraint.parse("abc")


@pytest.mark.parametrize(
    "options", [[], (), {}, ["a", "a"], [1, "1"], [True, "True"], "abc", enum.Enum("E", {})], ids=label
)
def test_a_choice_that_is_none_is_refused(options: object) -> None:
    """No options, options written alike, and one text are refused."""
    with pytest.raises(ArgumentError, match="choice"):
        xs.choice(options)


SUM = 'start: NUMBER (("+" | "-") NUMBER)*\nNUMBER: /[0-9]{1,3}/\n'


@pytest.mark.parametrize("text", ["7", "1+2-3", "123-45"])
def test_a_lark_grammar_gives_its_text(text: str) -> None:
    """The value under a Lark grammar is the text."""
    result = writer(text).generate(PROMPT, xs.lark(SUM))
    assert result.value == result.text == text


def test_a_lark_grammar_is_read_from_a_file(tmp_path: Path) -> None:
    """A path, as Path or as text, is read."""
    path = tmp_path / "sum.lark"
    path.write_text(SUM, encoding="utf-8")
    for source in (path, str(path)):
        assert writer("1+2").generate(PROMPT, xs.lark(source)).value == "1+2"


@pytest.mark.parametrize("name", ["no_such_grammar", "missing.lark", Path("missing.lark")])
def test_a_grammar_that_is_not_there_is_a_grammar_error(name: str | Path) -> None:
    """Neither grammar nor file: a GrammarError with the name."""
    with pytest.raises(GrammarError, match=str(name)):
        xs.lark(name)


@pytest.mark.parametrize(
    ("grammar", "line"),
    [
        ('root ::= "a"', 1),
        ('root ::= item+\nitem ::= [a-z] "\\n"', 1),
        ('# comment\nroot ::= "a"', 2),
        ('<start> ::= "a" | "b"', 1),
    ],
)
def test_b30_gbnf_is_recognised(grammar: str, line: int) -> None:
    """A grammar in GBNF or EBNF is told apart with its line, rather than guessed at."""
    with pytest.raises(GrammarError, match=r"GBNF|EBNF") as caught:
        xs.lark(grammar)
    assert caught.value.line == line


@pytest.mark.parametrize("grammar", ['start: "::=" "a"', "start: /x::=y/", '// a ::= b\nstart: "a"'])
def test_b30_lark_with_that_sign_in_a_string_is_lark(grammar: str) -> None:
    """'::=' inside a string, a regex or a comment of a Lark grammar is no GBNF."""
    assert xs.lark(grammar).kind == "lark"


@pytest.mark.parametrize(
    ("grammar", "line", "column"),
    [
        pytest.param('start: "a" b', 1, 12),
        ("start: b\nb: c\n", 2, 4),
        pytest.param('start: b\nb: "x" | c\n', 2, 10),
        ('start: "a" )', 1, 12),
        ('start: "a\n', 1, None),
        ('start: "a"\nstart: "b"', 2, None),
    ],
)
def test_a_malformed_lark_grammar_has_a_place(grammar: str, line: int, column: int | None) -> None:
    """A grammar that does not compile is a GrammarError with line and column."""
    with pytest.raises(GrammarError) as caught:
        xs.lark(grammar)
    assert caught.value.line == line
    assert column is None or caught.value.column == column


@pytest.mark.parametrize("grammar", ['a: "b"\n', "", "start: /(?=a)b/\n"])
def test_a_grammar_without_meaning_is_an_error_of_ours(grammar: str) -> None:
    """No start rule, nothing at all, or look-around: an error of the family."""
    with pytest.raises(xs.XPressError):
        xs.lark(grammar).matcher(stub_model(noisy(1)).vocabulary)


def test_constraints_are_values() -> None:
    """A constraint is immutable, and equal texts give equal grammars."""
    constraint = xs.regex("a+")
    with pytest.raises(AttributeError):
        constraint.grammar = "x"
    assert constraint.grammar == xs.regex("a+").grammar
    assert [c.kind for c in (constraint, xs.choice(["a"]), xs.lark(SUM), xs.json_schema({}))] == [
        "regex",
        "choice",
        "lark",
        "json_schema",
    ]
