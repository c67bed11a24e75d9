"""Types, constants, booleans as schemas, numbers (B4, B17, B18, B27)."""

from __future__ import annotations

import pytest

from tests.constraints.json_schema.verdicts import Row, Taker, check
from xpress_struct.errors import SchemaError

ANYTHING = (None, True, 0, -1.5, "a", [], [1, "b"], {}, {"a": {"b": []}})

TABLE = [
    # B27
    Row({}, ANYTHING),
    Row(True, ANYTHING),
    Row({"type": "object"}, ({}, {"a": 1}), (1, [], "{}")),
    Row({"type": "object", "properties": {}, "additionalProperties": False}, ({},), ({"a": 1},)),
    Row({"type": ["null", "boolean"]}, (None, True, False), (0, "null")),
    # keywords without "type" speak of their own type only
    Row({"minLength": 2}, ("ab", 1, None, [], {}), ("a", "")),
    Row({"minimum": 3, "required": ["a"]}, (3, "x", {"a": 1}), (2, {})),
    Row({"type": "string", "minimum": 3}, ("",), (1, 5)),
    # B18
    Row(
        {"enum": [True, None, 1.5, 'a"b\\', {"k": 1}, [1]]},
        (True, None, 1.5, 'a"b\\', {"k": 1}, [1]),
        (False, 1, 0, "a", {}, {"k": 2}, [2], []),
    ),
    Row({"enum": [1, "a", True]}, (1, "a", True), (False, "1", 0)),
    Row({"type": "string", "enum": ["a", 1]}, ("a",), (1,)),
    Row({"const": {"a": [1, {"b": None}]}}, ({"a": [1, {"b": None}]},), ({"a": [1]}, {})),
    Row({"const": "é"}, ("é",), ("e",)),
    Row({"enum": ["abc", "d"], "minLength": 2}, ("abc",), ("d",)),
    Row({"enum": [1, 2, 3, 2.5], "type": "integer", "minimum": 2}, (2, 3), (1, 2.5)),
    # OpenAPI's nullable is no keyword of JSON Schema
    Row({"type": "string", "nullable": True}, ("",), (None,)),
    # annotations
    Row({"type": "string", "contentEncoding": "base64", "title": "t", "x-y": {"not": {}}}, ("{",)),
    # B17
    Row({"type": "number", "exclusiveMinimum": 0}, (0.1, 1, 12.5), (0, -1, -0.1)),
    Row({"type": "number", "minimum": 1, "maximum": 5}, (1, 4.9, 5), (5.7, 0.9, 6)),
    Row({"type": "integer", "minimum": -5}, (-5, 0, 10**6), (-6, 1.5)),
    Row({"type": "integer", "minimum": 2}, (2, 10, 99), (1, 0, -2)),
    Row({"type": "integer", "exclusiveMinimum": 2.5, "exclusiveMaximum": 4}, (3,), (2, 4)),
    Row({"type": "integer", "multipleOf": 5}, (0, 5, -10), (7, 1)),
    Row({"type": "number", "multipleOf": 0.01}, (0.01, 19.99, 3), (0.001, 19.999)),
    Row({"allOf": [{"multipleOf": 6}, {"multipleOf": 4}], "type": "integer"}, (12, 24), (6, 4, 8)),
    Row({"allOf": [{"minimum": 3}, {"maximum": 5}], "type": "integer"}, (3, 5), (9, 2)),
    Row(
        {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True},
        (2, 1.5, "a"),
        (1, 0),
    ),
    Row({"type": "integer", "minimum": 1, "maximum": 10, "not": {"enum": [3, 10]}}, (1, 9), (3, 10, 0)),
    # B4: digits are bounded
    Row({"type": "integer"}, (9223372036854774784, -(10**18)), (10**19, 1e30)),
    Row({"type": "number"}, (10**18, 0.0123456789), (10**18 + 1, 0.01234567890123)),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row.schema)[:60])
def test_table(row: Row) -> None:
    check(row)


def test_openapi_nullable_on_request() -> None:
    check(Row({"type": "string", "nullable": True}, ("", None), (1,)), openapi=True)


def test_unbounded_numbers_on_request() -> None:
    taker = Taker({"type": "number"}, bounded_numbers=False)
    assert taker.text("1e300")
    assert taker.text("0.1234567890123456789")
    assert not Taker({"type": "number"}).text("1e300")


def test_an_integer_is_written_without_fraction_and_exponent() -> None:
    taker = Taker({"type": "integer"})
    assert taker.text("1")
    assert not taker.text("1.0")
    assert not taker.text("1e0")


@pytest.mark.parametrize(
    ("schema", "pointer", "keyword"),
    [
        (False, "", None),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "", None),
        ({"type": "object", "properties": {"a": False}, "required": ["a"]}, "", None),
        ({"type": "string", "enum": [1, 2]}, "", None),
        ({"properties": {"a": {"type": "int"}}}, "/properties/a", "type"),
        ({"properties": {"a": {"minLength": -1}}}, "/properties/a", "minLength"),
        ({"properties": {"a": {"pattern": 3}}}, "/properties/a", "pattern"),
        ({"anyOf": []}, "", "anyOf"),
        ([], "", None),
        (None, "", None),
        ({"maximum": float("nan")}, "", "maximum"),
        ({"enum": "a"}, "", "enum"),
        ({"items": 3}, "/items", None),
        ({"multipleOf": 0}, "", "multipleOf"),
        ({"required": "a"}, "", "required"),
    ],
)
def test_schemas_that_are_malformed_or_hold_nothing(
    schema: object, pointer: str, keyword: str | None
) -> None:
    with pytest.raises(SchemaError) as caught:
        Taker(schema)
    assert caught.value.pointer == pointer
    assert caught.value.keyword == keyword


def test_a_number_that_the_engine_cannot_hold_is_reported() -> None:
    check(Row({"type": "number", "multipleOf": 0.123456789123}, (1,), ("a",), ("multipleOf",)))
    check(Row({"type": "integer", "minimum": 10**30}, (10**30,), (), ("minimum",)))
