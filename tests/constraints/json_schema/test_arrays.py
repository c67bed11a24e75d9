"""Arrays: tuples, bounds, uniqueItems, contains (B5, B21)."""

from __future__ import annotations

import time

import pytest

from tests.constraints.json_schema.verdicts import Row, Taker, check
from xpress_struct.constraints.json_schema.arrays import CONTAINS_WITHIN
from xpress_struct.errors import SchemaError

INT, STR = {"type": "integer"}, {"type": "string"}
DRAFT7 = "http://json-schema.org/draft-07/schema#"

TABLE = [
    Row({"type": "array", "items": INT}, ([], [1, 2]), (["a"], [1, None])),
    Row({"type": "array", "items": False}, ([],), ([1],)),
    Row({"prefixItems": [INT, STR]}, ([], [1], [1, "a", None], {}), (["a"], [1, 2])),
    Row({"prefixItems": [INT, STR], "items": False}, ([], [1], [1, "a"]), ([1, "a", 1],)),
    Row(
        {"$schema": DRAFT7, "items": [INT, STR], "additionalItems": False}, ([1, "a"],), ([1, "a", 1], ["a"])
    ),
    Row({"$schema": DRAFT7, "items": [INT], "additionalItems": STR}, ([1, "a"],), ([1, 2],)),
    Row({"type": "array", "prefixItems": [INT, False]}, ([], [1]), ([1, 2],)),
    Row({"type": "array", "minItems": 2, "maxItems": 3, "items": INT}, ([1, 2], [1, 2, 3]), ([1], [1] * 4)),
    Row(
        {"allOf": [{"items": {"minimum": 3}}, {"items": {"maximum": 5}}], "items": INT}, ([3, 5],), ([2], [6])
    ),
    Row({"type": "array", "not": {"minItems": 2}}, ([], [1]), ([1, 2],)),
    Row(
        {"type": "array", "not": {"items": INT}, "items": {"type": ["integer", "null"]}, "maxItems": 3},
        ([None], [1, None]),
        ([], [1], [1, 2]),
    ),
    # uniqueItems
    Row(
        {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True},
        ([], ["a"], ["c", "a"], ["b", "c", "a"]),
        (["a", "a"], ["a", "b", "a"], ["d"]),
    ),
    Row(
        {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True},
        ([True, False],),
        ([True, True],),
    ),
    Row({"type": "array", "uniqueItems": True, "maxItems": 1}, ([], [1]), ([1, 1],)),
    Row({"prefixItems": [INT, STR], "items": False, "uniqueItems": True}, ([1, "1"],), ([1, 1],)),
    Row({"type": "array", "items": INT, "uniqueItems": True}, ([1, 2], [1, 1]), (["a"],), ("uniqueItems",)),
    Row({"type": "array", "items": INT, "uniqueItems": False}, ([1, 1],)),
    # contains
    Row({"type": "array", "contains": INT, "maxItems": 3}, ([1], ["a", 1], [None, None, 2]), ([], ["a"])),
    Row({"type": "array", "items": INT, "contains": INT}, ([1],), ([],)),
    Row({"type": "array", "items": INT, "contains": {}, "minContains": 2}, ([1, 2],), ([1],)),
    Row({"type": "array", "contains": INT, "minContains": 0}, ([], ["a"])),
    Row({"type": "array", "contains": STR, "maxContains": 0, "minContains": 0}, ([], [1]), (["a"], [1, "a"])),
    Row(
        {"type": "array", "contains": INT},
        ([1], ["a", 1], [*["a"] * (CONTAINS_WITHIN - 1), 1, "a"]),
        ([], ["a"], ["a", "b"], [*["a"] * CONTAINS_WITHIN, 1]),  # the last one is a documented bound
    ),
    Row({"type": "array", "contains": INT, "minContains": 2}, ([1, 2], ["a", 1]), ([],), ("contains",)),
    Row({"type": "array", "not": {"contains": STR}}, ([], [1]), (["a"], [1, "a"])),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row.schema)[:70])
def test_table(row: Row) -> None:
    check(row)


def test_an_item_that_cannot_be_there() -> None:
    with pytest.raises(SchemaError, match="no value"):
        Taker({"type": "array", "items": INT, "contains": STR})


def test_items_at_the_limit() -> None:  # B21
    start = time.perf_counter()
    taker = Taker({"type": "array", "items": INT, "maxItems": 2000})
    assert time.perf_counter() - start < 1
    assert taker([1] * 2000)
    assert not taker([1] * 2001)


def test_a_huge_limit_is_checked_after() -> None:
    check(Row({"type": "array", "maxItems": 10**9}, ([1],), (1,), ("maxItems",)))
