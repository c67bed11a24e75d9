"""Table 5.3: rows where engines differ from JSON Schema. Ours is sound on every one."""

from __future__ import annotations

import json

import pytest

from tests.constraints.json_schema.test_references import LIST, nested
from tests.constraints.json_schema.verdicts import Taker

INT = {"type": "integer"}
XY = {"type": "object", "properties": {"a": INT, "b": INT}}

REFUSED = [
    ({"type": "integer", "minimum": -5, "maximum": 3}, -6),
    ({"type": "number", "minimum": 1, "maximum": 5}, 5.7),
    ({"type": "number", "exclusiveMinimum": 0}, 0),
    ({"type": "integer", "minimum": 2}, 1),
    ({"type": "integer", "multipleOf": 5}, 7),
    ({"type": "string", "enum": ["a", 1]}, 1),
    ({"type": "string", "pattern": "^(?!a)[a-z]+$"}, "abc"),
    ({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True}, [1, 1]),
    ({"type": "integer", "oneOf": [{"minimum": 1}, {"maximum": 5}]}, 3),
    ({"type": "integer", "allOf": [{"minimum": 3}, {"maximum": 5}]}, 9),
    ({"type": "object", "properties": {"a": INT}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}),
    ({"not": {"type": "string"}}, "a"),
    ({"if": {"type": "string"}, "then": {"minLength": 3}}, "a"),
    ({"type": "object", "properties": {"a": False}}, {"a": 1}),
    ({"type": "string", "format": "date-time"}, "2024-02-30T10:00:00Z"),
]
TAKEN = [
    (LIST, nested(8)),
    ({"type": "string", "pattern": "b+"}, "abbc"),
    (XY, {"a": 1, "c": None}),
    ({"type": "object", "patternProperties": {"^x_": INT}}, {"x_1": 3}),
]
# refused although valid, and documented: numbers without exponent, integers without fraction, printable
# characters without \u, members in declared order
DOCUMENTED = [
    ({"type": "number"}, "1e5"),
    (INT, "1.0"),
    ({"type": "string"}, '"\\u00e9"'),
    (XY, '{"b": 1, "a": 1}'),
]


@pytest.mark.parametrize(("schema", "value"), REFUSED)
def test_invalid_values_are_refused(schema: object, value: object) -> None:
    assert not Taker(schema)(value)


@pytest.mark.parametrize(("schema", "value"), TAKEN)
def test_valid_values_are_taken(schema: object, value: object) -> None:
    assert Taker(schema)(value)


@pytest.mark.parametrize(("schema", "text"), DOCUMENTED)
def test_documented_departures(schema: object, text: str) -> None:
    json.loads(text)
    assert not Taker(schema).text(text)


def test_the_row_that_is_not_enforced_is_reported() -> None:
    taker = Taker({"type": "array", "items": INT, "uniqueItems": True})
    assert taker([1, 1])
    assert taker.checked == ("uniqueItems",)
