"""The table that a run prints, and its RESULT line."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from xpress_struct.lab.rows import FREE, SPLIT, Row

__all__ = ["figures", "ratios", "tables"]

_MB = 1 << 20


def ratios(rows: Sequence[Row], baseline: Sequence[Row]) -> list[float]:
    """Tokens per second beside the baseline's, document by document, over completed ones.

    The baseline need not have ended them: unconstrained it seldom does, and its rate is the same.
    """
    base = {row.task: _speed(row) for row in baseline if row.error is None}
    pairs = [(_speed(row), base.get(row.task)) for row in rows if row.completed]
    return [mine / theirs for mine, theirs in pairs if mine is not None and theirs]


def _speed(row: Row) -> float | None:
    return row.tokens / row.seconds if row.seconds and row.tokens else None


def figures(rows: Sequence[Row], baseline: Sequence[Row]) -> dict[str, float | int | None]:
    """What is told of one system: shares of documents, means over completed ones, rates over all that ran.

    Seconds are those of whole calls. `ratio` is the median of `ratios`, with its quartiles.
    """
    ran = [row for row in rows if row.error is None]
    done = [row for row in ran if row.completed]
    formed = [row for row in rows if row.category != FREE]
    graded = [row.score for row in rows if row.score is not None]
    paired = ratios(rows, baseline)
    low, middle, high = _quartiles(paired)
    seconds, tokens, proposed = _sum(ran, "seconds"), _sum(ran, "tokens"), _sum(ran, "proposed")
    return {
        "docs": len(rows),
        "failed": len(rows) - len(ran),
        "completed": len(done),
        "valid": _mean(formed, lambda row: row.valid),
        "score": sum(graded) / len(graded) if graded else None,
        "tokens_per_doc": _mean(done, lambda row: row.tokens),
        "forwards_per_doc": _mean(done, lambda row: row.forwards),
        "s_per_doc": _mean(done, lambda row: row.seconds),
        "tokens_per_s": tokens / seconds if seconds else None,
        "ratio": middle,
        "ratio_q1": low,
        "ratio_q3": high,
        "accepted": _sum(ran, "accepted") / proposed if proposed else None,
        "first_token_s": _mean(ran, lambda row: row.first_token_s or 0.0),
        "peak_mb": max((row.peak_memory_bytes // _MB for row in ran if row.peak_memory_bytes), default=None),
    }


def tables(rows: Sequence[Row], baseline: str, systems: Iterable[str]) -> str:
    """All tables of a run as text: by system, by category, and where the time went; for each mode."""
    systems = list(systems)
    lines: list[str] = []
    for mode in dict.fromkeys(row.mode for row in rows):
        mine = [row for row in rows if row.mode == mode]
        lines += [f"\n## {mode}\n", _overall(mine, baseline, systems)]
        lines += [f"\n### {mode}, by category\n", _by_category(mine, baseline, systems)]
        lines += [f"\n### {mode}, share of seconds by step\n", _splits(mine, systems)]
    return "\n".join(lines)


def _of(rows: Sequence[Row], system: str) -> list[Row]:
    return [row for row in rows if row.system == system]


def _overall(rows: Sequence[Row], baseline: str, systems: Sequence[str]) -> str:
    base = _of(rows, baseline)
    return _table([("system", name, figures(_of(rows, name), base)) for name in systems if _of(rows, name)])


def _by_category(rows: Sequence[Row], baseline: str, systems: Sequence[str]) -> str:
    lines = []
    for category in dict.fromkeys(row.category for row in rows):
        some = [row for row in rows if row.category == category]
        base = _of(some, baseline)
        for name in systems:
            if _of(some, name):
                lines.append((category, f"{category:5} {name}", figures(_of(some, name), base)))
    return _table(lines)


def _splits(rows: Sequence[Row], systems: Sequence[str]) -> str:
    heads = ["system", *SPLIT]
    lines = []
    for name in systems:
        ran = [row for row in _of(rows, name) if row.error is None]
        total = _sum(ran, "seconds")
        if total:
            shares = [sum(row.split[step] for row in ran) / total for step in SPLIT]
            lines.append([name, *(f"{share:.0%}" for share in shares)])
    return aligned([heads, *lines])


_COLUMNS = {
    "docs": "docs",
    "failed": "failed",
    "completed": "completed",
    "valid": "valid",
    "score": "score",
    "tok/doc": "tokens_per_doc",
    "fwd/doc": "forwards_per_doc",
    "s/doc": "s_per_doc",
    "tok/s": "tokens_per_s",
    "ratio": "ratio",
    "quartiles": "",
    "accepted": "accepted",
    "1st s": "first_token_s",
    "peak MB": "peak_mb",
}
_SHARES = ("valid", "score", "accepted")


def _table(rows: Sequence[tuple[str, str, Mapping[str, float | int | None]]]) -> str:
    lines = [["system", *_COLUMNS]]
    for _, name, found in rows:
        cells = [_show(found[key], key) if key else _spread(found) for key in _COLUMNS.values()]
        lines.append([name, *cells])
    return aligned(lines)


def _spread(found: Mapping[str, float | int | None]) -> str:
    low, high = found["ratio_q1"], found["ratio_q3"]
    return "-" if low is None or high is None else f"{low:.2f}-{high:.2f}"


def _show(value: float | int | None, key: str) -> str:
    if value is None:
        return "-"
    if key in _SHARES:
        return f"{value:.0%}"
    return str(value) if isinstance(value, int) else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as a table whose first column stands to the left."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _sum(rows: Sequence[Row], name: str) -> float:
    return float(sum(getattr(row, name) for row in rows))


def _mean(rows: Sequence[Row], amount: Callable[[Row], Any]) -> float | None:
    return sum(map(amount, rows)) / len(rows) if rows else None


def _quartiles(values: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    if not values:
        return None, None, None
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high
