"""Runs an experiment: every document through every cell, and on from where a killed run was.

Cells take turns document by document, so that what slows the machine down for a while slows all of them down.
Each row is on the disk before the next one begins: a run that is killed loses the document it was at.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from xpress_struct.drafting.diffusion import DiffusionDrafter
from xpress_struct.errors import ArgumentError
from xpress_struct.lab.bench.command import model_facts, report_on
from xpress_struct.lab.bench.meter import Draw, Meter, Run, measure, told
from xpress_struct.lab.bench.record import row_of
from xpress_struct.lab.bench.summary import aligned, figures
from xpress_struct.lab.bench.systems.ours import Ours, diffusion_of, fresh
from xpress_struct.lab.bench.systems.plain import Setting
from xpress_struct.lab.bench.tasks.calls import WARM_UP
from xpress_struct.lab.bench.tasks.sampling import draw_tasks
from xpress_struct.lab.bench.tasks.sources import find_sources
from xpress_struct.lab.bench.tasks.task import Task, prompt_ids
from xpress_struct.lab.experiment.cells import BASELINE, Cell, baselines_of, cell_id, cells_of, mode_of
from xpress_struct.lab.experiment.config import Config
from xpress_struct.lab.machine import machine, versions
from xpress_struct.lab.rows import Row, append_row, mend, read_run, write_run
from xpress_struct.model import Model

__all__ = ["CellSystem", "Drafters", "run_experiment"]

SYSTEM = "ours"


class Drafters:
    """The drafters that cells name; each is loaded once."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._loaded: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        """The drafter of a name; of a trained one alone, without the lookup that `load` puts beside it."""
        if name in ("none", "lookup"):
            return None if name == "none" else name
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        drafter = self._loaded[name]
        return fresh(drafter) if isinstance(drafter, DiffusionDrafter) else drafter

    def _load(self, name: str) -> Any:
        if name == "model":
            return diffusion_of(self.model.drafter) or self.model.drafter
        from xpress_struct.drafting.loading import load_drafter

        model = self.model
        target: Any = model.target
        tokenizer: Any = model.tokenizer
        return load_drafter(name, target, model.vocabulary, tokenizer)


class CellSystem:
    """One cell as a system. What it cannot honour is found when it is made.

    Raises:
        ArgumentError: the drafter does not know an option, or offers shorter blocks.
    """

    def __init__(self, cell: Cell, drafters: Drafters, setting: Setting, guard: bool) -> None:
        self.cell, self.id = cell, cell_id(cell)
        self.name = BASELINE if cell["drafter"] == "none" else SYSTEM
        drafter = drafters.get(cell["drafter"])
        options = {
            name: value
            for name, value in cell.items()
            if value is not None and name not in ("drafter", "temperature")
        }
        length, trained = options.get("block_length"), diffusion_of(drafter)
        if isinstance(length, int) and trained is not None and length > trained.weights.config.block_size:
            raise ArgumentError(
                f"block_length={length}: the drafter fills blocks of {trained.weights.config.block_size}."
            )
        self.temperature = float(cell.get("temperature") or 0.0)
        self.ours = Ours(self.name, self.name, setting, drafter, options | {"guard": guard})
        self.ours.run(WARM_UP, Draw(self.temperature))


def run_experiment(config: Config, out: str | Path, command: str, model: Model | None = None) -> Path:
    """Runs what is not in the folder yet, prints the table and the RESULT line, and writes the report.

    Args:
        command: as it was typed.
        model: instead of the one that the configuration names.

    Raises:
        ArgumentError: the folder holds another experiment.
    """
    from xpress_struct.api import load

    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    before = _before(folder, config)
    done = {_key(row.get("cell_id"), row["mode"], row["task"]) for row in mend(folder)}
    clock = time.perf_counter()
    torch.set_num_threads(config.threads)
    sources = find_sources(config.tasks)
    model = model or load(config.model)
    tasks, refused = draw_tasks(sources, config.limit, config.seed, model, config.max_new_tokens)
    if not tasks:
        raise ArgumentError("No task is left to run.")
    baselines, cells = baselines_of(config.grid), cells_of(config.grid)
    run: dict[str, Any] = {
        "kind": "experiment",
        "title": config.title,
        "command": command,
        "started": before.get("started") or datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "seconds": before.get("seconds", 0.0),
        "machine": machine(),
        "versions": versions(),
        "model": model_facts(model),
        "drafter": getattr(model.drafter, "name", None),
        "seed": config.seed,
        "settings": asdict(config)
        | {
            "hash": config.hash,
            "tasks": {source.category: source.told for source in sources},
            "tasks_refused": refused,
            "documents": [task.id for task in tasks],
            "resumed": before.get("settings", {}).get("resumed", 0) + bool(before),
        },
        "baseline": BASELINE,
        "systems": [
            {"name": BASELINE, "label": "xpress_struct, no drafter", "group": "ours", "error": None},
            {"name": SYSTEM, "label": "xpress_struct", "group": "ours", "error": None},
        ],
        "axes": _axes(cells),
        "cells": len(cells),
    }
    write_run(folder, run)
    setting = Setting(
        model,
        config.max_new_tokens,
        meter=Meter(model.target.model),  # type: ignore[attr-defined]
    )
    earlier = run["seconds"]
    try:
        _run_all(folder, config, setting, tasks, [*baselines, *cells], done)
    finally:
        run["seconds"] = round(earlier + time.perf_counter() - clock, 1)
        write_run(folder, run)
    rows = [Row(**row) for row in mend(folder)]
    print(_table(rows, baselines, cells))
    report_on(folder)
    print("RESULT " + json.dumps({"cells": _result(rows, baselines, cells), "seconds": run["seconds"]}))
    return folder


def _before(folder: Path, config: Config) -> dict[str, Any]:
    """What the folder's run says, if it is of this configuration."""
    found = read_run(folder)
    if found is None:
        if mend(folder):
            raise ArgumentError(f"{str(folder)!r} has rows and no run.json: name another folder.")
        return {}
    if found.get("kind") != "experiment" or found.get("settings", {}).get("hash") != config.hash:
        raise ArgumentError(
            f"{str(folder)!r} holds another run ({found.get('title')!r}): its configuration is not this "
            "one's. Name another folder with --out."
        )
    return found


def _run_all(
    folder: Path,
    config: Config,
    setting: Setting,
    tasks: Sequence[Task],
    cells: Sequence[Cell],
    done: set[tuple[str, str, str]],
) -> None:
    drafters = Drafters(setting.model)
    systems: dict[str, CellSystem] = {}
    errors: dict[str, str] = {}
    meter = setting.meter
    assert meter is not None
    baselines = [cell_id(cell) for cell in baselines_of(config.grid)]
    left = len(tasks) * len(cells) - len(done)
    with tqdm(total=left, desc="documents x cells", file=sys.stderr) as bar:
        for place, task in enumerate(tasks):
            ids = prompt_ids(task, setting.model)
            shift = place % len(cells)
            for cell in [*cells[shift:], *cells[:shift]]:
                name = cell_id(cell)
                stands_outside = name in baselines
                if _key(None if stands_outside else name, mode_of(cell), task.id) in done:
                    continue
                bar.set_postfix_str(f"{task.id} {name}")
                if name not in systems and name not in errors:
                    try:
                        systems[name] = CellSystem(cell, drafters, setting, config.guard)
                    except Exception as error:  # shown as the cell's
                        errors[name] = told(error)
                row = _row(systems.get(name), errors.get(name), cell, task, ids, meter, config.seed + place)
                if stands_outside:
                    row.cell = row.cell_id = None
                append_row(folder, row)
                bar.update()


def _row(
    system: CellSystem | None,
    error: str | None,
    cell: Cell,
    task: Task,
    ids: list[int],
    meter: Meter,
    seed: int,
) -> Row:
    if system is None:
        run = Run(task, error=error, reason=error, score=None if task.grade is None else False)
        name = BASELINE if cell["drafter"] == "none" else SYSTEM
    else:
        name = system.name
        system.ours.prepare(task)
        run = measure(system.ours, task, ids, meter, Draw(system.temperature, seed))
    return row_of(name, run, mode_of(cell), cell, cell_id(cell))


def _key(cell: str | None, mode: str, task: str) -> tuple[str, str, str]:
    """What a row is of. Rows of a baseline have no cell: they stand beside all cells of their mode."""
    return cell or BASELINE, mode, task


def _axes(cells: Sequence[Cell]) -> dict[str, list[Any]]:
    """Values by axis, in the order of the cells."""
    return {name: list(dict.fromkeys(cell[name] for cell in cells)) for name in (cells[0] if cells else ())}


def _by_cell(
    rows: Sequence[Row], baselines: Sequence[Cell], cells: Sequence[Cell]
) -> Mapping[str, tuple[list[Row], list[Row]]]:
    """The rows of each cell, and those of the baseline of its mode."""
    outside = {mode_of(cell): [row for row in rows if not row.cell_id] for cell in baselines}
    outside = {mode: [row for row in each if row.mode == mode] for mode, each in outside.items()}
    found = {f"baseline, {mode}": (each, each) for mode, each in outside.items()}
    for cell in cells:
        mine = [row for row in rows if row.cell_id == cell_id(cell)]
        found[cell_id(cell)] = mine, outside[mode_of(cell)]
    return found


_COLUMNS = {
    "docs": "docs",
    "failed": "failed",
    "fwd/doc": "forwards_per_doc",
    "s/doc": "s_per_doc",
    "tok/s": "tokens_per_s",
    "ratio": "ratio",
    "accepted": "accepted",
}


def _table(rows: Sequence[Row], baselines: Sequence[Cell], cells: Sequence[Cell]) -> str:
    lines = [["cell", "tok/fwd", *_COLUMNS]]
    for name, (mine, base) in _by_cell(rows, baselines, cells).items():
        found = figures(mine, base)
        shown = [found[key] for key in _COLUMNS.values()]
        cells_ = ["-" if v is None else str(v) if isinstance(v, int) else f"{v:.2f}" for v in shown]
        lines.append([name, _per_forward(mine), *cells_])
    return aligned(lines)


def _per_forward(rows: Sequence[Row]) -> str:
    forwards = sum(row.forwards for row in rows)
    return f"{sum(row.tokens for row in rows) / forwards:.2f}" if forwards else "-"


def _result(rows: Sequence[Row], baselines: Sequence[Cell], cells: Sequence[Cell]) -> dict[str, Any]:
    return {
        name: {key: round(v, 4) if isinstance(v, float) else v for key, v in figures(mine, base).items()}
        | {"error": next((row.error for row in mine if row.error), None)}
        for name, (mine, base) in _by_cell(rows, baselines, cells).items()
    }
