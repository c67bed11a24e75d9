"""The layout of json.dumps(indent=2)."""

from __future__ import annotations

import json

import pytest

import xpress_struct as xs
from tests.stubs import prefers, stub_model
from xpress_struct.constraints.json_schema.indented import DEEPEST

LIST = {
    "$ref": "#/$defs/n",
    "$defs": {
        "n": {
            "type": "object",
            "properties": {
                "v": {"type": "integer"},
                "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/n"}]},
            },
            "required": ["v"],
            "additionalProperties": False,
        }
    },
}
SCHEMAS = [
    (
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
            "additionalProperties": False,
        },
        [{}, {"a": 1}, {"b": "x"}, {"a": 1, "b": "x"}],
        [{"b": 1}, [], 3],
    ),
    (
        {
            "type": "object",
            "properties": {"a": {}, "b": {}, "c": {}},
            "required": ["b"],
            "additionalProperties": False,
        },
        [{"b": 1}, {"a": [], "b": {}}, {"a": 1, "b": 2, "c": {"x": [1, {"y": None}]}}],
        [{}, {"a": 1}],
    ),
    (
        {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3},
        [[1, 2], [1, 2, 3]],
        [[], [1], [1, 2, 3, 4]],
    ),
    (
        {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "items": {"type": "null"},
        },
        [[], [1], [1, "a"], [1, "a", None, None]],
        [["a"], [1, 2], [1, "a", 3]],
    ),
    (
        {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "items": False,
            "minItems": 1,
        },
        [[1], [1, "a"]],
        [[], [1, "a", 1]],
    ),
    (
        {
            "type": "object",
            "additionalProperties": {"type": "integer"},
            "minProperties": 1,
            "maxProperties": 2,
        },
        [{"x": 1}, {"x": 1, "y": 2}],
        [{}, {"x": 1, "y": 2, "z": 3}, {"x": "1"}],
    ),
    ({"enum": [1, "a", None, {"k": [1, 2]}, []]}, [1, "a", None, {"k": [1, 2]}, []], [2, {"k": [1]}]),
    (LIST, [{"v": 1}, {"v": 1, "next": {"v": 2, "next": None}}], [{"next": None}]),
    ({}, [1, "x", None, True, [], {}, [[1], {"a": {"b": []}}]], []),
]


@pytest.mark.parametrize(("schema", "good", "bad"), SCHEMAS)
def test_indented_documents_are_those_of_the_schema(schema, good, bad):
    """Exactly the values that the spaced layout takes are taken, written as json.dumps(indent=2)."""
    indented, spaced = xs.json_schema(schema, layout="indented"), xs.json_schema(schema)
    for value in [*good, *bad]:
        text = json.dumps(value, indent=2, ensure_ascii=False)
        assert indented.accepts(text) is (value in good), text
        assert indented.accepts(text) is spaced.accepts(json.dumps(value, ensure_ascii=False))
        if isinstance(value, (dict, list)) and value:
            assert not indented.accepts(json.dumps(value, ensure_ascii=False))


def test_recursion_is_unrolled_as_far_as_stated():
    """A recursive document is taken down to DEEPEST levels and not below."""
    constraint = xs.json_schema(LIST, layout="indented")

    def nested(levels: int) -> str:
        value: dict[str, object] = {"v": 0}
        for _ in range(levels - 1):
            value = {"v": 0, "next": value}
        return json.dumps(value, indent=2)

    assert constraint.accepts(nested(DEEPEST))
    assert not constraint.accepts(nested(DEEPEST + 1))


def test_a_model_writes_it():
    """A generation in this layout reads like json.dumps(indent=2) and parses."""
    value = {"a": [1, {"b": "x"}], "c": {}}
    text = json.dumps(value, indent=2)
    out = stub_model(prefers(text)).generate([1], xs.json_schema({"type": "object"}, layout="indented"))
    assert (out.text, out.value) == (text, value)
