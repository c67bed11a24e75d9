"""generate_json: what may stand for a schema, and what comes back."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Optional

import outlines.types
import pytest
from pydantic import BaseModel, Field, TypeAdapter, field_validator
from typing_extensions import TypedDict

import xpress_struct as xs
from tests.cases.scripts import PROMPT, noisy, writer
from tests.stubs import constant, label, stub_model
from xpress_struct.errors import (
    ArgumentError,
    OutputValidationError,
    SchemaError,
    UnsupportedFeatureError,
)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Address(BaseModel):
    street: str
    number: int = Field(ge=1, le=999)


class Person(BaseModel):
    name: str
    home: Address
    color: Color
    nick: str | None


@dataclass
class Point:
    x: int
    y: int


class Movie(TypedDict):
    title: str
    year: int


SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
ADA = {"name": "Ada", "home": {"street": "Rue é", "number": 7}, "color": "red", "nick": None}

CASES = {
    "pydantic": (Person, ADA, Person(**ADA)),
    "dataclass": (Point, {"x": 1, "y": -2}, Point(1, -2)),
    "typed dict": (Movie, {"title": "M", "year": 1931}, {"title": "M", "year": 1931}),
    "enum": (Color, "blue", Color.BLUE),
    "int enum": (Level, 2, Level.HIGH),
    "literal": (Literal["a", 3, True], 3, 3),
    "list": (list[int], [1, 2], [1, 2]),
    "list of models": (list[Address], [ADA["home"]], [Address(**ADA["home"])]),
    "dict": (dict[str, bool], {"k": True}, {"k": True}),
    "optional": (Optional[int], None, None),
    "union": (int | str, "x", "x"),
    "tuple": (tuple[int, str], [1, "a"], (1, "a")),
    "int": (int, 42, 42),
    "bool": (bool, True, True),
    "adapter": (TypeAdapter(list[Color]), ["red"], [Color.RED]),
    "schema": (SCHEMA, {"a": 5}, {"a": 5}),
    "text": (json.dumps(SCHEMA), {"a": 5}, {"a": 5}),
    "text with blanks": ("\n  " + json.dumps(SCHEMA, indent=2), {"a": 5}, {"a": 5}),
    "constraint": (xs.json_schema(SCHEMA, layout="compact"), {"a": 5}, {"a": 5}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_typed_value_comes_back(name: str) -> None:
    """The value is an instance of the type, or plain data for a schema."""
    source, document, value = CASES[name]
    separators = (",", ":") if name == "constraint" else (", ", ": ")
    text = json.dumps(document, ensure_ascii=False, separators=separators)
    got = writer(text).generate_json(PROMPT, source)
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("dict", "union", "text with blanks")])
@pytest.mark.parametrize("seed", range(3))
def test_whatever_the_model_says_is_of_the_type(name: str, seed: int) -> None:
    """Under random logits every finished document validates."""
    source = CASES[name][0]
    constraint = source if isinstance(source, xs.Constraint) else xs.json_schema(source)
    model = stub_model(noisy(seed, scale=1.0))
    result = model.generate(PROMPT, constraint, temperature=1.0, seed=seed, max_new_tokens=500)
    if result.finish_reason == "stop":
        assert result.value is not None or name == "optional"


@pytest.mark.parametrize("as_text", [False, True])
def test_a_path_is_read(tmp_path: Path, as_text: bool) -> None:
    """A schema may be the path of a file, as Path or as text."""
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA), encoding="utf-8")
    assert writer('{"a": 5}').generate_json(PROMPT, str(path) if as_text else path) == {"a": 5}


@pytest.mark.parametrize(
    ("term", "text", "value"),
    [
        (outlines.types.JsonSchema(json.dumps(SCHEMA)), '{"a": 5}', {"a": 5}),
        (outlines.types.JsonSchema(Point), '{"x": 1, "y": 2}', {"x": 1, "y": 2}),
        (outlines.types.Regex("[a-c]{3}"), '"abc"', "abc"),
        (outlines.types.dsl.either("yes", "no"), '"no"', "no"),
    ],
    ids=["schema", "dataclass", "regex", "either"],
)
def test_an_outlines_term_is_understood(term: Any, text: str, value: Any) -> None:
    """Outlines terms give the value that they describe, as JSON."""
    assert writer(text).generate_json(PROMPT, term) == value


def test_an_outlines_cfg_is_refused_with_the_way() -> None:
    """A context-free grammar is no JSON Schema; the error names xs.lark."""
    with pytest.raises(SchemaError, match=r"xs\.lark"):
        xs.json_schema(outlines.types.CFG('start: "a"'))


@pytest.mark.parametrize(
    "source",
    [7, None.__class__.__name__, object(), "no such file.json", b"{}", [1, 2], "{'a': 1}"],
    ids=label,
)
def test_what_is_no_schema_is_a_schema_error(source: Any) -> None:
    """Neither schema nor type: a SchemaError that says so."""
    with pytest.raises(SchemaError):
        xs.json_schema(source)


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "strin"}, "/type"),
        ({"properties": {"a": {"type": 3}}}, "/properties/a/type"),
        ({"items": {"minimum": "x"}}, "/items/minimum"),
        ({"properties": {"a/b~": {"enum": 3}}}, "/properties/a~1b~0/enum"),
    ],
)
def test_a_malformed_schema_is_told_by_its_pointer(schema: dict, pointer: str) -> None:
    """The JSON pointer of the fault is in the error."""
    with pytest.raises(SchemaError) as caught:
        xs.json_schema(schema)
    assert caught.value.pointer == pointer
    assert pointer in str(caught.value)


class Even(BaseModel):
    n: Literal[1, 2, 3, 4]

    @field_validator("n")
    @classmethod
    def even(cls, n: int) -> int:
        if n % 2:
            raise ValueError("odd")
        return n


def test_validators_in_python_are_checked_after() -> None:
    """A type with code of its own says so, and its failures are drawn again."""
    constraint = xs.json_schema(Even)
    assert [item.keyword for item in constraint.checked_after] == ["pydantic"]
    model = stub_model(constant({ord("3"): 1.0}))
    result = model.generate(PROMPT, constraint, seed=1, max_retries=40)
    assert result.value.n in (2, 4)
    assert result.stats.retries >= 1
    assert writer('{"n": 2}').generate(PROMPT, constraint).stats.retries == 0


def test_a_check_that_always_fails_is_an_error() -> None:
    """When no attempt passes, the last text is in the error."""
    with pytest.raises(OutputValidationError) as caught:
        writer('{"n": 3}').generate(PROMPT, xs.json_schema(Even), max_retries=0)
    assert caught.value.text == '{"n": 3}'


def test_what_is_checked_after_streams_only_buffered() -> None:
    """Text that may have to be drawn again is streamed in one piece, on request."""
    model, constraint = writer('{"n": 2}'), xs.json_schema(Even)
    with pytest.raises(UnsupportedFeatureError, match="buffered=True"):
        model.stream(PROMPT, constraint)
    with model.stream(PROMPT, constraint, buffered=True) as stream:
        assert list(stream) == ['{"n": 2}']
    assert stream.result.value == Even(n=2)


@pytest.mark.parametrize("layout", ["tight", "", None])
def test_an_unknown_layout_is_refused(layout: Any) -> None:
    """A layout that does not exist is refused with the known ones."""
    with pytest.raises(ArgumentError, match="spaced"):
        xs.json_schema(SCHEMA, layout=layout)


@pytest.mark.parametrize(
    ("prefix", "fits"),
    [("{", True), ('{"a": ', True), ('{"a": 5', True), ('{"b', False), ("[", False), ("```", False)],
)
def test_a_prefix_is_part_of_the_value(prefix: str, fits: bool) -> None:
    """A prefix inside the schema's language is in the value; another is refused with its place."""
    model = stub_model(noisy(3))
    if not fits:
        with pytest.raises(ArgumentError, match=r"prefix does not fit.*character"):
            model.generate_json(PROMPT, {**SCHEMA}, prefix=prefix)
        return
    schema = {**SCHEMA, "properties": {"a": {"enum": [5, 57, 6]}}}
    value = model.generate_json(PROMPT, schema, prefix=prefix)
    assert value["a"] in (5, 57, 6)
    assert value["a"] != 6 or "5" not in prefix
