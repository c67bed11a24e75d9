"""How a JSON document is laid out: separators and blanks, for the engine and for people."""

from __future__ import annotations

from typing import Literal, get_args

from llguidance._lib import JsonCompileOptions

from xpress_struct.errors import ArgumentError

__all__ = ["LAYOUTS", "Layout", "engine_options"]

Layout = Literal["spaced", "compact", "flexible"]
LAYOUTS: tuple[str, ...] = get_args(Layout)

# At most one blank between tokens, or a line break with its indentation: no run of blanks is endless.
_BLANKS = r"[ \t\r]|\r?\n[ \t]{0,24}"

_OPTIONS: dict[str, JsonCompileOptions] = {
    "spaced": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "},
    "compact": {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"},
    "flexible": {"whitespace_flexible": True, "whitespace_pattern": _BLANKS},
}


def engine_options(layout: Layout) -> JsonCompileOptions:
    """llguidance's JSON options for a layout.

    "spaced" is the layout of `json.dumps(ensure_ascii=False)` and "compact" that of separators
    (",", ":"); both force about half of all tokens. "flexible" lets the model choose blanks, within
    bounds.

    Raises:
        ArgumentError: no such layout.
    """
    try:
        return _OPTIONS[layout]
    except KeyError:
        known = ", ".join(map(repr, LAYOUTS))
        raise ArgumentError(f"layout={layout!r}: it must be one of {known}.") from None
