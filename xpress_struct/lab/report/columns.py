"""The columns of the tables, said once for HTML and Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xpress_struct.lab.report.figures import Spread, Summary

__all__ = ["COLUMNS", "DASH", "Column", "label", "named", "number", "plain", "share"]

DASH = "–"
NAMES = {"json": "JSON", "sql": "SQL", "code": "Code", "text": "Text"}


@dataclass(frozen=True)
class Column:
    """A column: what its head says, which way is good, and what a cell shows and sorts by.

    Attributes:
        better: "higher", "lower" or "".
        value: figure that the column is sorted by; None sorts last.
        text: figure as shown.
    """

    title: str
    better: str
    help: str
    value: Callable[[Summary], float | None]
    text: Callable[[Summary], str]


def number(value: float) -> str:
    """Three digits that count, no exponent: 0.0123, 4.56, 123, 12,300."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 1:
        return f"{value:.2f}" if size < 10 else f"{value:.1f}"
    return f"{value:.3g}" if size >= 1e-4 else f"{value:.1e}"


def share(value: float | None) -> str:
    """A share in per cent."""
    return DASH if value is None else f"{100 * value:.0f}\u00a0%"


def named(category: str) -> str:
    """A category as a reader would write it."""
    return NAMES.get(category, category)


def label(summary: Summary, axes: Sequence[str] = ()) -> str:
    """Name of a system, with its place on those axes of the experiment."""
    base = f"{summary.system.label} (baseline)" if summary.is_base else summary.system.label
    if summary.system.error is not None and summary.rows:
        base += " (failed on the way)"
    told = ", ".join(f"{axis} {plain(summary.cell[axis])}" for axis in axes if axis in summary.cell)
    return f"{base}: {told}" if told else base


def plain(value: Any) -> str:
    """A value of an axis, as readers write it."""
    return {True: "on", False: "off", None: "none"}[value] if isinstance(value, bool | None) else str(value)


def _spread(found: Spread | None, unit: str = "") -> str:
    if found is None:
        return DASH
    middle = f"{number(found.middle)}{unit}"
    return middle if found.n == 1 else f"{middle} ({number(found.low)}–{number(found.high)})"


def _of(name: str) -> tuple[Callable[[Summary], float | None], Callable[[Summary], str]]:
    def value(summary: Summary) -> float | None:
        found = getattr(summary, name)
        return None if found is None else found.middle

    return value, lambda summary: _spread(getattr(summary, name))


def _docs(summary: Summary) -> str:
    errors = sum(row.error is not None for row in summary.rows)
    closed = sum(row.closed for row in summary.rows)
    told = [f"{closed} closed"] * bool(closed) + [f"{errors} with errors"] * bool(errors)
    whole = f"{len(summary.done)} of {len(summary.rows)}"
    return f"{whole} ({', '.join(told)})" if told else whole


def _ratio(summary: Summary) -> str:
    if summary.is_base:
        return "1 (baseline)"
    found = summary.ratio
    return DASH if found is None else f"{_spread(found, '×')}, {found.n} pairs"


def _split(summary: Summary) -> str:
    whole = sum(summary.split.values())
    parts = sorted(summary.split.items(), key=lambda part: -part[1])
    told = [
        f"{name} {100 * seconds / whole:.0f} %"
        for name, seconds in parts
        if whole and seconds >= 0.005 * whole
    ]
    return ", ".join(told) or DASH


def _memory(summary: Summary) -> str:
    found = summary.peak_memory
    return DASH if found is None else f"{found / 2**20:,.0f} MiB"


COLUMNS = (
    Column(
        "completed",
        "higher",
        "documents that the system ended by itself, of all; closed: ended by the library at the limit",
        lambda summary: len(summary.done) if summary.rows else None,
        _docs,
    ),
    Column(
        "valid",
        "higher",
        "share of the documents that are what was asked for; free text, which has no form, does not count",
        lambda summary: summary.valid,
        lambda summary: share(summary.valid),
    ),
    Column(
        "score",
        "higher",
        "share of right answers, where the task has one",
        lambda summary: summary.score,
        lambda summary: share(summary.score),
    ),
    Column("forwards / document", "lower", "target forwards by completed document", *_of("forwards")),
    Column("seconds / document", "lower", "seconds of the whole call by completed document", *_of("seconds")),
    Column(
        "tokens / forward",
        "higher",
        "output tokens, forced ones included, by target forward",
        *_of("tokens_per_forward"),
    ),
    Column(
        "tokens / second",
        "higher",
        "output tokens, forced ones included, by second of the whole call",
        *_of("tokens_per_second"),
    ),
    Column(
        "speed to baseline",
        "higher",
        "tokens per second to the baseline's on the same document, over completed ones",
        lambda summary: 1.0 if summary.is_base else (summary.ratio.middle if summary.ratio else None),
        _ratio,
    ),
    Column(
        "accepted",
        "higher",
        "accepted of proposed tokens",
        lambda summary: summary.acceptance,
        lambda summary: share(summary.acceptance),
    ),
    Column("first token, s", "lower", "seconds until the first token", *_of("first_token")),
    Column(
        "peak memory",
        "lower",
        "largest of all documents",
        lambda summary: summary.peak_memory,
        _memory,
    ),
    Column(
        "time split",
        "",
        "shares of the mean time of a completed document",
        lambda summary: None,
        _split,
    ),
)
