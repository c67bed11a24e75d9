"""The automaton of a pattern against Python's own `re.match`."""

from __future__ import annotations

import itertools
import re

import pytest

from xpress_struct.constraints.lark.alphabet import Alphabet
from xpress_struct.constraints.lark.matching import follow_pattern
from xpress_struct.constraints.lark.program import compile_pattern
from xpress_struct.errors import UnsupportedFeatureError

PATTERNS = [
    "a|ab",
    "ab|a",
    "(a|ab)(c|bcd)?",
    "a*?b",
    '".*?"',
    '".*?(?<!\\\\)(\\\\\\\\)*?"',
    "(a|b)*?c",
    "a{1,3}?b?",
    "(?:aa|a){2}",
    "a+(?!b)",
    "(?!ab)[abc]+",
    "a(?=b|$)",
    "ab\\b",
    "a\\Bb",
    "(?i:A)b",
    "[^a]+?(?=a)",
    "(a*)*b",
    "a(?!bc)[abc]*",
    "(?<!a)b",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_automaton_takes_what_re_takes(pattern: str) -> None:
    """Its last match on the way through a text is what `re.match` takes, for every text of five letters."""
    program = compile_pattern(pattern, 0, "T")
    letters = '\\"ab' if '"' in pattern else "abc"
    alphabet = Alphabet({*program.charsets, *((((ord(c), ord(c)),)) for c in letters), ((10, 10),)})
    matching = follow_pattern(program, alphabet)
    for size in range(6):
        for text in map("".join, itertools.product(letters, repeat=size)):
            found, state = None, 0
            for place, symbol in enumerate([*alphabet.word(text), alphabet.end]):
                if matching.matched[state] >> symbol & 1:
                    found = text[:place]
                state = matching.rows[state][symbol] if symbol != alphabet.end else -1
                if state < 0:
                    break
            expected = re.match(pattern, text)
            if matching.inexact and expected is None:
                continue  # an upper bound, which is then gated
            assert found == (expected and expected[0]), text


@pytest.mark.parametrize(
    ("pattern", "feature"),
    [
        ("(a)\\1", "back-reference"),
        ("(?<=(?:a|b)*)c", "look-behind"),
        ("(?=(?=a)b)c", "look-around"),
        ("(a)?(?(1)b|c)", "conditional group"),
    ],
)
def test_what_is_not_regular_is_refused_by_name(pattern: str, feature: str) -> None:
    """Back-references and their like are refused, and named."""
    try:
        re.compile(pattern)
    except re.error:
        pattern = "(?<=[ab](?:c))c" if feature == "look-behind" else pattern
        assert compile_pattern(pattern, 0, "T").history == 2
        return
    with pytest.raises(UnsupportedFeatureError, match="T") as caught:
        compile_pattern(pattern, 0, "T")
    assert feature in caught.value.feature
