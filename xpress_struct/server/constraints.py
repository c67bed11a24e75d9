"""The constraint of a request.

Texts from the network are texts: they never name a file, a module or an address. A spec is what a constraint
is made of, as JSON: [kind, source].
"""

from __future__ import annotations

import re
from typing import Any

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.json_schema import json_schema
from xpress_struct.constraints.lark import lark
from xpress_struct.constraints.lark.shipped import shipped_grammars
from xpress_struct.constraints.regex import choice, regex
from xpress_struct.constraints.tools import Tool, tools
from xpress_struct.errors import GrammarError, UnsupportedFeatureError
from xpress_struct.server.bodies import parse_json
from xpress_struct.server.errors import RequestError
from xpress_struct.server.requests import Request, ResponseFormat, StructuredOutputs, ToolSpec

__all__ = ["Spec", "build", "from_package", "spec_of", "tool_of"]

Spec = tuple[str, Any]

# A relative import reads a file beside the main module. Refused wherever it stands, in a comment too.
_RELATIVE_IMPORT = re.compile(r"%import[\s\\]*\.")


def spec_of(asked: Request, max_depth: int) -> tuple[Spec | None, str | None]:
    """What constrains the answer of a request that calls no tool, and the field that says so.

    Raises:
        RequestError: it says two things, or half of one.
    """
    by_format = _of_format(asked.response_format)
    structured = asked.structured_outputs
    if structured is None:
        return by_format, "response_format" if by_format else None
    if by_format is not None:
        raise RequestError(
            "response_format and structured_outputs both ask for a structure; give one.",
            param="structured_outputs",
        )
    return _of_structured(structured, max_depth)


def _of_format(given: ResponseFormat | None) -> Spec | None:
    if given is None or given.type == "text":
        return None
    if given.type == "json_object":
        return "json_schema", {"type": "object"}
    if given.json_schema is None:
        raise RequestError("response_format.json_schema is missing.", param="response_format.json_schema")
    schema, about = given.json_schema.schema_, given.json_schema.description
    if about and isinstance(schema, dict):
        schema = {"description": about, **schema}
    return "json_schema", schema


def _of_structured(given: StructuredOutputs, max_depth: int) -> tuple[Spec, str]:
    kinds = {"json": given.json_, "regex": given.regex, "choice": given.choice, "grammar": given.grammar}
    asked = {name: value for name, value in kinds.items() if value is not None}
    if len(asked) != 1:
        raise RequestError(
            f"structured_outputs takes exactly one of {', '.join(kinds)}.", param="structured_outputs"
        )
    ((name, value),) = asked.items()
    param = f"structured_outputs.{name}"
    if name == "json" and isinstance(value, str):
        value = parse_json(value, max_depth, param)
        if not isinstance(value, (dict, bool)):
            raise RequestError(f"{param} is not a JSON Schema.", param=param, code="invalid_json_schema")
    return ("json_schema" if name == "json" else name, value), param


def tool_of(given: ToolSpec) -> Tool:
    """A tool from a request.

    Raises:
        ArgumentError: the name or the parameters are none.
    """
    function = given.function
    if function.parameters is None:
        return Tool(function.name, function.description or "")
    return Tool(function.name, function.description or "", function.parameters)


def build(spec: Spec) -> Constraint:
    """Compiles a spec.

    Raises:
        SchemaError, GrammarError, UnsupportedFeatureError, CompileLimitError, ArgumentError: it cannot be.
    """
    kind, source = spec
    if kind == "json_schema":
        return json_schema(source)
    if kind == "regex":
        return regex(source)
    if kind == "choice":
        return choice(source)
    if kind == "tools":
        given, call = source
        return tools([Tool(*tool) for tool in given], call=call)
    assert kind == "grammar"
    return _grammar(source)


def from_package(spec: Spec) -> bool:
    """True for a grammar that comes with the package, named rather than written out."""
    return spec[0] == "grammar" and spec[1] in shipped_grammars()


def _grammar(text: str) -> Constraint:
    if _RELATIVE_IMPORT.search(text):
        raise UnsupportedFeatureError(
            "The grammar imports from a file; only lark's own (%import common.NUMBER) are served.",
            feature="%import",
        )
    # One line without a rule would be read as the name of a file.
    if text not in shipped_grammars() and "\n" not in text and ":" not in text:
        known = ", ".join(sorted(shipped_grammars()))
        raise GrammarError(f"The grammar has no rule, and is none of those that come with us: {known}.")
    return lark(text)
