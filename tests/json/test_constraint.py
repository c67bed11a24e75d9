"""json_schema as people call it: what it reports, refuses, caches, and what happens when a check fails."""

from __future__ import annotations

import datetime
import json
import time
import uuid
from typing import Annotated

import numpy as np
import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, HttpUrl, Json, SecretStr, condecimal

import xpress_struct as xs
from tests.stubs import byte_vocabulary, constant, prefers, stub_model
from xpress_struct.errors import OutputValidationError, SchemaError, UnsupportedFeatureError

UNIQUE = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "minItems": 2, "maxItems": 2}


def test_what_is_left_to_check_is_said():
    """A keyword that the mask cannot enforce stands in checked_after with pointer and reason."""
    constraint = xs.json_schema(
        {"type": "object", "properties": {"u": UNIQUE}, "additionalProperties": False}
    )
    (item,) = constraint.checked_after
    assert (item.keyword, item.pointer) == ("uniqueItems", "/properties/u")
    assert item.reason
    assert "uniqueItems" not in constraint.enforced
    assert {"type", "items", "minItems"} <= set(constraint.enforced)


def test_strict_refuses_it():
    """strict=True refuses what can only be checked after, naming keyword and pointer."""
    with pytest.raises(UnsupportedFeatureError) as caught:
        xs.json_schema({"properties": {"u": UNIQUE}}, strict=True)
    assert (caught.value.feature, caught.value.pointer) == ("uniqueItems", "/properties/u")
    assert xs.json_schema({"type": "integer"}, strict=True).checked_after == ()


def test_a_failed_check_is_drawn_again():
    """A value that fails its check is resampled from a stated seed, and the work is counted."""
    text = "[1, 1]"

    def logits(prefix):
        place = len(prefix) - 1
        row = [0.0] * 257
        row[256] = 5.0
        if place < len(text):
            row[text.encode()[place]] = 8.0
            if place == 4:
                row[ord("2")] = 7.9
        return row

    model = stub_model(logits)
    out = model.generate([1], xs.json_schema(UNIQUE), seed=5, max_retries=20, max_new_tokens=40)
    assert len(set(out.value)) == 2
    assert out.stats.retries >= 1
    assert out.stats.forwards > len(out.token_ids) - out.stats.forced
    again = model.generate([1], xs.json_schema(UNIQUE), seed=5, max_retries=20, max_new_tokens=40)
    assert again.token_ids == out.token_ids


def test_when_every_attempt_fails_it_is_an_error():
    """After max_retries the failure is raised with the last text; nothing invalid is returned."""
    model = stub_model(prefers("[1, 1]"))
    with pytest.raises(OutputValidationError, match="3 texts") as caught:
        model.generate([1], xs.json_schema(UNIQUE), max_retries=2, temperature=0.1, seed=1)
    assert caught.value.text == "[1, 1]"


def test_a_checked_constraint_is_streamed_in_one_piece():
    """stream refuses a constraint with later checks unless it is buffered."""
    model = stub_model(prefers("[1, 2]"))
    with pytest.raises(UnsupportedFeatureError, match="buffered=True"):
        model.stream([1], xs.json_schema(UNIQUE))
    with model.stream([1], xs.json_schema(UNIQUE), buffered=True) as stream:
        assert list(stream) == ["[1, 2]"]
    assert stream.result.value == [1, 2]
    assert stream.partial == [1, 2]


def test_validators_of_a_type_are_checks():
    """Code in a pydantic type runs on the finished value, and is reported."""

    def even(value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value

    class Pair(BaseModel):
        n: Annotated[int, AfterValidator(even)]

    constraint = xs.json_schema(Pair)
    assert [item.keyword for item in constraint.checked_after] == ["pydantic"]
    assert constraint.parse('{"n": 4}') == Pair(n=4)
    with pytest.raises(OutputValidationError, match="odd"):
        constraint.parse('{"n": 3}')


def test_objects_of_types_are_closed_unless_they_allow_more():
    """B26: undeclared keys are written only for extra="allow", and then are never empty or near-copies."""

    class Closed(BaseModel):
        forecast: str

    class Open(Closed):
        model_config = ConfigDict(extra="allow")

    closed, opened = xs.json_schema(Closed), xs.json_schema(Open)
    assert not closed.accepts('{"forecast": "x", "more": 1}')
    assert opened.accepts('{"forecast": "x", "more": 1}')
    assert not opened.accepts('{"forecast": "x", "": "y"}')
    assert not opened.accepts("""{"forecast": "x", "forecast' : [{": "y"}""")


def test_dates_are_those_of_python():
    """B28: a datetime field takes what datetime.fromisoformat reads, and no 30th of February."""

    class Event(BaseModel):
        at: datetime.datetime
        day: datetime.date
        key: uuid.UUID

    constraint = xs.json_schema(Event)
    key = str(uuid.UUID(int=7))
    text = json.dumps({"at": "2024-02-29T10:00:00Z", "day": "2024-02-29", "key": key})
    assert constraint.accepts(text)
    assert constraint.parse(text).at == datetime.datetime.fromisoformat("2024-02-29T10:00:00+00:00")
    assert not constraint.accepts(text.replace("2024-02-29T", "2023-02-29T"))
    assert not constraint.accepts(text.replace('"day": "2024-02-29"', '"day": "2024-02-30"'))


def test_the_same_schema_twice_is_one_compile():
    """B20: the second use of a schema and a vocabulary compiles nothing."""
    deep = {
        "type": "object",
        "properties": {
            f"p{i}": {"type": "object", "properties": {f"q{j}": {"type": "string"} for j in range(8)}}
            for i in range(20)
        },
    }
    xs.clear_cache()
    vocabulary = byte_vocabulary()
    started = time.perf_counter()
    _, first = xs.json_schema(deep).matcher(vocabulary)
    assert time.perf_counter() - started < 10
    _, second = xs.json_schema(json.loads(json.dumps(deep))).matcher(vocabulary)
    assert first > 0
    assert second == 0.0


def test_references_into_other_documents():
    """A registry resolves references, for the mask and for the final check alike."""
    schema = {"$ref": "https://example.org/point#/$defs/p"}
    with pytest.raises(SchemaError, match=r"example\.org"):
        xs.json_schema(schema)
    registry = {
        "https://example.org/point": {"$defs": {"p": {"type": "array", "items": {"type": "integer"}}}}
    }
    constraint = xs.json_schema(schema, registry=registry)
    assert constraint.accepts("[1, 2]")
    assert not constraint.accepts('["x"]')
    assert constraint.parse("[1, 2]") == [1, 2]
    with pytest.raises(OutputValidationError):
        constraint.parse('["x"]')


@pytest.mark.parametrize(
    ("options", "text", "without"),
    [
        ({"key_order": "any"}, '{"b": 1, "a": "2024-01-01"}', False),
        ({"formats": "ignore"}, '{"a": "soon"}', False),
        ({"openapi": True}, '{"a": null}', False),
    ],
)
def test_every_option_changes_the_mask(options, text, without):
    """B29: each option makes a text legal that is not without it."""
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "format": "date", "nullable": True},
            "b": {"type": "integer"},
        },
        "additionalProperties": False,
    }
    assert xs.json_schema(schema).accepts(text) is without
    assert xs.json_schema(schema, **options).accepts(text) is not without


def test_endless_digits_end():
    """B4: a model that only wants digits still ends with a number that reads back."""
    schema = {"type": "object", "properties": {"s": {"type": "number"}}, "required": ["s"]}
    for digit in "019":
        model = stub_model(constant({ord(digit): 9.0, ord("."): 5.0}))
        out = model.generate([1], xs.json_schema({**schema, "additionalProperties": False}))
        assert out.finish_reason == "stop"
        assert len(out.token_ids) < 60
        assert isinstance(out.value["s"], (int, float))


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string", "pattern": r"^\p{L}+$"}, ["é", "Ωab"], ["a1", ""]),
        ({"type": "string", "pattern": r"\p{Lu}x"}, ["aBx"], ["bx"]),
        (
            {
                "type": "object",
                "patternProperties": {r"^\p{Lu}$": {"type": "integer"}},
                "additionalProperties": False,
            },
            [{"A": 1}],
            [{"A": "x"}, {"a": 1}],
        ),
        (
            {"properties": {"pattern": {"pattern": r"^\p{Nd}$"}}, "required": ["pattern"]},
            [{"pattern": "4"}],
            [{"pattern": "x"}],
        ),
    ],
)
def test_patterns_that_only_ecma_has(schema, good, bad):
    r"""Unicode classes (\p{...}) are enforced by the mask and known to the final check."""
    constraint = xs.json_schema(schema)
    assert constraint.checked_after == ()
    for value in good:
        assert constraint.accepts(json.dumps(value, ensure_ascii=False))
        assert constraint.parse(json.dumps(value)) == value
    for value in bad:
        assert not constraint.accepts(json.dumps(value, ensure_ascii=False))
        with pytest.raises(OutputValidationError):
            constraint.parse(json.dumps(value))


@pytest.mark.parametrize(
    "kind", [datetime.timedelta, datetime.date, datetime.time, uuid.UUID, float, list[bool]]
)
def test_types_that_say_all_in_their_schema_leave_nothing_to_check(kind):
    """Such a type has nothing in checked_after, and random documents of it validate."""
    constraint = xs.json_schema(kind)
    assert constraint.checked_after == ()
    for seed in range(25):
        model = stub_model(lambda prefix, seed=seed: _hashed(prefix, seed))
        out = model.generate([1], constraint, temperature=1.0, seed=seed, max_new_tokens=90, on_limit="close")
        assert out.value is not None


@pytest.mark.parametrize("kind", [Json, HttpUrl, SecretStr, complex, condecimal(max_digits=3)])
def test_types_that_check_more_say_so(kind):
    """A type whose validation refuses what its schema allows is reported, so that it is drawn again."""
    assert [item.keyword for item in xs.json_schema(kind).checked_after] == ["pydantic"]


def _hashed(prefix, seed):
    return np.random.default_rng([seed, len(prefix), *prefix]).normal(size=257).tolist()
