"""The pattern algebra against Python's `re`."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xpress_struct.constraints.json_schema import regular as rx
from xpress_struct.constraints.json_schema.ecma_nodes import PatternError
from xpress_struct.constraints.json_schema.regex_text import language, written

ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "\\d", "\\w", "\\s", "\\.", "(?:ab)", "-"])


def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: f"(?:{a}|{b})", inner, inner),
        st.builds(lambda a, q: f"(?:{a}){q}", inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "*?"])),
    )


BODIES = st.recursive(ATOMS, joined, max_leaves=6)
PATTERNS = st.builds(
    lambda start, ahead, body, end: start + ahead + body + end,
    st.sampled_from(["", "^"]),
    st.sampled_from(["", "(?!a)", "(?=.b)", "(?!.*b)"]),
    BODIES,
    st.sampled_from(["", "$"]),
)
TEXTS = st.text(alphabet="ab1 .-_", max_size=6)


def to_python(text: str) -> str:
    """The engine's syntax as Python's."""
    return re.sub(r"\\x\{([0-9a-f]+)\}", lambda m: f"\\U{int(m[1], 16):08x}", text)


@settings(max_examples=300, deadline=None)
@given(PATTERNS, TEXTS)
def test_language_and_written_form_agree_with_python(pattern: str, text: str) -> None:
    try:
        found = language(pattern)
    except PatternError:
        return  # a look-ahead inside a repetition
    wanted = re.search(pattern, text) is not None
    assert rx.matches(found, text) is wanted
    try:
        plain = written(found)
    except rx.TooComplexError:
        return
    assert (plain is not None and re.fullmatch(to_python(plain)[1:-1], text) is not None) is wanted


@settings(max_examples=200, deadline=None)
@given(PATTERNS, TEXTS)
def test_complements_agree_with_python(pattern: str, text: str) -> None:
    try:
        outside = written(rx.negate(language(pattern, either=True)))
    except (PatternError, rx.TooComplexError):
        return
    taken = outside is not None and re.fullmatch(to_python(outside)[1:-1], text) is not None
    assert taken is (re.search(pattern, text) is None)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(a", "missing"),
        ("a)", "unmatched"),
        ("*a", "repeat"),
        ("[a", "missing"),
        ("[b-a]", "order"),
        ("a{2,1}", "bounds"),
        ("(?<=a)b", "look-behind"),
        ("(a)\\1", "back-reference"),
        ("\\bfoo", "word boundary"),
        ("\\Afoo", "escape"),
        ("\\p{Script=Greek}", "property"),
        ("(^a)*", "anchor"),
        ("a\\", "backslash"),
    ],
)
def test_what_is_not_regular_or_not_known_is_named(pattern: str, why: str) -> None:
    with pytest.raises(PatternError, match=why):
        language(pattern)


def test_classes_are_what_all_dialects_take() -> None:
    arabic_digit, feff, fs = "\u0663", "\ufeff", "\x1c"
    assert not rx.matches(language("^\\d$"), arabic_digit)
    assert not rx.matches(language("^\\D$"), arabic_digit)
    assert rx.matches(language("^\\d$", either=True), arabic_digit)
    for odd in (feff, fs):
        assert not rx.matches(language("^\\s$"), odd)
        assert not rx.matches(language("^\\S$"), odd)
    assert not rx.matches(language("^a$"), "a\n")
    assert rx.matches(language("^a$", either=True), "a\n")
