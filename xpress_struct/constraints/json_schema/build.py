"""`json_schema`: a schema or a Python type -> Constraint."""

from __future__ import annotations

import json
from typing import Any

from llguidance import LLMatcher

from xpress_struct.constraints.constraint import Checked, Constraint
from xpress_struct.constraints.json_schema.layout import Layout, engine_options
from xpress_struct.constraints.json_schema.types import read_schema, runs_own_code
from xpress_struct.constraints.json_schema.values import SchemaParser, TypeParser

__all__ = ["json_schema"]


def json_schema(source: Any, *, layout: Layout = "spaced") -> Constraint:
    """A constraint: the text is a JSON document that fits a schema or a Python type.

    Args:
        source: a schema (dict, bool, JSON text, path), a Pydantic model, dataclass, TypedDict, Enum,
            Literal or any type that `pydantic.TypeAdapter` takes, or an Outlines term.
        layout: "spaced" (as `json.dumps` writes), "compact", or "flexible" (bounded blanks).

    Returns:
        A constraint whose value is of the type, or plain Python data for a schema.

    Raises:
        SchemaError: the schema is malformed or nothing satisfies it; with its JSON pointer.
        UnsupportedFeatureError: it cannot be enforced; with keyword and JSON pointer.
        CompileLimitError: it is too large.
    """
    options = engine_options(layout)
    schema, adapter = read_schema(source)
    parser = SchemaParser(schema) if adapter is None else TypeParser(adapter)
    grammar = LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=options)
    own_code: tuple[Checked, ...] = ()
    if adapter is not None and runs_own_code(adapter):
        own_code = (Checked("pydantic", "", "validators in Python run on the finished value"),)
    return Constraint("json_schema", grammar, parser, schema=schema, checked_after=own_code)
