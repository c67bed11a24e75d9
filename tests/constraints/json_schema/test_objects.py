"""Members of objects (B15, B16, B26 and the near-copy of engines.md, section 6, row 13)."""

from __future__ import annotations

import time

import pytest

from tests.constraints.json_schema.verdicts import Row, Taker, check
from xpress_struct.errors import UnsupportedFeatureError

INT = {"type": "integer"}
AB = {"a": INT, "b": INT}

TABLE = [
    # B15: declared order, through $ref and allOf
    Row(
        {"type": "object", "properties": {"zeta": INT, "alpha": INT, "mid": INT}},
        ({"zeta": 1, "alpha": 2, "mid": 3}, {"alpha": 1}),
        ({"alpha": 1, "zeta": 2},),
    ),
    Row(
        {
            "allOf": [{"$ref": "#/$defs/base"}],
            "properties": {"mid": INT, "alpha": INT},
            "unevaluatedProperties": False,
            "$defs": {"base": {"type": "object", "properties": {"zeta": INT, "omega": INT}}},
        },
        ({"zeta": 1, "omega": 2, "mid": 3, "alpha": 4},),
        ({"mid": 3, "zeta": 1}, {"other": 1}),
    ),
    # additional keys: standard by default
    Row({"type": "object", "properties": AB}, ({"a": 1, "x": None}, {"x": 1, "y": [2]}), ({"a": "x"},)),
    Row({"properties": AB, "additionalProperties": False}, ({"a": 1}, 3), ({"x": 1},)),
    Row({"properties": AB, "additionalProperties": INT}, ({"x": 1},), ({"x": "1"},)),
    Row({"type": "object", "required": ["x"], "properties": AB}, ({"a": 1, "x": 0},), ({"a": 1}, {})),
    Row({"type": "object", "properties": {"a": False}}, ({}, {"b": 1}), ({"a": 1},)),
    # patterns
    Row({"type": "object", "patternProperties": {"^x_": INT}}, ({"x_1": 3, "y": "s"},), ({"x_1": "3"},)),
    Row(
        {"type": "object", "patternProperties": {"^a": INT, "b$": {"minimum": 3}}},
        ({"a": 1}, {"b": 3}, {"ab": 3}, {"b": "x"}, {"c": 1}),
        ({"ab": 1}, {"ab": "x"}, {"a": "x"}, {"b": 1}),
    ),
    Row(
        {"properties": {"foo": INT}, "patternProperties": {"^f": {"minimum": 3}}, "type": "object"},
        ({"foo": 3}, {"fx": 4}, {"fx": "s"}),
        ({"foo": 2}, {"fx": 2}),
    ),
    Row(
        {"type": "object", "patternProperties": {"^[a-z]{1,255}$": INT}, "additionalProperties": False},
        ({"abc": 1}, {"z" * 255: 1}),
        ({"A": 1}, {"": 1}, {"z" * 256: 1}),
    ),
    Row(
        {"type": "object", "patternProperties": {"(?<=a)b": INT}}, ({"ab": 1},), (1,), ("patternProperties",)
    ),
    # a key that dialects read differently is not written: Python's "." matches U+2028, ECMA-262's does not
    Row({"type": "object", "patternProperties": {".": INT}}, ({"a": 1},), ({"\u2028": "s"}, {"\u2028": 1})),
    # propertyNames
    Row({"type": "object", "propertyNames": {"maxLength": 2}}, ({"ab": 1},), ({"abc": 1},)),
    Row({"type": "object", "propertyNames": {"pattern": "^x"}}, ({"x1": 1},), ({"y": 1},)),
    Row({"type": "object", "propertyNames": {"enum": ["N", "S"]}}, ({"S": 1, "N": 2}, {}), ({"E": 1},)),
    Row({"type": "object", "propertyNames": False}, ({},), ({"a": 1},)),
    Row({"properties": AB, "propertyNames": {"const": "a"}, "type": "object"}, ({"a": 1},), ({"b": 1},)),
    # counts, with optional members
    Row({"type": "object", "properties": AB, "minProperties": 1}, ({"a": 1}, {"x": 1}), ({},)),
    Row(
        {"type": "object", "properties": {**AB, "c": INT}, "minProperties": 2, "maxProperties": 2},
        ({"a": 1, "b": 1}, {"b": 1, "c": 1}, {"a": 1, "x": 1}),
        ({}, {"a": 1}, {"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 1, "x": 1}),
    ),
    Row(
        {"properties": {**AB, "c": INT}, "additionalProperties": False, "minProperties": 2, "type": "object"},
        ({"a": 1, "b": 1}, {"a": 1, "c": 1}, {"a": 1, "b": 1, "c": 1}),
        ({"a": 1}, {"c": 1}, {}),
    ),
    Row({"type": "object", "maxProperties": 1}, ({}, {"a": 1}), ({"a": 1, "b": 1},)),
    Row({"type": "object", "not": {"required": ["a"]}}, ({}, {"b": 1}), ({"a": 1},)),
    # dependencies
    Row(
        {"type": "object", "properties": AB, "dependentRequired": {"a": ["b"]}},
        ({}, {"b": 1}, {"a": 1, "b": 1}),
        ({"a": 1},),
    ),
    Row(
        {"type": "object", "properties": AB, "dependentSchemas": {"a": {"required": ["c"]}}},
        ({"b": 1}, {"a": 1, "c": 1}),
        ({"a": 1}, {"a": 1, "b": 2}),
    ),
    Row(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": AB,
            "dependencies": {"a": ["b"], "b": {"properties": {"a": {"minimum": 5}}}},
        },
        ({"a": 5, "b": 1}, {"b": 1}, [1]),
        ({"a": 5}, {"a": 1, "b": 1}),
    ),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row.schema)[:70])
def test_table(row: Row) -> None:
    check(row)


@pytest.mark.parametrize(
    "text",
    [
        '{"temperature": 68.5, "forecast\' : [{": null}',
        '{"temperature": 68.5, "forecast: ": null}',
        '{"temperature": 68.5, "forecast [": null}',
        '{"temperature": 68.5, "\\u0066orecast": null}',
        '{"temperature": 68.5, "forecast\\"": null}',
        '{"temperature": 68.5, "": null}',
        '{"temperature": 68.5, "temperature": 1}',
    ],
)
def test_no_near_copy_of_a_declared_key(text: str) -> None:
    properties = {"forecast": {"type": "array"}, "temperature": {"type": "number"}}
    assert not Taker({"type": "object", "properties": properties}).text(text)


def test_other_keys_that_begin_like_a_declared_one_are_taken() -> None:
    taker = Taker({"type": "object", "properties": {"forecast": INT}})
    for key in ("forecasts", "forecast_2", "forecast 2", "fore", "f", "Forecast", "x'y"):
        assert taker({key: None}), key


def test_open_keys_are_reported() -> None:
    assert Taker({"type": "object"}).rewritten.open_keys
    assert Taker({"items": {"type": "object", "patternProperties": {"^a": True}}}).rewritten.open_keys
    closed = {"type": "object", "properties": AB, "additionalProperties": False}
    assert not Taker(closed).rewritten.open_keys


def test_any_order_of_small_objects() -> None:  # B16
    schema = {"type": "object", "properties": {**AB, "c": INT}, "required": ["c"]}
    taker = Taker(schema, key_order="any")
    assert taker({"b": 1, "c": 2, "a": 3})
    assert taker({"c": 2, "a": 3, "x": None})
    assert taker({"c": 2})
    assert not taker({"b": 1, "a": 2})
    assert not taker.text('{"c": 1, "a": 1, "a": 2}')
    assert not Taker(schema)({"b": 1, "c": 2, "a": 3})


def test_any_order_of_large_objects_is_refused() -> None:
    schema = {"properties": {"sub": {"type": "object", "properties": dict.fromkeys("abcdef", INT)}}}
    with pytest.raises(UnsupportedFeatureError) as caught:
        Taker(schema, key_order="any")
    assert caught.value.feature == "key_order"
    assert caught.value.pointer == "/properties/sub"


def test_many_optional_properties_compile_quickly() -> None:  # B20
    inner = {"type": "object", "properties": {f"inner{i}": {"type": "string"} for i in range(20)}}
    start = time.perf_counter()
    taker = Taker({"type": "object", "properties": {f"outer{i}": inner for i in range(20)}})
    assert time.perf_counter() - start < 3
    assert taker({"outer3": {"inner2": "x"}, "outer19": {}})
