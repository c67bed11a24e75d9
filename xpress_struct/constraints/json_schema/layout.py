"""How a JSON document is laid out: separators and blanks, for the engine and for people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, get_args

from llguidance import LLMatcher

from xpress_struct.constraints.json_schema.indented import indented_grammar
from xpress_struct.errors import ArgumentError

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions

__all__ = ["LAYOUTS", "Layout", "check_layout", "engine_grammar"]

Layout = Literal["spaced", "compact", "indented", "flexible"]
LAYOUTS: tuple[str, ...] = get_args(Layout)

# At most one blank between tokens, or a line break with its indentation: no run of blanks is endless.
_BLANKS = r"[ \t\r]|\r?\n[ \t]{0,24}"

_OPTIONS: dict[str, JsonCompileOptions] = {
    "spaced": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "},
    "compact": {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"},
    "flexible": {"whitespace_flexible": True, "whitespace_pattern": _BLANKS},
}


def check_layout(layout: str) -> None:
    """Raises ArgumentError when there is no such layout."""
    if layout not in LAYOUTS:
        known = ", ".join(map(repr, LAYOUTS))
        raise ArgumentError(f"layout={layout!r}: it must be one of {known}.")


def engine_grammar(schema: Any, layout: Layout) -> str:
    """The engine's grammar for a rewritten schema, laid out.

    "spaced" is the layout of `json.dumps(ensure_ascii=False)`, "compact" that of separators (",", ":"),
    "indented" that of indent=2; they force about half of all tokens. "flexible" lets the model choose
    blanks, within bounds.
    """
    if layout == "indented":
        return LLMatcher.grammar_from_lark(indented_grammar(schema))
    return LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=_OPTIONS[layout])
