"""What a run's rows come to, for each system (and cell), mode and category.

Times, rates and counts by document are over documents that the system ended by itself: an answer that was
cut would count with all its repetitions. Shares are over all documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from xpress_struct.lab.report.run import Row, Run, System
from xpress_struct.lab.rows import FREE, SPLIT

__all__ = ["Spread", "Summary", "slot_rates", "spread", "summaries"]


@dataclass(frozen=True)
class Spread:
    """Median of n figures, one a document, and the 10th and 90th percentile."""

    middle: float
    low: float
    high: float
    n: int


def spread(values: Iterable[float]) -> Spread | None:
    """The spread of some figures; None where there are none."""
    kept = list(values)
    if not kept:
        return None
    low, middle, high = np.percentile(kept, [10, 50, 90])
    return Spread(float(middle), float(low), float(high), len(kept))


class Summary:
    """The figures of one system, in one cell, over the rows given.

    Args:
        rows: what it did.
        base: rows of the baseline, by document; ratios are taken pair by pair.
    """

    def __init__(
        self, system: System, rows: Sequence[Row], base: Mapping[tuple[str, str, str], Row], *, is_base: bool
    ) -> None:
        self.system, self.rows, self.base, self.is_base = system, rows, base, is_base
        self.done = [row for row in rows if row.completed]
        self.formed = [row for row in rows if row.category != FREE]
        self.cell: Mapping[str, Any] = (rows[0].cell if rows else None) or {}

    @property
    def why_empty(self) -> str | None:
        """Why there are no figures by document, or None where there are."""
        if self.done:
            return None
        if self.system.error is not None:
            return "failed"
        return "no completed document" if self.rows else "not run"

    def each(self, figure: Callable[[Row], float | None]) -> Spread | None:
        """Spread of a figure over the completed documents that have it."""
        return spread(found for row in self.done if (found := figure(row)) is not None)

    @cached_property
    def valid(self) -> float | None:
        """Of the documents that have a form: free text can be nothing else than valid."""
        return sum(row.valid for row in self.formed) / len(self.formed) if self.formed else None

    @cached_property
    def score(self) -> float | None:
        scores = [row.score for row in self.rows if row.score is not None]
        return sum(scores) / len(scores) if scores else None

    @cached_property
    def seconds(self) -> Spread | None:
        return self.each(lambda row: row.seconds)

    @cached_property
    def forwards(self) -> Spread | None:
        return self.each(lambda row: row.forwards)

    @cached_property
    def tokens_per_forward(self) -> Spread | None:
        return self.each(lambda row: _over(row.tokens, row.forwards))

    @cached_property
    def tokens_per_second(self) -> Spread | None:
        return self.each(_speed)

    @cached_property
    def seconds_per_token(self) -> Spread | None:
        return self.each(lambda row: _over(row.seconds, row.tokens))

    @cached_property
    def ratio(self) -> Spread | None:
        """Tokens per second to the baseline's on the same document.

        The baseline need not have ended it: unconstrained it seldom does, and its rate is the same.
        """
        return self.each(self._ratio)

    def _ratio(self, row: Row) -> float | None:
        other = self.base.get(row.document)
        if other is None or other.error is not None:
            return None
        mine, theirs = _speed(row), _speed(other)
        return mine / theirs if mine is not None and theirs else None

    @cached_property
    def acceptance(self) -> float | None:
        """Accepted of proposed tokens, over all documents."""
        return _over(sum(row.accepted for row in self.rows), sum(row.proposed for row in self.rows))

    @cached_property
    def split(self) -> dict[str, float]:
        """Mean seconds of a completed document by part (means, since medians do not add up)."""
        if not self.done:
            return {}
        return {name: sum(row.split.get(name, 0.0) for row in self.done) / len(self.done) for name in SPLIT}

    @cached_property
    def first_token(self) -> Spread | None:
        return self.each(lambda row: row.first_token_s)

    @cached_property
    def peak_memory(self) -> int | None:
        return max((row.peak_memory_bytes for row in self.rows if row.peak_memory_bytes), default=None)


def summaries(run: Run, mode: str, category: str | None = None) -> list[Summary]:
    """Every system of a run (in an experiment: every system and cell), in the run's order.

    Args:
        mode: "greedy" or "sampled".
        category: None for all of them.
    """
    rows = [row for row in run.rows if row.mode == mode and category in (None, row.category)]
    found = []
    for system in run.systems:
        mine = [row for row in rows if row.system == system.name]
        cells = list(dict.fromkeys(row.cell_id for row in mine)) or [None]
        for cell in cells:
            of_cell = [row for row in mine if row.cell_id == cell]
            base = _baseline(run, rows, cell)
            found.append(Summary(system, of_cell, base, is_base=system.name == run.baseline))
    return found


def _baseline(run: Run, rows: Sequence[Row], cell: str | None) -> dict[tuple[str, str, str], Row]:
    """The baseline in the same cell, or the one that stands outside of all cells."""
    base = [row for row in rows if row.system == run.baseline]
    same = {row.document: row for row in base if row.cell_id == cell}
    return {row.document: row for row in base if row.cell_id is None} | same


def slot_rates(rows: Iterable[Row], at_least: int = 10) -> list[float]:
    """Accepted of proposed by slot, up to the first slot that was proposed fewer than `at_least` times."""
    proposed: list[int] = []
    accepted: list[int] = []
    for row in rows:
        for totals, mine in ((proposed, row.proposed_by_slot), (accepted, row.accepted_by_slot)):
            totals.extend([0] * (len(mine) - len(totals)))
            for at, count in enumerate(mine):
                totals[at] += count
    rates = []
    for above, below in zip(accepted, proposed, strict=True):
        if below < at_least:
            break
        rates.append(above / below)
    return rates


def _speed(row: Row) -> float | None:
    return _over(row.tokens, row.seconds)


def _over(above: float, below: float) -> float | None:
    return above / below if below else None
