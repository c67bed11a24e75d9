"""Tools: the constraint of a call, how an answer is read, and how conversations are told."""

from __future__ import annotations

import pytest

import xpress_struct as xs
from tests.stubs import prefers, stub_model
from xpress_struct.constraints.tools import CallReader, Tool, ToolCall
from xpress_struct.errors import ArgumentError, SchemaError
from xpress_struct.messages import plain_messages

PLACE = {
    "type": "object",
    "properties": {"at": {"$ref": "#/$defs/Place"}},
    "required": ["at"],
    "additionalProperties": False,
    "$defs": {"Place": {"enum": ["here", "there"]}},
}
COUNT = {
    "type": "object",
    "properties": {"at": {"$ref": "#/$defs/Place"}},
    "required": ["at"],
    "$defs": {"Place": {"type": "integer"}},
}
TOOLS = [Tool("go", "Walks.", PLACE), Tool("count", "", COUNT), Tool("stop")]
GO = '{"name": "go", "arguments": {"at": "here"}}'


@pytest.mark.parametrize("call", ["required", "auto"])
@pytest.mark.parametrize(
    ("text", "legal"),
    [
        (GO, True),
        ('{"name": "count", "arguments": {"at": 3}}', True),
        ('{"name": "count", "arguments": {"at": 3, "more": [1]}}', True),
        ('{"name": "stop", "arguments": {}}', True),
        ('{"name": "go", "arguments": {"at": 3}}', False),
        ('{"name": "count", "arguments": {"at": "here"}}', False),
        ('{"name": "stop", "arguments": {"a": 1}}', False),
        ('{"name": "run", "arguments": {}}', False),
        (GO + " ", False),
        ("", False),
    ],
)
def test_a_call_fits_its_own_tool(call, text, legal):
    """Arguments follow the schema of the tool that is named, with its own definitions."""
    assert xs.tools(TOOLS, call=call).accepts(text) is legal


def test_auto_takes_text_that_is_no_call():
    """Text that does not begin like a call is free; required takes none."""
    auto, required = xs.tools(TOOLS, call="auto"), xs.tools(TOOLS)
    for text in ("Hello.", 'See {"a": 1, "a": 1}', '"{"', "[1]"):
        assert auto.accepts(text) and not required.accepts(text)
        assert auto.parse(text) == text
        assert stub_model(prefers(text)).generate([1], auto).value == text
    assert not auto.accepts(' {"name": "run"}')


def test_keys_of_a_call_are_unique():
    """Where arguments are open, no key stands twice, with "auto" too."""
    wanted = '{"name": "count", "arguments": {"at": 3, "at": 4}}'
    for call in ("auto", "required"):
        text = stub_model(prefers(wanted)).generate([1], xs.tools(TOOLS, call=call)).text
        assert text.startswith('{"name": "count", "arguments": {"at": 3') and text.count('"at"') == 1


def test_the_value_is_the_call():
    """A call is read into its name and arguments."""
    for call in ("auto", "required"):
        assert xs.tools(TOOLS, call=call).parse(GO) == ToolCall("go", {"at": "here"})


@pytest.mark.parametrize("size", [1, 5, 100])
@pytest.mark.parametrize(
    ("text", "complete", "read"),
    [
        (GO, True, ("go", "", '{"at": "here"}')),
        (GO[:-2], False, ("go", "", '{"at": "here"')),
        (GO[:9], False, (None, GO[:9], "")),
        ("Well {", True, (None, "Well {", "")),
        ("", False, (None, "", "")),
    ],
)
def test_an_answer_is_read_in_pieces(size, text, complete, read):
    """Text, name and arguments come out alike, in pieces of any size, of whole and cut answers."""
    reader = CallReader()
    for start in range(0, len(text), size):
        reader.feed(text[start : start + size])
        assert read[1].startswith(reader.content) and read[2].startswith(reader.arguments)
    reader.finish(complete=complete)
    assert (reader.name, reader.content, reader.arguments) == read


@pytest.mark.parametrize(
    "tools",
    [
        lambda: [Tool("a b")],
        lambda: [Tool("f", "", {"properties": {}})],
        lambda: [Tool("f", "", [])],
        list,
        lambda: [Tool("f"), Tool("f")],
    ],
    ids=["name", "no type", "list", "none", "twice"],
)
def test_what_is_no_tool_is_refused(tools):
    """A bad name, parameters that are no object, no tools, two alike: each is an error."""
    with pytest.raises(ArgumentError):
        xs.tools(tools())


def test_a_bad_schema_names_its_tool():
    """The pointer of a schema's error leads to the tool."""
    bad = Tool("f", "", {"type": "object", "properties": {"a": {"$ref": "#/$defs/no"}}})
    with pytest.raises(SchemaError) as caught:
        xs.tools([TOOLS[0], bad])
    assert caught.value.pointer.startswith("/anyOf/1/properties/arguments")


def test_messages_become_text():
    """Calls and results are told in text, in the form that the constraint asks for."""
    call = {"id": "c1", "type": "function", "function": {"name": "go", "arguments": '{"at": "here"}'}}
    told = plain_messages(
        [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
            {"role": "user", "content": "And?", "name": "Bo"},
        ],
        "NOTE",
    )
    assert told == [
        {"role": "system", "content": "Be brief.\n\nNOTE"},
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": GO},
        {"role": "user", "content": "Result of go: done"},
        {"role": "user", "content": "And?", "name": "Bo"},
    ]
    assert plain_messages([{"role": "user", "content": "Q"}], "NOTE")[0]["role"] == "system"


def test_the_note_lists_every_tool():
    """The note names each tool, with description and parameters."""
    for call in ("auto", "required"):
        note = xs.tools(TOOLS, call=call).note
        assert all(f'"name": "{tool.name}"' in note for tool in TOOLS)
        assert "Walks." in note and '"enum": ["here", "there"]' in note
    assert "plain text" in xs.tools(TOOLS, call="auto").note
