"""`tools`: functions, types and specs -> a constraint whose text is a call of one of them.

A call is one JSON object, `{"name": "weather", "arguments": {"city": "Rome"}}`, and an answer holds one call
or none. Where the model may also answer in text, the first character decides: `{` begins a call, any other
character that is not blank begins a text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.json_schema import json_schema
from xpress_struct.constraints.json_schema.types import checks_more
from xpress_struct.constraints.json_schema.unique_keys import Place, UniqueKeysMatcher
from xpress_struct.constraints.json_schema.values import TypeParser
from xpress_struct.constraints.matcher import GrammarMatcher
from xpress_struct.constraints.report import Checked
from xpress_struct.constraints.tools.note import tools_note
from xpress_struct.constraints.tools.reading import CallReader
from xpress_struct.constraints.tools.sources import as_tool
from xpress_struct.constraints.tools.tool import Tool, ToolCall
from xpress_struct.errors import ArgumentError

__all__ = ["tools"]

_CALL_OR_TEXT = "start: TEXT | @call\nTEXT: /[^\\{\\s](?s:.)*/"


def tools(sources: Sequence[Any], *, call: str = "required") -> Constraint:
    """A constraint: the text is a call of one of some tools.

    Args:
        sources: at least one, with distinct names: functions (annotated parameters and defaults, and the
            first paragraph of the docstring), Pydantic models and other classes that pydantic takes,
            OpenAI tool specs (of chat completions, or flat), or `xpress_struct.constraints.tools.Tool`.
        call: "required"; "auto" also takes a text that begins with neither `{` nor a blank; or the name of
            the tool to call.

    Returns:
        A constraint whose value is a `ToolCall` with validated arguments, or with "auto" the text when it is
        no call. `generate_json` tells the model of the tools; `generate` tells it nothing, and
        `Model.prompt_with_schema` is the way to do it there.

    Raises:
        ArgumentError: no tools, two of one name, what is no tool, or a parameter that cannot be told.
        SchemaError, UnsupportedFeatureError: the parameters cannot be honoured; the pointer begins with
            `/anyOf/<index of the tool>/properties/arguments`.
        CompileLimitError: they are too large.
    """
    if isinstance(sources, (str, bytes)) or not isinstance(sources, Sequence):
        raise ArgumentError(f"Tools are given as a list, not as {type(sources).__name__}.")
    given = [as_tool(source) for source in sources]
    names = [tool.name for tool in given]
    if not names:
        raise ArgumentError("There are no tools to call.")
    if len(set(names)) < len(names):
        raise ArgumentError(f"Two tools have the same name: {', '.join(names)}.")
    if call not in ("required", "auto"):
        given = [tool for tool in given if tool.name == call]
        if not given:
            raise ArgumentError(f"call={call!r}: it is 'required', 'auto', or one of {', '.join(names)}.")
    inner = json_schema({"anyOf": [_call_schema(tool, i) for i, tool in enumerate(given)]})
    grammar, matcher_class = inner.grammar, inner.matcher_class
    if call == "auto":
        grammar = _or_text(grammar)
        matcher_class = _CallOrTextMatcher if matcher_class is UniqueKeysMatcher else GrammarMatcher
    return Constraint(
        "tools",
        grammar,
        _Parser(given, inner, may_be_text=call == "auto"),
        enforced=inner.enforced,
        checked_after=(*inner.checked_after, *_own_code(given)),
        matcher_class=matcher_class,
        note=tools_note(given, must=call != "auto"),
    )


def _own_code(given: Sequence[Tool]) -> list[Checked]:
    return [
        Checked("pydantic", f"/anyOf/{i}/properties/arguments", "the type checks more than its schema says")
        for i, tool in enumerate(given)
        if tool.adapter is not None and checks_more(tool.adapter)
    ]


class _Parser:
    """Text of a call -> the call."""

    def __init__(self, given: Sequence[Tool], inner: Constraint, *, may_be_text: bool) -> None:
        self._tools = {tool.name: tool for tool in given}
        self._inner, self._may_be_text = inner, may_be_text

    def __call__(self, text: str) -> Any:
        if self._may_be_text and not text.startswith("{"):
            return text
        plain = self._inner.parse(text)
        tool = self._tools[plain["name"]]
        arguments = plain["arguments"]
        if tool.adapter is not None:
            # From their own text: a number may have more digits than the plain value keeps.
            reader = CallReader()
            reader.feed(text)
            arguments = TypeParser(tool.adapter)(reader.arguments)
        return ToolCall(tool.name, arguments, tool.function)


def _call_schema(tool: Tool, index: int) -> dict[str, Any]:
    # With an id of its own, its local references stay local.
    arguments = {"$id": f"urn:xpress-struct:tool:{index}", **tool.parameters}
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _or_text(grammar: str) -> str:
    """The engine's grammar of a call, with a text as the other choice."""
    (call,) = json.loads(grammar)["grammars"]
    return json.dumps({"grammars": [{"lark_grammar": _CALL_OR_TEXT}, {**call, "name": "call"}]})


# No place in JSON: nothing is escaped outside a string.
_IN_TEXT = Place(escaped=True)


class _CallOrTextMatcher(UniqueKeysMatcher):
    """Keys are unique in a call; in a text there is nothing to watch."""

    def _after(self, spelled: bytes) -> Place | None:
        place = self._places[-1]
        if place is _IN_TEXT or (place == Place() and spelled and not spelled.startswith(b"{")):
            return _IN_TEXT
        return super()._after(spelled)
