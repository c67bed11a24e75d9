"""`json_schema`: a schema or a Python type -> Constraint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import TypeAdapter

from xpress_struct.constraints.compiled import ByteCache
from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.json_schema.layout import Layout, check_layout, engine_grammar
from xpress_struct.constraints.json_schema.report import Rewritten
from xpress_struct.constraints.json_schema.rewrite import rewrite
from xpress_struct.constraints.json_schema.types import checks_more, read_schema
from xpress_struct.constraints.json_schema.unique_keys import UniqueKeysMatcher
from xpress_struct.constraints.json_schema.values import SchemaParser, TypeParser
from xpress_struct.constraints.matcher import GrammarMatcher
from xpress_struct.constraints.report import Checked
from xpress_struct.errors import UnsupportedFeatureError

__all__ = ["json_schema"]

_rewritten: ByteCache[tuple[Rewritten, str]] = ByteCache(64 << 20)


def json_schema(
    source: Any,
    *,
    layout: Layout = "spaced",
    key_order: Literal["declared", "any"] = "declared",
    formats: Literal["known", "ignore"] = "known",
    registry: Mapping[str, Any] | None = None,
    openapi: bool = False,
    strict: bool = False,
) -> Constraint:
    """A constraint: the text is a JSON document that fits a schema or a Python type.

    Args:
        source: a schema (dict, bool, JSON text, path) of drafts 4 to 2020-12, a Pydantic model,
            dataclass, TypedDict, Enum, Literal or any type that `pydantic.TypeAdapter` takes, or an
            Outlines term. Objects of types are closed unless the type says `extra="allow"`.
        layout: "spaced" (as `json.dumps` writes), "compact" (without blanks), "indented" (as with
            indent=2, up to 12 levels), or "flexible" (the model chooses blanks, within bounds).
        key_order: "declared" writes keys as declared; "any" allows every order, in small objects.
        formats: "known" enforces the formats that are known; "ignore" takes them as annotations.
        registry: documents that `$ref` may name, by URI.
        openapi: `nullable: true` also takes null.
        strict: refuse what can only be checked after generation.

    Returns:
        A constraint whose value is of the type, or plain Python data for a schema. What its mask does
        not enforce stands in `checked_after`.

    Raises:
        SchemaError: the schema is malformed or nothing satisfies it; with its JSON pointer.
        UnsupportedFeatureError: it cannot be enforced; with keyword and JSON pointer.
        CompileLimitError: it is too large.
    """
    check_layout(layout)
    schema, adapter = read_schema(source)
    parser = SchemaParser(schema, registry, formats) if adapter is None else TypeParser(adapter)
    text = json.dumps(schema)
    # A registry is not part of the key's text, so what it takes part in is not kept.
    key = None if registry else (text, layout, key_order, formats, openapi)
    found = None if key is None else _rewritten.get(key)
    if found is None:
        made = rewrite(schema, registry=registry, formats=formats, key_order=key_order, openapi=openapi)
        grammar = engine_grammar(made.schema, layout)
        found = (made, grammar)
        if key is not None:
            _rewritten.put(key, found, len(text) + len(grammar) + 1024)
    made, grammar = found
    checked = (*made.checked_after, *_own_code(adapter))
    if strict and checked:
        first = checked[0]
        raise UnsupportedFeatureError(
            f"strict=True, and {len(checked)} part(s) of the schema can only be checked after "
            f"generation; the first is {first.keyword!r}: {first.reason}",
            feature=first.keyword,
            pointer=first.pointer,
        )
    return Constraint(
        "json_schema",
        grammar,
        parser,
        schema=schema,
        enforced=made.enforced,
        checked_after=checked,
        matcher_class=UniqueKeysMatcher if made.open_keys else GrammarMatcher,
    )


def _own_code(adapter: TypeAdapter[Any] | None) -> tuple[Checked, ...]:
    if adapter is None or not checks_more(adapter):
        return ()
    return (Checked("pydantic", "", "the type checks more than its JSON Schema says"),)
