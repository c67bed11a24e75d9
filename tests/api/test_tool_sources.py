"""Tools from functions, types and specs: parameters, values, what is told, what is refused."""

from __future__ import annotations

import asyncio
import functools
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, field_validator

import xpress_struct as xs
from tests.api.tiny import CHATML, byte_level, says, scripted
from tests.cases.scripts import drafts, writer
from tests.stubs import ScriptedDrafter, prefers, stub_model
from xpress_struct.constraints.tools import Tool, ToolCall
from xpress_struct.constraints.tools.sources import as_tool
from xpress_struct.errors import ArgumentError, OutputValidationError, UnsupportedFeatureError


def weather(
    city: Annotated[str, Field(description="where")],
    unit: Literal["C", "F"] = "C",
    day: date | None = None,
) -> str:
    """Tells the weather
    of a place.

    More that the model need not know.
    """
    return f"{city} {unit} {day!r}"


class Search(BaseModel):
    """Looks something up."""

    query: str
    limit: Annotated[int, Field(ge=1, le=9)] = 3


class Node(BaseModel):
    """A tree."""

    value: int
    children: list[Node] = []


CHAT_SPEC = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds.",
        "strict": True,
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    },
}
FLAT_SPEC = {"type": "function", **CHAT_SPEC["function"], "name": "add_flat"}
ALL = [weather, Search, CHAT_SPEC, FLAT_SPEC, Tool("stop"), Node]


def answer(name: str, arguments: str) -> str:
    return f'{{"name": "{name}", "arguments": {arguments}}}'


def test_a_function_says_its_parameters() -> None:
    """Types, defaults, descriptions and the first paragraph of the docstring make the tool."""
    tool = as_tool(weather)
    assert (tool.name, tool.description) == ("weather", "Tells the weather of a place.")
    schema = tool.parameters
    assert schema["required"] == ["city"] and schema["additionalProperties"] is False
    assert schema["properties"]["city"]["description"] == "where"
    unit = schema["properties"]["unit"]
    assert unit["default"] == "C" and unit["enum"] == ["C", "F"]


def test_the_value_of_a_function_runs() -> None:
    """Arguments have the types of the annotations; what was left out is the function's default."""
    constraint = xs.tools(ALL)
    call = constraint.parse(answer("weather", '{"city": "Rome", "day": "2024-05-01"}'))
    assert call == ToolCall("weather", {"city": "Rome", "day": date(2024, 5, 1)})
    assert call.run() == "Rome C datetime.date(2024, 5, 1)"


def test_the_value_of_a_type_is_an_instance() -> None:
    """A Pydantic model becomes an instance with its defaults, a recursive one too, and has nothing to run."""
    constraint = xs.tools(ALL)
    call = constraint.parse(answer("Search", '{"query": "x"}'))
    assert call.arguments == Search(query="x")
    with pytest.raises(ArgumentError, match="not given as a function"):
        call.run()
    tree = constraint.parse(answer("Node", '{"value": 1, "children": [{"value": 2}]}')).arguments
    assert tree.children[0] == Node(value=2)


@pytest.mark.parametrize("name", ["add", "add_flat"])
def test_specs_give_plain_data(name: str) -> None:
    """Both of OpenAI's spellings of a tool are read; arguments are a dict."""
    call = xs.tools(ALL).parse(answer(name, '{"a": 3}'))
    assert (call.name, call.arguments) == (name, {"a": 3})


def test_methods_coroutines_and_exact_numbers() -> None:
    """Bound methods leave out self, a coroutine is returned, a Decimal keeps its digits."""

    class Bank:
        def pay(self, amount: Decimal) -> Decimal:
            return amount

    async def later(x: int) -> int:
        return x + 1

    constraint = xs.tools([Bank().pay, later])
    assert str(constraint.parse(answer("pay", '{"amount": "0.10000000000000000001"}')).run()) == (
        "0.10000000000000000001"
    )
    assert asyncio.run(constraint.parse(answer("later", '{"x": 1}')).run()) == 2


@pytest.mark.parametrize("name", ["weather", "Search", "stop"])
def test_one_tool_by_name(name: str) -> None:
    """call=<name> leaves that tool alone."""
    constraint = xs.tools(ALL, call=name)
    assert f'"name": "{name}"' in constraint.note and constraint.note.count('"name": "') == 1
    assert constraint.accepts(answer("stop", "{}")) is (name == "stop")


@pytest.mark.parametrize("drafter", [None, drafts('"arguments": {'), "lookup"])
@pytest.mark.parametrize("call", ["required", "auto", "Search"])
def test_a_call_is_generated(call: str, drafter: object) -> None:
    """The value of a generation is the call, with drafts or without."""
    text = answer("Search", '{"query": "x", "limit": 4}')
    result = writer(text, drafter).generate([1], xs.tools(ALL, call=call))
    assert result.value == ToolCall("Search", Search(query="x", limit=4))


def test_text_instead_of_a_call() -> None:
    """With "auto", a text is the value; a call is streamed as it comes."""
    auto = xs.tools(ALL, call="auto")
    assert writer("None needed.").generate([1], auto).value == "None needed."
    text = answer("stop", "{}")
    model = writer(text, ScriptedDrafter(lambda output: list(text.encode()[len(output) :])))
    with model.stream([1], auto) as s:
        assert "".join(s) == text
    assert s.result.value == ToolCall("stop", {})


def test_a_call_behind_thoughts() -> None:
    """Thoughts with braces in them, then the call."""
    text = answer("stop", "{}")
    model = stub_model(prefers(f"{{hm}}</think>\n\n{text}", 1 + len("<think>\n")))
    result = model.generate([1], xs.tools(ALL, call="auto"), thinking=True)
    assert (result.thinking, result.value) == ("{hm}", ToolCall("stop", {}))


def test_checks_in_python_are_told_and_made() -> None:
    """A validator of a type stands in checked_after with the tool's place; streams are refused."""

    class Even(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def even(cls, n: int) -> int:
            if n % 2:
                raise ValueError("odd")
            return n

    constraint = xs.tools([weather, Even])
    (checked,) = constraint.checked_after
    assert (checked.keyword, checked.pointer) == ("pydantic", "/anyOf/1/properties/arguments")
    with pytest.raises(OutputValidationError, match="odd"):
        constraint.parse(answer("Even", '{"n": 3}'))
    with pytest.raises(UnsupportedFeatureError):
        writer("x").stream([1], constraint)
    assert xs.tools(ALL).checked_after == ()


def test_the_model_is_told_by_generate_json() -> None:
    """generate_json tells the tools in the system message and returns the call; generate tells nothing."""
    tokenizer = byte_level(CHATML)
    constraint = xs.tools([weather])
    text = answer("weather", '{"city": "Rome"}')
    told = xs.Model.prompt_with_schema(scripted(tokenizer, lambda prefix: [0.0]), "Rome?", constraint)
    assert told[0] == {"role": "system", "content": constraint.note}
    assert told[1] == {"role": "user", "content": "Rome?"}
    plain = tokenizer.apply_chat_template(told[1:], add_generation_prompt=True)["input_ids"]
    length = len(tokenizer.apply_chat_template(told, add_generation_prompt=True)["input_ids"])
    model = scripted(tokenizer, says(tokenizer, text, length))
    assert model.generate_json("Rome?", constraint).run() == "Rome C None"
    assert constraint.note.split("\n")[0].encode() in bytes(i for i in model.target.seen[0][0] if i < 256)
    model.target.seen.clear()
    model.generate("Rome?", xs.tools(ALL), max_new_tokens=20)
    assert model.target.seen[0][0][: len(plain)] == plain


def no_annotation(a, b: int = 1) -> None: ...
def positional(a: int, /) -> None: ...
def several(*a: int) -> None: ...
def named(**a: int) -> None: ...
def unknown(a: Nowhere) -> None: ...  # noqa: F821
def opaque(a: ScriptedDrafter) -> None: ...


@pytest.mark.parametrize(
    ("sources", "about"),
    [
        ([no_annotation], "'a'.*no annotation"),
        ([positional], "positional-only"),
        ([several], "variadic positional"),
        ([named], "variadic keyword"),
        ([unknown], "Nowhere"),
        ([opaque], "'opaque'.*JSON"),
        ([lambda: None], "<lambda>"),
        ([functools.partial(weather, "Rome")], "no name"),
        ([3], "no tool"),
        ([int], "object"),
        ([{"type": "web_search"}], "web_search"),
        ([{"type": "function", "function": {"description": "x"}}], "no name"),
        ([{"name": "f", "input_schema": {}}], "input_schema"),
        ([weather, weather], "same name"),
        ([], "no tools"),
        (weather, "list"),
        ("weather", "list"),
    ],
)
def test_what_is_no_tool_is_refused(sources: object, about: str) -> None:
    """Each is an error of ours that says what is wrong."""
    with pytest.raises(ArgumentError, match=about):
        xs.tools(sources)


def test_an_unknown_call_is_refused() -> None:
    """call= names a tool, or one of two ways."""
    with pytest.raises(ArgumentError, match="'required', 'auto', or one of weather"):
        xs.tools([weather], call="sunshine")
