"""B1 to B5: the token budget, long strings, and runs that a model would never end."""

from __future__ import annotations

import json
import re

import pytest

import xpress_struct as xs
from tests.cases.scripts import PROMPT, wants_text, writer
from tests.stubs import stub_model
from xpress_struct.errors import IncompleteOutputError

AGE = {
    "type": "object",
    "properties": {"age": {"type": "integer"}, "description": {"type": "string"}},
    "required": ["age", "description"],
    "additionalProperties": False,
}


def obj(**properties: object) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@pytest.mark.parametrize("budget", [1, 2, 12, 30, 200])
def test_b01_a_cut_document_has_text_but_no_value(budget: int) -> None:
    """A document that the budget cuts is "length"; its value raises with the partial text."""
    wanted = '{"age": 4, "description": "' + "word " * 100
    result = writer(wanted).generate(PROMPT, xs.json_schema(AGE), max_new_tokens=budget)
    assert result.finish_reason == "length"
    assert result.text == wanted[:budget]
    assert len(result.token_ids) == budget == result.stats.output_tokens
    with pytest.raises(IncompleteOutputError) as caught:
        _ = result.value
    assert caught.value.text == result.text
    assert caught.value.token_ids == result.token_ids
    assert caught.value.finish_reason == "length"
    assert "max_new_tokens" in str(caught.value)


@pytest.mark.parametrize(
    ("wanted", "constraint"),
    [
        ('"aaaaaaaaaaaaaaaaaaaa', xs.json_schema({"type": "string"})),
        ("[1, 1, 1, 1, 1, 1, 1, 1", xs.json_schema({"type": "array", "items": {"type": "integer"}})),
        ("abababababababababab", xs.regex("(ab)+c")),
        ("a long option", xs.choice(["a long option of the list", "b"])),
        ("((((((((((((((((((((", xs.lark('start: "(" start ")" | "x"')),
    ],
)
def test_b01_every_kind_of_constraint_is_cut_loudly(wanted: str, constraint: object) -> None:
    """Whatever the constraint, no half text passes for a value."""
    result = writer(wanted).generate(PROMPT, constraint, max_new_tokens=8)
    assert (result.finish_reason, result.text) == ("length", wanted[:8])
    with pytest.raises(IncompleteOutputError):
        _ = result.value


def test_b01_generate_json_raises_when_cut() -> None:
    """generate_json never returns a half document."""
    with pytest.raises(IncompleteOutputError) as caught:
        writer('{"age": 4, "description": "aaaaaaaaaaaaaaaaaaaa').generate_json(
            PROMPT, AGE, max_new_tokens=30
        )
    assert caught.value.text == '{"age": 4, "description": "aaa'


@pytest.mark.parametrize("spare", [0, 1, 5])
def test_b01_a_document_that_ends_with_the_budget_is_whole(spare: int) -> None:
    """When the last budgeted token completes the document, it has its value."""
    wanted = '{"age": 4, "description": "x"}'
    result = writer(wanted).generate(PROMPT, xs.json_schema(AGE), max_new_tokens=len(wanted) + spare)
    assert (result.finish_reason, result.text) == ("stop", wanted)
    assert result.value == {"age": 4, "description": "x"}


@pytest.mark.parametrize("value", ["507f1f77bcf86cd799439011", "a" * 300, "é漢🙂" * 20, 'q"\\\n\t' * 10, ""])
def test_b02_strings_are_not_cut(value: str) -> None:
    """A string comes out at the length that the model gives it."""
    wanted = json.dumps({"objectid": value}, ensure_ascii=False)
    schema = obj(objectid={"type": "string"})
    assert writer(wanted).generate_json(PROMPT, schema) == {"objectid": value}


@pytest.mark.parametrize("blank", ["\t", " ", "\r", "\n"])
@pytest.mark.parametrize(
    "schema",
    [
        obj(a={"type": "boolean"}),
        obj(a={"enum": ["x", "y"]}),
        {"type": "array", "items": {"type": "null"}, "maxItems": 2},
        obj(),
    ],
    ids=["boolean", "enum", "array", "empty"],
)
def test_b03_one_blank_at_most_where_blanks_are_free(blank: str, schema: dict) -> None:
    """A model that loves a blank gets one between tokens in the flexible layout, and ends."""
    model = stub_model(wants_text(blank, *'}]{["alsetru:,xn'))
    result = model.generate(PROMPT, xs.json_schema(schema, layout="flexible"), max_new_tokens=60)
    assert result.finish_reason == "stop"
    assert len(result.token_ids) < 30
    assert re.search(r"[ \t\r\n]{3}", result.text) is None
    assert isinstance(result.value, (dict, list))


@pytest.mark.parametrize("blank", ["\t", " "])
def test_b03_an_integer_field_ends_in_thirty_tokens(blank: str) -> None:
    """The case as reported: {"a": int} under a model that wants blanks only."""
    model = stub_model(wants_text(blank))
    constraint = xs.json_schema(obj(a={"type": "integer"}), layout="flexible")
    result = model.generate(PROMPT, constraint, max_new_tokens=60)
    assert result.finish_reason == "stop"
    assert len(result.token_ids) < 30
    assert isinstance(result.value["a"], int)


def test_b03_line_breaks_with_deep_indentation_are_bounded() -> None:
    """Even a model that breaks lines and indents forever is held to a bounded run of blanks."""
    model = stub_model(wants_text("\n", " "))
    constraint = xs.json_schema(obj(a={"type": "boolean"}), layout="flexible")
    result = model.generate(PROMPT, constraint, max_new_tokens=400)
    assert result.finish_reason == "stop"
    assert max(map(len, re.findall(r"\s+", result.text))) <= 26


@pytest.mark.parametrize("layout", ["spaced", "compact", "indented"])
@pytest.mark.parametrize("blank", ["\t", " ", "\n", "\r"])
def test_b03_fixed_layouts_leave_no_blank_to_the_model(layout: str, blank: str) -> None:
    """The default and the compact layout are those of json.dumps, whatever the model likes."""
    model = stub_model(wants_text(blank, "}"))
    schema = obj(a={"type": "boolean"}, b=obj(c={"type": "null"}))
    text = model.generate(PROMPT, xs.json_schema(schema, layout=layout), max_new_tokens=60).text
    style = {
        "spaced": {},
        "compact": {"separators": (",", ":")},
        "indented": {"indent": 2},
    }[layout]
    assert text == json.dumps(json.loads(text), **style)


@pytest.mark.parametrize("digits", ["0", "1", "9", "10", ".5", "e9", "-1", "1.e+"])
@pytest.mark.parametrize("kind", ["integer", "number"])
@pytest.mark.parametrize("place", ["root", "field", "array"])
def test_b04_digits_end(digits: str, kind: str, place: str) -> None:
    """A model that never stops writing digits still ends, with a number that parses."""
    number = {"type": kind}
    schema = {
        "root": number,
        "field": obj(strength=number),
        "array": {"type": "array", "items": number, "maxItems": 1},
    }[place]
    model = stub_model(wants_text(*digits))
    result = model.generate(PROMPT, xs.json_schema(schema), max_new_tokens=60)
    assert result.finish_reason == "stop", result.text
    assert result.value is not None
    assert max(map(len, re.findall(r"\d+", result.text)), default=0) <= 19


@pytest.mark.parametrize("budget", [20, 64, 301])
@pytest.mark.parametrize(("items", "once"), [({"type": "string"}, '"a", '), ({"type": "integer"}, "1, ")])
def test_b05_an_endless_array_stops_at_the_budget(budget: int, items: dict, once: str) -> None:
    """Items that repeat forever end with the budget, and loudly."""
    schema = obj(results={"type": "array", "items": items})
    wanted = '{"results": [' + once * 200
    result = writer(wanted).generate(PROMPT, xs.json_schema(schema), max_new_tokens=budget)
    assert result.finish_reason == "length"
    assert result.text == wanted[:budget]
    with pytest.raises(IncompleteOutputError):
        _ = result.value


@pytest.mark.parametrize(("least", "most"), [(0, 1), (0, 4), (3, 3), (2, 17)])
def test_b05_max_items_closes_the_array(least: int, most: int) -> None:
    """With maxItems the array closes at the bound."""
    array = {"type": "array", "items": {"type": "string"}, "minItems": least, "maxItems": most}

    def logits(prefix: tuple[int, ...]) -> list[float]:
        row = [0.0] * 257
        end = bytes(prefix[-1:])
        row[ord({b",": " ", b" ": '"', b"a": '"', b'"': "a", b"[": '"'}.get(end, ","))] = 5.0
        if bytes(prefix[-2:]) == b'a"':
            row[ord(",")] = 9.0
        row[ord("]")] = 1.0
        return row

    model = stub_model(logits)
    value = model.generate_json(PROMPT, obj(results=array), max_new_tokens=200)
    assert value == {"results": ["a"] * most}
