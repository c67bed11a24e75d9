"""allOf, anyOf, oneOf, not, if and unevaluated*."""

from __future__ import annotations

import pytest

from tests.constraints.json_schema.verdicts import Row, Taker, check

INT, STR = {"type": "integer"}, {"type": "string"}


def tagged(tag: str, **properties: object) -> dict[str, object]:
    return {"type": "object", "properties": {"kind": {"const": tag}, **properties}, "required": ["kind"]}


TABLE = [
    Row({"allOf": [{"type": "object", "properties": {"a": INT}}, {"required": ["a"]}]}, ({"a": 1},), ({},)),
    Row({"allOf": [{"type": ["integer", "string"]}, {"type": ["string", "null"]}]}, ("",), (1, None)),
    Row({"anyOf": [INT, STR], "minimum": 2}, (2, "a"), (1, None)),
    Row(
        {"type": "object", "properties": {"a": INT}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        ({"a": 1}, {"b": 1}, {"a": 1, "b": 2}),
        ({}, {"a": "x", "b": 1}),
    ),
    # oneOf
    Row({"oneOf": [INT, STR]}, (1, "a"), (None,)),
    Row(
        {"oneOf": [tagged("x", v=INT), tagged("y", v=STR)]},
        ({"kind": "x", "v": 1},),
        ({"kind": "x", "v": "1"},),
    ),
    Row(
        {
            "type": "object",
            "properties": {"a": INT, "b": INT},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        ({"a": 1}, {"b": 1}),
        ({"a": 1, "b": 1}, {}),
    ),
    Row({"type": "integer", "oneOf": [{"minimum": 2}, {"maximum": 4}]}, (1, 5), (2, 3, 4)),
    Row({"oneOf": [STR, {"maxLength": 2}]}, ("abc", 1, None), ("ab", "")),
    Row({"type": "number", "oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]}, (2, 3, 6), (), ("oneOf",)),
    Row(
        {
            "oneOf": [
                {"type": "object", "additionalProperties": False, "properties": {"k": {"enum": ["a"]}}},
                {"type": "object", "additionalProperties": False, "properties": {"k": {"enum": ["b"]}}},
            ]
        },
        ({"k": "a"}, {"k": "b"}),
        ({"k": "c"}, {"j": 1}, {}),
    ),
    # not
    Row({"not": {"type": "string"}}, (1, None, [], {}), ("", "a")),
    Row({"not": {"type": ["string", "object"]}}, (1, None, []), ("", {})),
    Row({"not": {"const": None}}, (1, "null", False), (None,)),
    Row({"type": "boolean", "not": {"const": True}}, (False,), (True,)),
    Row({"not": {"not": {"type": "integer"}}}, (1,), ("a", None)),
    Row({"type": "number", "not": {"minimum": 3}}, (2.9, -1), (3, 4)),
    Row({"type": "number", "not": {"exclusiveMaximum": 3}}, (3, 4), (2.9,)),
    Row(
        {"type": "object", "not": {"allOf": [{"required": ["a"]}, {"required": ["b"]}]}},
        ({}, {"a": 1}, {"b": 1}),
        ({"a": 1, "b": 1},),
    ),
    Row(
        {"type": "object", "not": {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}},
        ({}, {"c": 1}),
        ({"a": 1}, {"b": 1}),
    ),
    Row({"type": "object", "not": {"properties": {"a": STR}}}, ({"a": 1},), ({"a": "x"}, {})),
    Row({"not": {"oneOf": [{"type": "null"}, STR]}}, (1, []), (None, "a")),
    Row({"not": {"type": "integer"}}, (None, "a", 0.5, 1), (), ("not",)),
    Row({"type": "integer", "minimum": 0, "maximum": 9, "not": {"multipleOf": 3}}, (1, 8), (0, 3, 9, 10)),
    Row({"type": "integer", "not": {"multipleOf": 3}}, (1, 3), ("a",), ("not",)),
    # if
    Row(
        {"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"type": "integer"}},
        ("ab", 1),
        ("a", None),
    ),
    Row(
        {
            "type": "object",
            "properties": {"country": {"enum": ["US", "CA"]}, "zip": STR},
            "if": {"properties": {"country": {"const": "US"}}, "required": ["country"]},
            "then": {"required": ["zip"]},
            "additionalProperties": False,
        },
        ({"country": "CA"}, {"country": "US", "zip": "1"}, {}),
        ({"country": "US"},),
    ),
    Row({"if": {"multipleOf": 2}, "then": {"minimum": 10}, "type": "integer"}, (12, 3, 4), (), ("if",)),
    Row({"then": {"type": "string"}}, (1, "a")),
    # unevaluated*
    Row(
        {
            "type": "object",
            "properties": {"a": INT},
            "anyOf": [
                {"properties": {"b": INT}, "required": ["b"]},
                {"properties": {"c": INT}, "required": ["c"]},
            ],
            "unevaluatedProperties": False,
        },
        ({"a": 1, "b": 2}, {"a": 1, "c": 2}, {"b": 1, "c": 2}),
        ({"a": 1}, {"b": 1, "c": "x"}, {"b": 1, "d": 1}),
    ),
    Row(
        {
            "type": "object",
            "if": {"properties": {"k": {"const": 1}}, "required": ["k"]},
            "then": {"properties": {"a": INT}},
            "else": {"properties": {"b": INT}},
            "unevaluatedProperties": False,
        },
        ({"k": 1, "a": 2}, {"b": 2}),
        ({"k": 1, "b": 2}, {"a": 1}, {"k": 2}),
    ),
    Row(
        {"prefixItems": [INT], "allOf": [{"prefixItems": [True, STR]}], "unevaluatedItems": False},
        ([1], [1, "a"]),
        ([1, "a", 2], ["a"]),
    ),
    Row(
        {"contains": INT, "unevaluatedItems": STR, "maxItems": 2},
        ([1], [1, "a"]),
        ([],),
        ("unevaluatedItems",),
    ),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row.schema)[:70])
def test_table(row: Row) -> None:
    check(row)


def test_a_note_names_keyword_and_place() -> None:
    schema = {"type": "object", "properties": {"a/b": {"type": "integer", "not": {"multipleOf": 3}}}}
    (note,) = Taker(schema).rewritten.checked_after
    assert (note.keyword, note.pointer) == ("not", "/properties/a~1b")


def test_notes_of_branches_that_cannot_hold_are_left_out() -> None:
    # the complement of the array constant is not expressible, and no array is wanted
    check(Row({"type": "string", "not": {"enum": [[1], "a"]}}, ("b",), ("a", [1])))


def test_enforced_lists_the_keywords_that_need_no_check() -> None:
    schema = {"type": "integer", "minimum": 3, "not": {"multipleOf": 4}, "title": "x"}
    assert Taker(schema).rewritten.enforced == ("minimum", "multipleOf", "type")
