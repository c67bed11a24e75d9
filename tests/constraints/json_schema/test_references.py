"""$ref, anchors, identifiers, recursion and drafts (B22)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.constraints.json_schema.verdicts import Row, Taker, check
from xpress_struct.errors import SchemaError

INT, STR = {"type": "integer"}, {"type": "string"}
LIST = {
    "type": "object",
    "properties": {"v": INT, "next": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}},
    "required": ["v", "next"],
    "additionalProperties": False,
}


def nested(depth: int) -> Any:
    value = None
    for i in range(depth):
        value = {"v": i, "next": value}
    return value


TABLE = [
    Row(LIST, (nested(8), nested(60)), ({"v": 1}, {"v": 1, "next": {"v": "x", "next": None}})),
    Row(
        {
            "$ref": "#/$defs/a",
            "$defs": {
                "a": {
                    "type": "object",
                    "properties": {"b": {"$ref": "#/$defs/b"}},
                    "additionalProperties": False,
                },
                "b": {"type": "array", "items": {"$ref": "#/$defs/a"}},
            },
        },
        ({"b": [{}, {"b": []}]},),
        ({"b": [[]]}, {"c": 1}),
    ),
    # circular references with siblings
    Row(
        {
            "$ref": "#/$defs/tree",
            "$defs": {
                "tree": {
                    "type": "object",
                    "properties": {"n": INT, "kids": {"type": "array", "items": {"$ref": "#/$defs/leaf"}}},
                },
                "leaf": {"$ref": "#/$defs/tree", "required": ["n"]},
            },
        },
        ({"kids": [{"n": 1, "kids": [{"n": 2}]}]},),
        ({"kids": [{}]}, {"kids": [{"n": 1, "kids": [{}]}]}),
    ),
    Row({"$ref": "#/$defs/a", "minimum": 3, "$defs": {"a": INT}}, (3,), (2, "a")),
    Row(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$ref": "#/definitions/a",
            "minimum": 3,
            "definitions": {"a": INT},
        },
        (2, 3),
        ("a",),
    ),
    Row({"$ref": "#named", "$defs": {"a": {"$anchor": "named", **INT}}}, (1,), ("a",)),
    Row(
        {"$id": "http://example.org/root", "$ref": "other", "$defs": {"o": {"$id": "other", **STR}}},
        ("a",),
        (1,),
    ),
    Row(
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "id": "http://example.org/root",
            "allOf": [{"$ref": "#x"}],
            "definitions": {"o": {"id": "#x", **STR}},
        },
        ("a",),
        (1,),
    ),
    Row({"$dynamicRef": "#n", "$defs": {"x": {"$dynamicAnchor": "n", **STR}}}, ("a",), (1,)),
    Row(
        {"properties": {"a%b": INT, "r": {"$ref": "#/properties/a%25b"}}, "type": "object"},
        ({"r": 1},),
        ({"r": ""},),
    ),
    Row({"$ref": "#/$defs/a~1b", "$defs": {"a/b": INT}}, (1,), ("a",)),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row.schema)[:70])
def test_table(row: Row) -> None:
    check(row)


def test_drafts_are_guessed_from_what_only_they_have() -> None:
    check(Row({"items": [INT, STR], "additionalItems": False}, ([1, "a"],), ([1, "a", 2], ["a"])))
    check(Row({"type": "number", "minimum": 1, "exclusiveMinimum": True}, (2,), (1,)))


def test_documents_come_from_the_registry() -> None:
    registry = {"http://example.org/int": INT, "http://example.org/dir/list": {"items": {"$ref": "../int"}}}
    schema = {"properties": {"a": {"$ref": "http://example.org/dir/list"}}, "type": "object"}
    check(Row(schema, ({"a": [1]},), ({"a": ["x"]},)), registry=registry)
    with pytest.raises(SchemaError, match="does not resolve") as caught:
        Taker(schema)
    assert (caught.value.pointer, caught.value.keyword) == ("/properties/a", "$ref")


def test_the_metaschemas_are_known() -> None:
    taker = Taker({"$ref": "http://json-schema.org/draft-07/schema#"})
    assert taker({"properties": {"a": {"minLength": 1}}, "type": "object"})
    assert not taker({"type": 3})


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, INT]}}},
    ],
)
def test_a_schema_that_is_only_itself(schema: Any) -> None:
    with pytest.raises(SchemaError, match="refers to itself"):
        Taker(schema)


def test_endless_values_are_no_values() -> None:
    with pytest.raises(SchemaError, match="no value"):
        Taker({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})
    # an optional endless member is left out
    schema = {
        "type": "object",
        "properties": {"x": INT, "a": {"$ref": "#/$defs/endless"}},
        "$defs": {"endless": {"type": "array", "items": {"$ref": "#/$defs/endless"}, "minItems": 1}},
    }
    check(Row(schema, ({"x": 1},), ({"a": []},)))


def test_a_reference_that_depends_on_the_path_is_reported() -> None:
    schema = {
        "$id": "http://example.org/a",
        "$ref": "b",
        "$defs": {
            "here": {"$dynamicAnchor": "n", **STR},
            "b": {"$id": "b", "$dynamicRef": "#n", "$defs": {"there": {"$dynamicAnchor": "n"}}},
        },
    }
    check(Row(schema, ("a",), (), ("$dynamicRef",)))
