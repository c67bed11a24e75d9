"""A run's folder, read and checked: `run.json` (what ran, and where) and `rows.jsonl` (a document a line)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xpress_struct.errors import ArgumentError
from xpress_struct.lab.rows import SPLIT
from xpress_struct.origins import ORIGINS

__all__ = ["Row", "Run", "System", "read_run"]

_MISSING = object()
_NUMBER = (int, float)


@dataclass(frozen=True)
class System:
    """One of the systems that were compared; `error` says why it could not run."""

    name: str
    label: str
    group: str
    error: str | None


@dataclass(frozen=True)
class Row:
    """One document of one system (and of one cell, in an experiment); times in seconds."""

    system: str
    task: str
    category: str
    mode: str
    completed: bool
    closed: bool
    valid: bool
    tokens: int
    forwards: int
    proposed: int
    accepted: int
    seconds: float
    score: float | None = None
    proposed_by_slot: tuple[int, ...] = ()
    accepted_by_slot: tuple[int, ...] = ()
    first_token_s: float | None = None
    split: Mapping[str, float] = field(default_factory=dict)
    peak_memory_bytes: int | None = None
    pieces: tuple[tuple[str, str], ...] = ()
    error: str | None = None
    cell: Mapping[str, Any] | None = None
    cell_id: str | None = None

    @property
    def document(self) -> tuple[str, str, str]:
        """What makes rows of two systems a pair."""
        return self.mode, self.category, self.task


@dataclass(frozen=True)
class Run:
    """A whole run. `about` is `run.json` as it stands; what the report computes with is beside it."""

    about: Mapping[str, Any]
    kind: str
    title: str
    command: str
    baseline: str
    systems: tuple[System, ...]
    axes: Mapping[str, list[Any]]
    rows: tuple[Row, ...]

    @property
    def modes(self) -> list[str]:
        return list(dict.fromkeys(row.mode for row in self.rows))

    def categories(self, mode: str) -> list[str]:
        return list(dict.fromkeys(row.category for row in self.rows if row.mode == mode))


def read_run(folder: str | Path) -> Run:
    """Reads a run's folder.

    Raises:
        ArgumentError: a file is missing or is not what the format says; the message names the place.
    """
    folder = Path(folder)
    about = _json(_text(folder / "run.json"), "run.json")
    kind = _take(about, "kind", str, "run.json")
    if kind not in ("bench", "experiment"):
        raise ArgumentError(f'run.json: "kind" is {kind!r}; it must be "bench" or "experiment".')
    for name in ("machine", "versions", "model", "settings"):
        _take(about, name, dict, "run.json")
    for name in ("started", "command", "title"):
        _take(about, name, str, "run.json")
    systems = tuple(_system(each, at) for at, each in enumerate(_take(about, "systems", list, "run.json")))
    names = {each.name for each in systems}
    baseline = _take(about, "baseline", str, "run.json")
    if baseline not in names:
        raise ArgumentError(f'run.json: the baseline {baseline!r} is none of "systems" ({sorted(names)}).')
    rows = _rows(_text(folder / "rows.jsonl"), names, cells=kind == "experiment")
    axes = _take(about, "axes", dict, "run.json") if kind == "experiment" else {}
    return Run(about, kind, about["title"], about["command"], baseline, systems, axes, rows)


def _rows(text: str, names: set[str], *, cells: bool) -> tuple[Row, ...]:
    rows: list[Row] = []
    seen: dict[tuple[Any, ...], int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"rows.jsonl, line {number}"
        row = _row(_json(line, where), where, cells=cells)
        if row.system not in names:
            raise ArgumentError(f'{where}: the system {row.system!r} is none of run.json\'s "systems".')
        key = (row.system, row.cell_id, *row.document)
        if key in seen:
            raise ArgumentError(f"{where}: the document of line {seen[key]} again, by the same system.")
        seen[key] = number
        rows.append(row)
    if not rows:
        raise ArgumentError("rows.jsonl has no row: nothing was run.")
    return tuple(rows)


def _row(found: dict[str, Any], where: str, *, cells: bool) -> Row:
    split = _take(found, "split", dict, where)
    if unknown := set(split) - set(SPLIT):
        raise ArgumentError(f'{where}: "split" has the unknown part {sorted(unknown)[0]!r}; known: {SPLIT}.')
    pieces = _take(found, "pieces", (list, type(None)), where) or []
    for piece in pieces:
        if not (isinstance(piece, list) and len(piece) == 2 and piece[1] in ORIGINS):
            raise ArgumentError(f'{where}: {piece!r} in "pieces" is not [text, one of {", ".join(ORIGINS)}].')
    plain = {name: _take(found, name, str, where) for name in ("system", "task", "category", "mode")}
    flags = {name: _take(found, name, bool, where) for name in ("completed", "closed", "valid")}
    counts = {name: _take(found, name, int, where) for name in ("tokens", "forwards", "proposed", "accepted")}
    known = {name: _take(found, name, (*_NUMBER, type(None)), where) for name in ("score", "first_token_s")}
    slots = [tuple(_take(found, f"{name}_by_slot", list, where)) for name in ("proposed", "accepted")]
    # Slots behind the last one of which a guess stood have no count: see `Stats`.
    if len(slots[0]) < len(slots[1]):
        raise ArgumentError(f'{where}: "accepted_by_slot" is longer than "proposed_by_slot".')
    return Row(
        **plain,
        **flags,
        **counts,
        **known,
        seconds=_take(found, "seconds", _NUMBER, where),
        proposed_by_slot=slots[0],
        accepted_by_slot=slots[1] + (0,) * (len(slots[0]) - len(slots[1])),
        split=split,
        peak_memory_bytes=_take(found, "peak_memory_bytes", (int, type(None)), where),
        pieces=tuple((text, origin) for text, origin in pieces),
        error=found.get("error"),
        cell=found.get("cell") if cells else None,
        cell_id=found.get("cell_id") if cells else None,
    )


def _system(found: Any, at: int) -> System:
    where = f"run.json, system {at}"
    if not isinstance(found, dict):
        raise ArgumentError(f"{where}: an object was expected, not {found!r}.")
    group = _take(found, "group", str, where)
    error = _take(found, "error", (str, type(None)), where)
    return System(_take(found, "name", str, where), _take(found, "label", str, where), group, error)


def _take(found: Mapping[str, Any], name: str, kinds: type | tuple[type, ...], where: str) -> Any:
    value = found.get(name, _MISSING)
    if value is _MISSING:
        raise ArgumentError(f'{where}: "{name}" is missing.')
    if not isinstance(value, kinds):
        raise ArgumentError(f'{where}: "{name}" is {value!r}, which is no {_words(kinds)}.')
    return value


def _words(kinds: type | tuple[type, ...]) -> str:
    names = [each.__name__ for each in (kinds if isinstance(kinds, tuple) else (kinds,))]
    return " or ".join("null" if name == "NoneType" else name for name in names)


def _json(text: str, where: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ArgumentError(f"{where}: not JSON ({error}).") from None
    if not isinstance(found, dict):
        raise ArgumentError(f"{where}: an object was expected, not {type(found).__name__}.")
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ArgumentError(
            f"{str(path)!r} is missing: the folder of a run has run.json and rows.jsonl."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{str(path)!r} cannot be read: {error}") from None
