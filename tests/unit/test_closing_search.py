"""The search for what closes a text, in the shipped grammars."""

from __future__ import annotations

import random

import numpy as np
import pytest

import xpress_struct as xs
from benchmarks.judges import JUDGES
from tests.stubs import byte_vocabulary
from xpress_struct.decoding import closing
from xpress_struct.decoding.closing import closing_tokens
from xpress_struct.errors import XPressError

BYTES = byte_vocabulary()
MOST = 48
TABLE = {
    "sqlite": [
        "SELECT a FROM t WHERE b IN (SELECT c FROM d)\nEX",
        "SELECT a FROM t WHERE b = 'x",
        "SELECT (SELECT a",
        "SELECT max(",
        "SELECT a FROM t ORDER",
        "SELECT CASE WHEN a",
        "SELECT a FROM t LEFT",
        "INSERT INTO t",
        "UPDATE t",
        "WITH x AS (",
        "SELECT CAST(a",
        "CREATE INDEX i",
        "DELETE",
    ],
    "toml": ["a = [1, ", "[x", "a", "a = 2020-01-", 'a = """ab', 'a = "x\\u00'],
    "json": ['{"a": [1, "b', '{"a', '{"a": tr', '{"a": {"b": [[[', "[1e"],
    "graphql": ["{ a(x: ", "query Q", '{ a(x: "b', "query Q($x: [In", "mutation { a(x: {b: [1, "],
}
PYTHON = [
    "    return g(x",
    "    # no",
    "    return [1, 2,",
    "    if x",
    "    y = 'ab",
    "    for i in range(x):\n",
    "    for i",
    "    try:\n        a = 1\n",
    '    """abc',
    "    x = {1: [f(2",
    "    y = f'a{x",
]
CASES = [(name, text) for name, texts in TABLE.items() for text in texts]
SLOW = [pytest.param("python", f"def f(x):\n{text}", marks=pytest.mark.slow) for text in PYTHON]


@pytest.fixture
def looked_at(monkeypatch):
    """Counts the places that searches looked at."""
    seen, pop = [], closing.heapq.heappop

    class Heap:
        heappush = staticmethod(closing.heapq.heappush)

        @staticmethod
        def heappop(waiting):
            seen.append(1)
            return pop(waiting)

    monkeypatch.setattr(closing, "heapq", Heap)
    return seen


def closed(constraint, text, most=MOST):
    matcher, _ = constraint.matcher(BYTES)
    assert matcher.consume_text(text) == len(text)
    tokens = closing_tokens(matcher, BYTES, most, text.encode())
    assert tokens is not None
    assert len(tokens) <= most
    matcher.commit(tokens)
    assert matcher.accepting
    return text + BYTES.decode(tokens).decode()


@pytest.mark.parametrize(("name", "text"), CASES + SLOW)
def test_the_beginning_of_a_text_is_closed(name, text, looked_at):
    """What closes it fits, is taken by the grammar and by the language's parser, and is found soon."""
    assert JUDGES[name](closed(xs.lark(name), text)) is None
    assert len(looked_at) <= 300


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("[a-z]{20}!", "ab"),
        ("(ab)*c", "a"),
        ("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "0"),
        ("[0-9]+x", "12"),
        ("<b>[^<]*</b>", "<b>some ?q"),
    ],
)
def test_the_beginning_of_a_pattern_is_closed(pattern, text):
    """Long fillers, loops and choices of a regular expression are closed."""
    constraint = xs.regex(pattern)
    assert constraint.parse(closed(constraint, text))


def test_the_search_is_bounded(looked_at):
    """Where nothing closes within the budget, the search gives up at its bound."""
    matcher, _ = xs.regex("([a-z]( |,|;))*!{60}").matcher(BYTES)
    assert closing_tokens(matcher, BYTES, 20) is None
    assert len(looked_at) <= 400


def walk(matcher, rng):
    """Commits up to 120 random tokens, rarely an end."""
    written = []
    length = rng.randrange(10, 120)
    while len(written) < length and not matcher.ended:
        legal = np.flatnonzero(np.unpackbits(matcher.mask(), bitorder="little"))
        plain = [int(i) for i in legal if 32 <= i < 127 or i == 10]
        letters = [i for i in plain if chr(i).isalnum()]
        choice = letters if letters and rng.random() < 0.5 else plain or [int(i) for i in legal]
        token = rng.choice(choice)
        matcher.commit([token])
        written.append(token)
    return bytes(t for t in written if t < 256)


@pytest.mark.parametrize(("name", "least"), [("sqlite", 0.93), ("json", 0.99)])
def test_random_texts_are_closed(name, least):
    """From random places of random texts a closing is found nearly always, and it closes the text."""
    constraint, found, walks = xs.lark(name), 0, 120
    for seed in range(120):
        matcher, _ = constraint.matcher(BYTES)
        try:
            written = walk(matcher, random.Random(seed))
        except XPressError:  # the walk itself met a limit
            walks -= 1
            continue
        tokens = closing_tokens(matcher, BYTES, 64, written[-200:])
        if tokens is not None:
            matcher.commit(tokens)
            assert matcher.accepting
            found += 1
    assert walks > 100
    assert found >= least * walks
