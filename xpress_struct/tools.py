"""Tools: functions that a model may call -> a note for the prompt, a constraint, and the call itself.

A call is one JSON object, `{"name": "weather", "arguments": {"city": "Rome"}}`, and an answer holds one call
or none. Where the model may also answer in text, the first character decides: `{` begins a call, any other
character that is not blank begins a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.json_schema import json_schema
from xpress_struct.constraints.json_schema.unique_keys import Place, UniqueKeysMatcher
from xpress_struct.constraints.matcher import GrammarMatcher
from xpress_struct.errors import ArgumentError

__all__ = ["CallReader", "Tool", "ToolCall", "plain_messages", "tools_constraint", "tools_note"]

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_HEADER = re.compile(r'\{"name": "([^"]+)", "arguments": ')
_CALL_OR_TEXT = "start: TEXT | @call\nTEXT: /[^\\{\\s](?s:.)*/"


@dataclass(frozen=True)
class Tool:
    """A function that the model may call.

    Attributes:
        name: letters, digits, `_`, `.` and `-`; at most 64.
        description: for the model.
        parameters: JSON Schema of the arguments, of type "object".

    Raises:
        ArgumentError: the name or the parameters are none.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(
        default_factory=lambda: {"type": "object", "properties": {}, "additionalProperties": False}
    )

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ArgumentError(
                f"The tool name {self.name!r} is not 1 to 64 letters, digits, '_', '.' and '-'."
            )
        if not isinstance(self.parameters, Mapping) or self.parameters.get("type") != "object":
            raise ArgumentError(
                f"The parameters of the tool {self.name!r} must be a JSON Schema with "
                '"type": "object" at its root.'
            )


@dataclass(frozen=True)
class ToolCall:
    """A call: the tool's name and its arguments."""

    name: str
    arguments: dict[str, Any]


def tools_constraint(tools: Sequence[Tool], *, call: Literal["required", "auto"] = "required") -> Constraint:
    """A constraint: the text is a call of one of the tools.

    Args:
        tools: at least one; names are distinct.
        call: "auto" also takes a text that begins with neither `{` nor a blank.

    Returns:
        A constraint whose value is a `ToolCall`, or with "auto" the text when it is no call.

    Raises:
        ArgumentError: no tools, or two of one name.
        SchemaError, UnsupportedFeatureError: the parameters cannot be honoured; the pointer begins with
            `/anyOf/<index of the tool>/properties/arguments`.
        CompileLimitError: they are too large.
    """
    names = [tool.name for tool in tools]
    if not names:
        raise ArgumentError("There are no tools to call.")
    if len(set(names)) < len(names):
        raise ArgumentError(f"Two tools have the same name: {', '.join(names)}.")
    inner = json_schema({"anyOf": [_call_schema(tool, i) for i, tool in enumerate(tools)]})

    def parse(text: str) -> Any:
        if call == "auto" and not text.startswith("{"):
            return text
        return ToolCall(**inner.parse(text))

    grammar, matcher_class = inner.grammar, inner.matcher_class
    if call == "auto":
        grammar = _or_text(grammar)
        matcher_class = _CallOrTextMatcher if matcher_class is UniqueKeysMatcher else GrammarMatcher
    return Constraint(
        "json_schema",
        grammar,
        parse,
        enforced=inner.enforced,
        checked_after=inner.checked_after,
        matcher_class=matcher_class,
    )


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


class CallReader:
    """Splits an answer into text, or name and arguments of a call, while it comes.

    Attributes:
        name: of the tool that is called, once it is known.
        content: the text so far.
        arguments: JSON text of the arguments so far.
    """

    def __init__(self) -> None:
        self.name: str | None = None
        self.content = self.arguments = ""
        self._unread = ""

    def feed(self, piece: str) -> None:
        """Reads on."""
        self._unread += piece
        if not self._unread:
            return
        if self.name is None and (self.content or not self._unread.startswith("{")):
            self.content, self._unread = self.content + self._unread, ""
            return
        if self.name is None and (header := _HEADER.match(self._unread)):
            self.name, self._unread = header[1], self._unread[header.end() :]
        if self.name is not None:
            # The brace that closes the call is none of the arguments', so the last character waits.
            self.arguments, self._unread = self.arguments + self._unread[:-1], self._unread[-1:]

    def finish(self, *, complete: bool) -> None:
        """Reads what waited: of an answer that was cut, it belongs to what was begun."""
        if self.name is None:
            self.content, self._unread = self.content + self._unread, ""
        elif not complete:
            self.arguments, self._unread = self.arguments + self._unread, ""


def tools_note(tools: Sequence[Tool], *, call: Literal["required", "auto"] = "required") -> str:
    """What a model is told about tools: the system message, or a part of it."""
    listed = "\n".join(
        json.dumps(
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            ensure_ascii=False,
        )
        for tool in tools
    )
    how = 'one JSON object and nothing else: {"name": <name>, "arguments": {<arguments>}}'
    if call == "required":
        return f"Call one of these functions. Answer with {how}\n{listed}"
    return (
        f"You may call one of these functions. To call one, answer with {how}\n{listed}\n"
        "When no call is needed, answer in plain text."
    )


def plain_messages(messages: Sequence[Mapping[str, Any]], note: str = "") -> list[dict[str, Any]]:
    """Chat messages in the form of OpenAI -> messages of text alone, which every chat template takes.

    Args:
        messages: an assistant's `tool_calls` become the text of the call, and messages of the role "tool" the
            user's; a "developer" is the system.
        note: goes into the system message, or becomes it.
    """
    plain: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for message in messages:
        role, content = message["role"], message.get("content") or ""
        kept = {"name": message["name"]} if message.get("name") else {}
        for call in message.get("tool_calls") or ():
            function = call["function"]
            names[call["id"]] = function["name"]
            name, arguments = json.dumps(function["name"]), function["arguments"]
            content += f'{{"name": {name}, "arguments": {arguments}}}'
        if role == "tool":
            called = names.get(message["tool_call_id"], message["tool_call_id"])
            role, content = "user", f"Result of {called}: {content}"
            if plain and plain[-1].get("role") == "user":
                plain[-1]["content"] += f"\n{content}"
                continue
        role = "system" if role == "developer" else role
        plain.append({"role": role, "content": content, **kept})
    if note and plain and plain[0]["role"] == "system":
        plain[0]["content"] += f"\n\n{note}"
    elif note:
        plain.insert(0, {"role": "system", "content": note})
    return plain
