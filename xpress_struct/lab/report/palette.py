"""The colours, each for light and for dark. Plots are drawn in the light ones; the page swaps them by name.

The hues of lines and parts are told apart by the common kinds of colour blindness, and never alone: lines
have names at their ends, markers and dashes, parts have an order and figures, pieces have underlines.
"""

from __future__ import annotations

from xpress_struct.lab.rows import SPLIT
from xpress_struct.origins import ORIGINS

__all__ = ["COLOURS", "LINES", "PART_COLOURS", "PART_INK", "colour", "css"]

COLOURS = {
    "ink": ("#1b2130", "#e8ebf1"),
    "muted": ("#596273", "#a2adbf"),
    "page": ("#f6f7f9", "#10141b"),
    "card": ("#fefefe", "#181e28"),
    "edge": ("#dfe3ea", "#2c3544"),
    "grid": ("#e8ebf0", "#2a3342"),
    "ours": ("#0b62cf", "#5ea8ff"),
    "peer": ("#97a1b2", "#6f7b8e"),
    "bad": ("#b3261e", "#ff8d83"),
    "line-1": ("#0b63d0", "#5fa9ff"),
    "line-2": ("#b45309", "#ffb155"),
    "line-3": ("#0a7a55", "#43d3a0"),
    "line-4": ("#8a3fb5", "#cf9dff"),
    "line-5": ("#bf2459", "#ff8bb0"),
    "line-6": ("#6a5a2c", "#dccb8c"),
    "line-7": ("#0b7a92", "#5bd4ea"),
    "line-8": ("#5b6475", "#a4aec0"),
    "prefix": ("#fefefe", "#181e28"),
    "forced": ("#e4e7ec", "#333c4a"),
    "looked_up": ("#cfe6ff", "#123f6d"),
    "drafted": ("#c9f0dc", "#0f4d37"),
    "repaired": ("#ffe3b0", "#63430a"),
    "bonus": ("#ffd0d8", "#6b2233"),
    "closed": ("#e6d6ff", "#46307a"),
}

LINES = tuple(name for name in COLOURS if name.startswith("line-"))

# The same in both modes: what is written on them goes by their own lightness.
PART_COLOURS = dict(
    zip(
        SPLIT,
        ("#0072b2", "#e69f00", "#f0e442", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#9aa3b2"),
        strict=True,
    )
)
PART_INK = {name: "#fdfdfd" if name == "score" else "#111318" for name in SPLIT}


def colour(name: str) -> str:
    """The light colour of that name, which `css` and `drawing` swap for the page's."""
    return COLOURS[name][0]


def css() -> str:
    """The colours as custom properties, for both modes."""
    both = [f"--{name}: light-dark({light}, {dark});" for name, (light, dark) in COLOURS.items()]
    parts = [f"--part-{name}: {value};" for name, value in PART_COLOURS.items()]
    origins = [f".piece.{name} {{ background: var(--{name}); }}" for name in ORIGINS]
    return ":root { " + " ".join(both + parts) + " }\n" + "\n".join(origins)
