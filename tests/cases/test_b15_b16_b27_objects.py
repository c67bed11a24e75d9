"""B15, B16 and B27: order of keys, optional keys, and schemas that say little."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

import xpress_struct as xs
from tests.cases.scripts import PROMPT, noisy, writer
from tests.stubs import constant, label, stub_model
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import SchemaError

BOOL = {"type": "boolean"}
ZAM = {"zeta": BOOL, "alpha": BOOL, "mid": BOOL}


def closed(properties: dict, **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
        **more,
    }


class Inner(BaseModel):
    zeta: bool
    alpha: bool
    mid: bool


class Outer(BaseModel):
    second: Inner
    first: Inner


def key_order(text: str) -> list[str]:
    """All keys of a document in the order in which they are written."""
    keys: list[str] = []
    json.loads(text, object_pairs_hook=lambda pairs: keys.extend(k for k, _ in pairs))
    return keys


WANT = ["zeta", "alpha", "mid"]


@pytest.mark.parametrize(
    ("schema", "keys"),
    [
        pytest.param(closed(ZAM), WANT, id="plain"),
        pytest.param({**closed(ZAM), "required": ["alpha", "mid", "zeta"]}, WANT, id="required"),
        pytest.param({"$ref": "#/$defs/T", "$defs": {"T": closed(ZAM)}}, WANT, id="ref"),
        pytest.param(
            {
                "allOf": [
                    {"type": "object", "properties": {"zeta": BOOL, "alpha": BOOL}},
                    {"properties": {"mid": BOOL}},
                ],
                "required": ["mid", "alpha", "zeta"],
                "unevaluatedProperties": False,
            },
            WANT,
            id="allOf",
        ),
        pytest.param(
            {
                "allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}],
                "$defs": {
                    "A": {"type": "object", "properties": {"zeta": BOOL}, "required": ["zeta"]},
                    "B": {
                        "type": "object",
                        "properties": {"alpha": BOOL, "mid": BOOL},
                        "required": ["mid", "alpha"],
                    },
                },
                "unevaluatedProperties": False,
            },
            WANT,
            id="allOf of refs",
        ),
        pytest.param({"anyOf": [closed(ZAM), closed(dict(ZAM))]}, WANT, id="anyOf"),
        pytest.param({"type": "array", "items": closed(ZAM), "minItems": 1, "maxItems": 1}, WANT),
        pytest.param(Outer, [*WANT, *WANT, "second", "first"], id="pydantic"),
    ],
)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_b15_keys_keep_their_declared_order(schema: Any, keys: list[str], temperature: float) -> None:
    """Keys come in the order in which the schema declares them, also through $ref and allOf."""
    model = stub_model(noisy(3))
    result = model.generate(
        PROMPT, xs.json_schema(schema), temperature=temperature, seed=4, max_new_tokens=400
    )
    assert [k for k in key_order(result.text) if k in keys][: len(keys)] == keys


LINES = {
    "type": "object",
    "properties": {
        "path": {"enum": ["a.py"]},
        "end_line": {"enum": [9]},
        "start_line": {"enum": [3]},
    },
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "text",
    [
        '{"path": "a.py"}',
        '{"path": "a.py", "end_line": 9}',
        '{"path": "a.py", "start_line": 3}',
        '{"path": "a.py", "end_line": 9, "start_line": 3}',
    ],
)
def test_b16_optional_keys_are_all_reachable_in_declared_order(text: str) -> None:
    """Each subset of the optional keys can be written, in declared order."""
    result = writer(text).generate(PROMPT, xs.json_schema(LINES), max_new_tokens=100)
    assert result.text == text
    assert result.value == json.loads(text)


def test_b16_a_key_written_early_bars_those_declared_before() -> None:
    """With declared order (documented), an optional key that was passed over is lost."""
    constraint = xs.json_schema(LINES)
    wanted = '{"path": "a.py", "start_line": 3, "end_line": 9}'
    assert not constraint.accepts(wanted)
    result = writer(wanted).generate(PROMPT, constraint, max_new_tokens=100)
    assert result.value == {"path": "a.py", "start_line": 3}


@pytest.mark.parametrize(
    "text",
    [
        '{"path": "a.py", "start_line": 3, "end_line": 9}',
        '{"start_line": 3, "path": "a.py"}',
        '{"end_line": 9, "start_line": 3, "path": "a.py"}',
    ],
)
def test_b16_any_order_takes_each_key_at_most_once(text: str) -> None:
    """With key_order="any" optional keys come in any order, each at most once."""
    constraint = xs.json_schema(LINES, key_order="any")
    assert writer(text).generate(PROMPT, constraint, max_new_tokens=100).text == text
    assert not constraint.accepts('{"path": "a.py", "end_line": 9, "end_line": 9}')
    assert not constraint.accepts('{"start_line": 3}')


DOCUMENTS = ["null", "true", "3", "-2.5", '"x"', "[]", '[1, "a", {"b": null}]', "{}", '{"a": [{}]}']


@pytest.mark.parametrize("schema", [{}, "{}", True, "true"], ids=label)
@pytest.mark.parametrize("text", DOCUMENTS)
def test_b27_the_empty_schema_takes_every_document(schema: Any, text: str) -> None:
    """{} and true are satisfied by every JSON value."""
    result = writer(text).generate(PROMPT, xs.json_schema(schema), max_new_tokens=100)
    assert result.text == text
    assert result.value == json.loads(text)


@pytest.mark.parametrize("schema", [{"type": "object"}, '{"type": "object"}', dict], ids=label)
@pytest.mark.parametrize("text", ["{}", '{"a": 1}', '{"a": {"b": [null]}, "c": "d"}'])
def test_b27_a_bare_object_takes_every_object(schema: Any, text: str) -> None:
    """An object schema without properties is satisfied by every object and by nothing else."""
    constraint = xs.json_schema(schema)
    result = writer(text).generate(PROMPT, constraint, max_new_tokens=100)
    assert result.value == json.loads(text)
    assert not any(constraint.accepts(other) for other in ("null", "[]", "1", '"x"'))


@pytest.mark.parametrize("seed", range(3))
def test_b27_a_closed_empty_object_is_two_braces(seed: int) -> None:
    """Without properties and with additionalProperties false, exactly {} is left, unasked."""
    constraint = xs.json_schema({"type": "object", "properties": {}, "additionalProperties": False})
    model = stub_model(noisy(seed))
    result = model.generate(PROMPT, constraint)
    assert (result.text, result.value) == ("{}", {})
    assert result.stats.forwards == 0


@pytest.mark.parametrize(
    "schema",
    [
        False,
        "false",
        {"not": {}},
        {"enum": []},
        {"type": "integer", "minimum": 3, "maximum": 2},
        closed({"a": False}),
        {"type": "array", "items": False, "minItems": 1},
    ],
    ids=label,
)
def test_b27_a_schema_that_nothing_satisfies_is_an_error(schema: Any) -> None:
    """false, and what comes to the same, fails where the constraint is made."""
    with pytest.raises(SchemaError):
        xs.json_schema(schema)


def test_b15_the_order_does_not_depend_on_the_vocabulary() -> None:
    """A vocabulary without end token keeps the order too."""
    vocabulary = Vocabulary.from_tokens([bytes([i]) for i in range(256)])
    model = stub_model(constant({}, 256), vocabulary)
    text = model.generate(PROMPT, xs.json_schema(closed(ZAM)), max_new_tokens=99).text
    assert key_order(text) == WANT
