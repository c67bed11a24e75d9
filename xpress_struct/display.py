"""A text coloured by where its tokens came from: for terminals and notebooks.

The colours are those of Okabe and Ito, which colour-blind readers can tell apart; each has a second cue.
"""

from __future__ import annotations

import html
import importlib
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TextIO

from xpress_struct.origins import Origin, Piece

__all__ = ["as_html", "as_terminal", "is_notebook", "show_html", "takes_colours"]


class _Style(NamedTuple):
    label: str
    ansi: str  # numbers of an SGR sequence
    css: str


_STYLES: Mapping[Origin, _Style] = {
    "prefix": _Style("given", "2", "opacity: 0.6"),
    "forced": _Style("forced", "3;38;5;245", "background: rgba(128, 128, 128, 0.25); font-style: italic"),
    "looked_up": _Style(
        "looked up", "4;38;5;75", "background: rgba(86, 180, 233, 0.35); border-bottom: 2px dotted"
    ),
    "drafted": _Style("drafted", "38;5;36", "background: rgba(0, 158, 115, 0.35)"),
    "repaired": _Style(
        "repaired", "1;4;38;5;214", "background: rgba(230, 159, 0, 0.4); border-bottom: 3px double"
    ),
    "bonus": _Style("bonus", "1;38;5;175", "background: rgba(204, 121, 167, 0.35); font-weight: bold"),
    "closed": _Style("closed", "7;38;5;166", "background: rgba(213, 94, 0, 0.35); border-bottom: 2px dashed"),
}
# What a terminal would obey rather than print; line breaks and tabs may stay.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def as_terminal(pieces: Sequence[Piece], counts: Mapping[Origin, int], *, colours: bool) -> str:
    """The text, and below it how many tokens came from where, which explains the colours.

    Control characters are written as escapes.
    """

    def styled(text: str, origin: Origin) -> str:
        return f"\x1b[{_STYLES[origin].ansi}m{text}\x1b[0m" if colours else text

    text = "".join(styled(_printable(part), origin) for part, origin in _merged(pieces))
    words = [styled(f"{_STYLES[origin].label} {count}", origin) for origin, count in counts.items()]
    return f"{text}\n\n{_total(counts)}: {', '.join(words)}"


def as_html(pieces: Sequence[Piece], counts: Mapping[Origin, int]) -> str:
    """The same for a notebook. The backgrounds are translucent, so that it reads on light and on dark."""

    def styled(text: str, origin: Origin) -> str:
        style = _STYLES[origin]
        return f'<span style="{style.css}" title="{style.label}">{html.escape(_printable(text))}</span>'

    text = "".join(styled(part, origin) for part, origin in _merged(pieces))
    words = [styled(f"{_STYLES[origin].label} {count}", origin) for origin, count in counts.items()]
    return (
        f'<div><div style="white-space: pre-wrap; font-family: monospace">{text}</div>'
        f'<div style="margin-top: 0.8em; font-size: small">{_total(counts)}: {", ".join(words)}</div></div>'
    )


def takes_colours(file: TextIO) -> bool:
    """Whether the file is a terminal that wants colours (https://no-color.org)."""
    return file.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def is_notebook() -> bool:
    """Whether this runs in the kernel of a notebook, which has imported IPython then."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def show_html(text: str) -> None:
    """Puts HTML below the notebook's cell."""
    display = importlib.import_module("IPython.display")
    display.display(display.HTML(text))


def _merged(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The pieces with neighbours of one origin joined."""
    for origin, group in groupby(pieces, key=lambda piece: piece[1]):
        yield "".join(text for text, _ in group), origin


def _total(counts: Mapping[Origin, int]) -> str:
    total = sum(counts.values())
    return f"{total} token{'s' * (total != 1)}"


def _printable(text: str) -> str:
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
