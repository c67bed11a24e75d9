"""What people pass as a schema: dict, JSON text, path, Python type, Outlines term -> JSON Schema."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from xpress_struct.constraints.json_schema.typed_dicts import readable_type
from xpress_struct.errors import SchemaError

__all__ = ["checks_more", "read_schema"]


def read_schema(source: Any) -> tuple[Any, TypeAdapter[Any] | None]:
    """The JSON Schema of a source, and the adapter that makes typed values (None for schemas).

    Args:
        source: a schema as a dict or bool, as JSON text, or the path of a file; a Pydantic model,
            dataclass, TypedDict, Enum, Literal or any other type that `pydantic.TypeAdapter` takes;
            a TypeAdapter; an Outlines term when Outlines is installed.

    Raises:
        SchemaError: it is none of these, or cannot be read or expressed.
    """
    if isinstance(source, (dict, bool)):
        return source, None
    if isinstance(source, (str, Path)):
        return _from_text(source), None
    term = _from_outlines(source)
    if term is not None:
        return term, None
    try:
        adapter = source if isinstance(source, TypeAdapter) else TypeAdapter(readable_type(source))
        return _closed(adapter.json_schema()), adapter
    except PydanticUserError as error:
        raise SchemaError(
            f"{source!r} is neither a JSON Schema (dict, JSON text, path) nor a type that pydantic "
            f"can describe: {error.message.splitlines()[0]}"
        ) from None


def _closed(schema: Any) -> Any:
    """The schema of a type with its objects closed: pydantic would drop keys that are not declared,
    so a model should not spend tokens on them. `extra="allow"` keeps them open."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {
        key: value if key in ("default", "const", "enum", "examples") else _closed(value)
        for key, value in schema.items()
    }
    if schema.get("type") == "object" and "properties" in schema:
        closed.setdefault("additionalProperties", False)
    return closed


def _from_text(source: str | Path) -> Any:
    text = str(source)
    if isinstance(source, Path) or not text.lstrip().startswith(("{", "true", "false")):
        try:
            text = Path(source).read_text(encoding="utf-8")
        except OSError as error:
            raise SchemaError(
                f"{str(source)[:80]!r} is neither JSON text of a schema nor a file that can be "
                f"read: {error.strerror or error}"
            ) from None
    try:
        schema = json.loads(text)
    except json.JSONDecodeError as error:
        raise SchemaError(
            f"The schema is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    if not isinstance(schema, (dict, bool)):
        raise SchemaError(f"A schema is an object or a boolean, not {type(schema).__name__}")
    return schema


def _from_outlines(source: Any) -> Any:
    """The schema of an Outlines term, or None when the source is none."""
    outlines_types = sys.modules.get("outlines.types.dsl")
    if outlines_types is None or not isinstance(source, outlines_types.Term):
        return None
    if isinstance(source, outlines_types.JsonSchema):
        return json.loads(source.schema)
    if isinstance(source, outlines_types.CFG):
        raise SchemaError("An Outlines CFG is not a JSON Schema; pass its grammar to xs.lark")
    return {"type": "string", "pattern": f"^(?:{outlines_types.to_regex(source)})$"}


# What pydantic validates just as its JSON Schema says. Whatever else is in a type (functions, URLs, encoded
# text, numbers with digits counted) is checked on the finished value.
_AS_THE_SCHEMA_SAYS = frozenset(
    (
        *("any", "none", "bool", "int", "float", "str", "bytes", "decimal", "uuid"),
        *("date", "time", "datetime", "timedelta", "enum", "literal", "nullable", "union", "tagged-union"),
        *("list", "tuple", "set", "frozenset", "dict", "model", "model-field", "model-fields"),
        *("dataclass", "dataclass-args", "dataclass-field", "typed-dict", "typed-dict-field"),
        *("named-tuple", "named-tuple-field", "arguments", "call"),
        *("default", "definitions", "definition-ref"),
    )
)
_NOT_SCHEMAS = ("metadata", "serialization", "config", "expected", "members", "default")


def checks_more(adapter: TypeAdapter[Any]) -> bool:
    """True when validating the type may refuse what its JSON Schema allows."""
    pending: list[Any] = [adapter.core_schema]
    seen: set[int] = set()
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, dict):
            kind = node.get("type")
            if isinstance(kind, str) and kind not in _AS_THE_SCHEMA_SAYS:
                return True
            if node.get("post_init") or node.get("max_digits") or node.get("decimal_places"):
                return True
            pending.extend(v for k, v in node.items() if k not in _NOT_SCHEMAS)
        elif isinstance(node, (list, tuple)):
            pending.extend(node)
    return False
