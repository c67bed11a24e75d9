"""A run's folder: `run.json` says what ran, `rows.jsonl` has one line for each document and system.

Rows are appended as they come, each whole or not at all, so that a run that is killed loses at most the one
it was at.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from xpress_struct.errors import ArgumentError

__all__ = ["FREE", "ROWS", "RUN", "SPLIT", "Row", "append_row", "mend", "read_lines", "read_run", "write_run"]

FREE = "text"
"""The category without a form: its documents can be nothing else than valid, and do not count there."""

RUN, ROWS = "run.json", "rows.jsonl"
SPLIT = ("score", "draft", "refine", "walk", "mask", "accept", "compile", "other")


@dataclass
class Row:
    """One document by one system.

    Attributes:
        mode: "greedy" or "sampled".
        completed: it ended by itself. closed: the library closed it at the limit.
        valid, reason: whether it is what was asked for, and why not.
        score: 1 or 0, whether the answer is right; None where nothing tells.
        forced, proposed, accepted and by slot: tokens, as in `xpress_struct.Stats`.
        seconds: of the whole call. decode_s: from the end of the first forward on.
        first_token_s: to the end of the first forward.
        split: seconds by step; what a peer does not tell apart is "other".
        peak_memory_bytes: of the process during the call, everything that is loaded included.
        pieces: the text cut by who found it, [text, origin]; None where that is not known.
        error: what the system raised.
        cell, cell_id: of an experiment.
    """

    system: str
    task: str
    category: str
    mode: Literal["greedy", "sampled"] = "greedy"
    completed: bool = False
    closed: bool = False
    valid: bool = False
    reason: str | None = None
    score: float | None = None
    tokens: int = 0
    forced: int = 0
    forwards: int = 0
    proposed: int = 0
    accepted: int = 0
    proposed_by_slot: list[int] = field(default_factory=list)
    accepted_by_slot: list[int] = field(default_factory=list)
    seconds: float = 0.0
    decode_s: float = 0.0
    first_token_s: float | None = None
    guard_share: float | None = None
    split: dict[str, float] = field(default_factory=lambda: dict.fromkeys(SPLIT, 0.0))
    peak_memory_bytes: int | None = None
    text: str = ""
    pieces: list[list[str]] | None = None
    error: str | None = None
    cell: dict[str, Any] | None = None
    cell_id: str | None = None


def append_row(folder: Path, row: Row) -> None:
    """Adds a row in one write, which is on the disk when this returns."""
    fields = asdict(row)
    if row.cell is None:
        del fields["cell"], fields["cell_id"]
    line = json.dumps(fields, ensure_ascii=False) + "\n"
    handle = os.open(folder / ROWS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(handle, line.encode("utf-8", errors="replace"))
        os.fsync(handle)
    finally:
        os.close(handle)


def mend(folder: Path) -> list[dict[str, Any]]:
    """The rows of a folder; what a killed run left of an unfinished line is cut off the file."""
    path = folder / ROWS
    if not path.exists():
        return []
    whole = path.read_bytes()
    end = whole.rfind(b"\n") + 1
    if end < len(whole):
        with path.open("r+b") as file:
            file.truncate(end)
    return read_lines(path)


def read_lines(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines.

    Raises:
        ArgumentError: it cannot be read, or a line is no JSON object.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{str(path)!r} cannot be read: {error}") from None
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ArgumentError(f"{str(path)!r}, line {number}, is no JSON: {error}") from None
        if not isinstance(row, dict):
            raise ArgumentError(f"{str(path)!r}, line {number}, is no JSON object.")
        rows.append(row)
    return rows


def write_run(folder: Path, run: dict[str, Any]) -> None:
    """Writes `run.json`; a reader sees the old one or the new one."""
    made = folder / (RUN + ".part")
    made.write_text(json.dumps(run, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    made.replace(folder / RUN)


def read_run(folder: Path) -> dict[str, Any] | None:
    """What `run.json` says; None where there is none."""
    path = folder / RUN
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ArgumentError(f"{str(path)!r} is no JSON: {error}") from None
    return dict(found)
