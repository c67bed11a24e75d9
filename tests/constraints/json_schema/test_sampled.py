"""Random texts under the mask: every one is valid, or a note says why it may not be."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.constraints.json_schema import (
    test_applicators,
    test_arrays,
    test_objects,
    test_references,
    test_strings,
    test_values,
)
from tests.constraints.json_schema.verdicts import Taker, closing_walk
from xpress_struct.constraints.json_schema.dialects import validator_class
from xpress_struct.errors import SchemaError

TABLES = (test_applicators, test_arrays, test_objects, test_references, test_strings, test_values)
# what Python's `re` does not read, jsonschema cannot validate
UNREAD = ("\\p{", "(?<year>", "[^]", "(?<!a)", "(?<=a)")
SCHEMAS = [
    row.schema for module in TABLES for row in module.TABLE if not any(u in str(row.schema) for u in UNREAD)
]


class RepeatedKeyError(ValueError):
    pass


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise RepeatedKeyError
    return dict(pairs)


def verdict(validator: Any, value: Any) -> bool | None:
    """Whether a value is valid; None when the validator does not come to an end."""
    try:
        return bool(validator.is_valid(value))
    except RecursionError:
        return None


def sample(schema: Any, seeds: range) -> None:
    taker = Taker(schema)
    kind = validator_class(schema)
    validator = kind(schema, format_checker=kind.FORMAT_CHECKER)
    for seed in seeds:
        text = closing_walk(taker, seed)
        if text is None:
            continue
        try:
            value = json.loads(text, object_pairs_hook=once)
        except RepeatedKeyError:
            assert taker.rewritten.open_keys
            continue
        if not taker.checked:
            assert verdict(validator, value) is not False, text


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: str(schema)[:50])
def test_random_texts_are_valid(schema: Any) -> None:
    sample(schema, range(8))


NAMES = st.sampled_from(["a", "b", "c", "ab"])
LEAVES = st.one_of(
    st.sampled_from([{}, True, False, {"type": "null"}, {"type": "boolean"}]),
    st.builds(lambda v: {"const": v}, st.sampled_from([None, True, 1, 2, "a", "b", "ab", [], [1], {"a": 1}])),
    st.builds(
        lambda v: {"enum": v}, st.lists(st.sampled_from([None, 1, 2, "a", "b"]), min_size=1, max_size=3)
    ),
    st.builds(
        lambda k, v: {k: v}, st.sampled_from(["minimum", "maximum", "exclusiveMinimum"]), st.integers(-3, 3)
    ),
    st.builds(
        lambda k, v: {k: v},
        st.sampled_from(["minLength", "maxLength", "minItems", "maxItems"]),
        st.integers(0, 3),
    ),
    st.builds(lambda k, v: {k: v}, st.sampled_from(["minProperties", "maxProperties"]), st.integers(0, 2)),
    st.builds(lambda v: {"pattern": v}, st.sampled_from(["^a", "b$", "^(?!ab)", "^[ab]*$", "a"])),
    st.builds(lambda v: {"type": v}, st.sampled_from(["string", "integer", "number", "array", "object"])),
    st.builds(lambda v: {"required": v}, st.lists(NAMES, max_size=2, unique=True)),
    st.builds(lambda v: {"multipleOf": v}, st.sampled_from([2, 3, 0.5])),
    st.builds(lambda n, v: {"dependentRequired": {n: v}}, NAMES, st.lists(NAMES, max_size=2, unique=True)),
    st.sampled_from([{"uniqueItems": True}, {"$ref": "#/$defs/r"}, {"type": ["integer", "null", "array"]}]),
)


def grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.builds(lambda k, v: {k: v}, st.sampled_from(["allOf", "anyOf", "oneOf"]), some),
        st.builds(
            lambda k, v: {k: v}, st.sampled_from(["not", "items", "contains", "additionalProperties"]), inner
        ),
        st.builds(lambda v: {"propertyNames": v}, inner),
        st.builds(
            lambda v, low, high: {"contains": v, "minContains": low, "maxContains": high},
            inner,
            st.integers(0, 2),
            st.integers(0, 2),
        ),
        st.builds(lambda v, w: {"allOf": [{"prefixItems": v}], "unevaluatedItems": w}, some, inner),
        st.builds(lambda v: {"properties": v, "type": "object"}, st.dictionaries(NAMES, inner, max_size=3)),
        st.builds(
            lambda v, r: {"properties": v, "required": list(v)[:1], "additionalProperties": r},
            st.dictionaries(NAMES, inner, max_size=3),
            inner,
        ),
        st.builds(
            lambda v: {"patternProperties": v},
            st.dictionaries(st.sampled_from(["^a", "b$", "."]), inner, max_size=2),
        ),
        st.builds(lambda v, w: {"prefixItems": v, "items": w, "type": "array"}, some, inner),
        st.builds(lambda a, b, c: {"if": a, "then": b, "else": c}, inner, inner, inner),
        st.builds(lambda n, s: {"dependentSchemas": {n: s}}, NAMES, inner),
        st.builds(
            lambda a, b: {**a, **b} if isinstance(a, dict) and isinstance(b, dict) else a, inner, inner
        ),
        st.builds(
            lambda a: {"anyOf": [a, {"properties": {"a": {"const": 1}}}], "unevaluatedProperties": False},
            inner,
        ),
    )


def document(schema: Any, target: Any) -> Any:
    return {**schema, "$defs": {"r": target}} if isinstance(schema, dict) else schema


def documents(max_leaves: int) -> st.SearchStrategy[Any]:
    schemas = st.recursive(LEAVES, grown, max_leaves=max_leaves)
    return st.builds(document, schemas, st.recursive(LEAVES, grown, max_leaves=3))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(documents(6), st.integers(0, 10**6))
def test_random_schemas_are_sound(schema: Any, seed: int) -> None:
    with contextlib.suppress(SchemaError):  # no value satisfies it
        sample(schema, range(seed, seed + 4))


VALUES = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 2, -3, 0.5, "", "a", "b", "ab", "ba"]),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(documents(5), st.lists(VALUES, min_size=4, max_size=8))
def test_random_values_get_the_right_verdict(schema: Any, values: list[Any]) -> None:
    validator = validator_class(schema)(schema)
    try:
        taker = Taker(schema)
    except SchemaError as why:
        if "no value" in str(why):
            assert not any(verdict(validator, v) for v in values)
        return
    for value in values:
        valid = verdict(validator, value)
        if not taker.checked and taker(value):
            assert valid is not False, value
        elif valid and not _has_order(value):
            assert taker(value), value


def _has_order(value: Any) -> bool:
    """Whether the order of keys may be why a valid value is not taken."""
    if isinstance(value, list):
        return any(map(_has_order, value))
    if isinstance(value, dict):
        return len(value) > 1 or any(map(_has_order, value.values()))
    return False
