"""Left factoring: no two alternatives begin alike, and the language stays the same."""

from __future__ import annotations

import random

import pytest

import xpress_struct as xs
from xpress_struct.constraints.lark.factoring import Expansion, factored

Rules = dict[str, list[Expansion]]


def texts(rules: Rules, expansion: Expansion) -> set[str]:
    """Texts of an expansion, of rules that do not recur."""
    if not expansion:
        return {""}
    first, rest = expansion[0], texts(rules, expansion[1:])
    heads = set[str]().union(*(texts(rules, each) for each in rules[first])) if first in rules else {first}
    return {head + tail for head in heads for tail in rest}


@pytest.mark.parametrize("seed", range(30))
def test_the_same_language(seed: int) -> None:
    """Random rules yield the same texts, and behind the merged beginnings nothing begins alike."""
    draw = random.Random(seed)
    given = {
        name: [tuple(draw.choices("ABC" + more, k=draw.randint(0, 4))) for _ in range(draw.randint(1, 9))]
        for name, more in (("x", ""), ("y", "x"), ("z", "xy"))
    }
    made = factored(given)
    for name in given:
        assert texts(made, (name,)) == texts(given, (name,))
    for expansions in made.values():
        firsts = [expansion[:1] for expansion in expansions]
        assert len(set(firsts)) == len(firsts)


def test_optional_parts_are_not_multiplied() -> None:
    """Ten optional parts are 1024 alternatives for lark, and a small grammar for the engine."""
    made = xs.lark("start: " + " ".join(f'["{letter}"]' for letter in "abcdefghij") + ' "z"')
    assert made.accepts("adgz") and made.accepts("z")
    assert not made.accepts("daz")
    assert len(made.grammar) < 4000
