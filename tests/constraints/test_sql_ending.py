"""The end that a statement over a database proposes for itself."""

from __future__ import annotations

import random
from functools import cache

import pytest

import xpress_struct as xs
from benchmarks.judges import JUDGES
from tests.constraints.test_sql_scope import DDL, prepares
from tests.stubs import stub_model

BEGINNINGS = [
    "SELECT",
    "SELECT ti",
    "SELECT s.name, max(s.",
    "SELECT title FROM singer",
    "SELECT round((SELECT max(id) FROM song WHERE singer.id",
    "SELECT percent_rank(",
    "SELECT * FROM singer WHERE name = 'a",
    "SELECT id, name FROM singer UNION SELECT id",
    "SELECT * FROM singer WHERE id IN (SELECT singer_id FROM song WHERE title LIKE",
    "SELECT coalesce(name",
    "SELECT cast(name",
    "SELECT count(*) FROM singer GROUP BY",
]


@cache
def singers() -> xs.Constraint:
    return xs.sql(DDL)


@pytest.mark.parametrize("text", BEGINNINGS)
def test_beginnings_are_ended(text: str) -> None:
    """What is proposed is taken by the mask, and SQLite prepares the whole."""
    model = stub_model(lambda prefix: [0.0] * 257)
    matcher, _ = singers().matcher(model.vocabulary)
    matcher.commit(list(text.encode()))
    end = matcher.ending()
    assert end is not None
    for byte in end:
        assert matcher.legal(byte), (text, end)
        matcher.commit([byte])
    assert matcher.accepting
    assert prepares(text + end.decode())


def test_whole_statements_need_no_end() -> None:
    """Behind a whole statement nothing is proposed."""
    matcher, _ = singers().matcher(stub_model(lambda prefix: [0.0] * 257).vocabulary)
    matcher.commit(list(b"SELECT name FROM singer"))
    assert matcher.ending() == b""


def test_random_statements_are_closed() -> None:
    """Half of the statements of a random model or more are whole at the budget; all of these parse."""

    def logits(prefix: tuple[int, ...]) -> list[float]:
        draw = random.Random(str(prefix))
        return [draw.gauss(0.0, 2) for _ in range(257)]

    model = stub_model(logits)
    done = [
        model.generate([1], singers(), max_new_tokens=90, seed=seed, temperature=1.0, on_limit="close")
        for seed in range(8)
    ]
    whole = [each.text for each in done if each.complete]
    assert len(whole) >= 4
    assert [JUDGES["sqlite"](text) for text in whole] == [None] * len(whole)
