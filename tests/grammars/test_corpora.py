"""Shipped grammars against the real parsers of their languages."""

from __future__ import annotations

import pytest

import xpress_struct as xs
from benchmarks.judges import JUDGES
from tests.grammars.sampler import Sampler
from tests.grammars.shipped import NAMES, corpus, loaded, takes

# What a language forbids beyond its syntax, so that a random text may meet it.
_TWICE = (
    "already exists",
    "Cannot overwrite",
    "Cannot mutate",
    "Cannot declare",
    "Duplicate inline table key",
)


@pytest.mark.parametrize(("name", "text"), corpus("accepted"))
def test_accepted_by_both(name: str, text: str) -> None:
    """The grammar and the real parser take the text."""
    assert JUDGES[name](text) is None
    assert takes(name, text)


@pytest.mark.parametrize(("name", "text"), corpus("refused"))
def test_refused_by_both(name: str, text: str) -> None:
    """Neither the grammar nor the real parser takes the text."""
    assert JUDGES[name](text) is not None
    assert not takes(name, text)


@pytest.mark.parametrize("name", NAMES)
def test_random_texts(name: str) -> None:
    """What the rules and terminals yield at random, the real parser takes."""
    judged = 0
    for seed, room in ((1, 40), (2, 150), (3, 10)):
        sampler = Sampler(loaded(name), seed, room)
        for _ in range(60):
            text = sampler.text()
            if not takes(name, text):  # words of two terminals that ran together
                continue
            judged += 1
            refusal = JUDGES[name](text)
            assert refusal is None or any(phrase in refusal for phrase in _TWICE), (text, refusal)
    assert judged >= 60


@pytest.mark.parametrize("name", NAMES)
def test_masks(name: str) -> None:
    """The mask takes and refuses what the grammar does; only in GraphQL is the end left to lark."""
    constraint = xs.lark(name)
    assert bool(constraint.checked_after) == (name == "graphql")
    for mine, text in corpus("accepted"):
        if mine == name:
            assert constraint.accepts(text), text
    for mine, text in corpus("refused"):
        if mine == name:
            assert not constraint.accepts(text), text


def test_long_blocks_of_python() -> None:
    """Many comments, blank lines and blocks that end at once pass the mask, and imports from far above."""
    lines = [
        *["#"] * 150,
        "from ..a import b",
        "from .... import c",
        "class A:",
        "    def f(self):",
        "        try:",
        "            x = 1",
        "            ",
        "        except E:",
        "            if x:",
        "                if y:",
        "                    if z:",
        "                        while 1:",
        "                            for i in j:",
        "                                with k:",
        "                                    if l:",
        "                                        x, y = 'a', 1",
        "                    else:",
        "                        y = None",
        "z = 1\n",
    ]
    text = "\n".join(lines)
    assert JUDGES["python"](text) is None
    assert xs.lark("python").accepts(text)
