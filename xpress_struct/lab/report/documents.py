"""Generated documents, piece by piece, each coloured by who found it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from xpress_struct.lab.report.about import varied
from xpress_struct.lab.report.columns import label, named, number
from xpress_struct.lab.report.figures import Summary, summaries
from xpress_struct.lab.report.run import Row, Run
from xpress_struct.origins import ORIGINS

__all__ = ["MEANINGS", "Document", "documents"]

EACH = 3  # tasks of a category and mode that are shown
MEANINGS = {
    "prefix": "given; the text began with it",
    "forced": "the grammar left no other token; no forward was needed",
    "looked_up": "guessed by lookup in the prompt and the text so far, and right",
    "drafted": "guessed by the drafter, and right",
    "repaired": "guessed by the drafter, changed by the refinement, and right",
    "bonus": "drawn from the target's own row",
    "closed": "written by the library to close the text at the limit",
}


@dataclass(frozen=True)
class Document:
    """One document of one system."""

    task: str
    system: str
    pieces: Sequence[tuple[str, str]]
    counts: dict[str, int]
    line: str


def documents(run: Run) -> list[Document]:
    """The first tasks of each category and mode that have pieces, by every system (and cell) that has them,
    those with the most kinds of pieces first."""
    found: list[Document] = []
    for mode in run.modes:
        for category in run.categories(mode):
            made = [each for each in summaries(run, mode, category) if any(row.pieces for row in each.rows)]
            made.sort(key=_origins, reverse=True)
            tasks = list(dict.fromkeys(row.task for each in made for row in each.rows if row.pieces))[:EACH]
            for task in tasks:
                found += [
                    _document(run, each, row)
                    for each in made
                    for row in each.rows
                    if row.task == task and row.pieces
                ]
    return found


def _origins(summary: Summary) -> int:
    return len({origin for row in summary.rows for _, origin in row.pieces})


def _document(run: Run, summary: Summary, row: Row) -> Document:
    counts = Counter(origin for _, origin in row.pieces)
    task = " · ".join([named(row.category), row.task, *([row.mode] if len(run.modes) > 1 else [])])
    per = f", {number(row.tokens / row.forwards)} tokens per forward" if row.forwards else ""
    end = "valid" if row.valid else "not valid"
    end += "" if row.completed else ", closed at the limit" if row.closed else ", cut at the limit"
    line = f"{row.tokens} tokens, {row.forwards} forwards{per}, {number(row.seconds)} s, {end}"
    known: dict[str, int] = {origin: counts[origin] for origin in ORIGINS if counts[origin]}
    return Document(task, label(summary, varied(run)), row.pieces, known, line)
