"""What `xpress-struct bench` does: from its options to a folder with the report."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch

from xpress_struct.errors import ArgumentError, XPressError
from xpress_struct.lab.bench.meter import Meter
from xpress_struct.lab.bench.run import SAMPLED_ONE_IN, Bench, Mode, set_up
from xpress_struct.lab.bench.summary import figures, tables
from xpress_struct.lab.bench.systems.plain import Setting
from xpress_struct.lab.bench.systems.registry import DISTRIBUTIONS, chosen, label_of
from xpress_struct.lab.bench.tasks.sampling import draw_tasks
from xpress_struct.lab.bench.tasks.sources import Source, find_sources
from xpress_struct.lab.bench.tasks.task import CATEGORIES
from xpress_struct.lab.machine import machine, versions
from xpress_struct.lab.rows import Row, append_row, mend, write_run
from xpress_struct.model import Model

__all__ = ["BenchOptions", "model_facts", "named_drafter", "new_folder", "report_on", "run_bench"]


@dataclass(frozen=True)
class BenchOptions:
    """Options of the command; names and meanings are those of the command line."""

    model: str | None = None
    drafter: str = "auto"
    tasks: Sequence[str] = CATEGORIES
    limit: int | None = 20
    peers: str = "all"
    ours: str = "all"
    modes: Sequence[Mode] = ("greedy", "sampled")
    temperature: float = 0.7
    max_new_tokens: int = 96
    seed: int = 0
    threads: int = 1
    minutes: float = 20.0
    compile_timeout: float = 30.0
    gguf: str | None = None
    out: str | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ArgumentError(f"--limit {self.limit}: it must be 1 or more.")
        if self.temperature <= 0:
            raise ArgumentError(f"--temperature {self.temperature}: sampled runs need one above 0.")
        if unknown := set(self.modes) - {"greedy", "sampled"} or not self.modes:
            raise ArgumentError(f"--modes {unknown}: it must be greedy, sampled, or both.")
        if min(self.max_new_tokens, self.threads) < 1:
            raise ArgumentError("--max-new-tokens and --threads must be 1 or more.")


def run_bench(options: BenchOptions, command: str, model: Model | None = None) -> Path:
    """Runs all, prints tables and the RESULT line, and writes the folder.

    Args:
        command: as it was typed.
        model: instead of the one that the options name.

    Returns:
        The folder.
    """
    from xpress_struct.api import load

    names = chosen(options.peers, options.ours)
    folder = new_folder(options.out, "bench")
    started, clock = datetime.now(timezone.utc), time.perf_counter()
    torch.set_num_threads(options.threads)
    sources = find_sources(options.tasks)
    model = model or load(options.model, drafter=named_drafter(options.drafter))
    tasks, refused = draw_tasks(sources, options.limit, options.seed, model, options.max_new_tokens)
    if not tasks:
        raise ArgumentError("No task is left to run.")
    setting = Setting(
        model,
        options.max_new_tokens,
        options.compile_timeout,
        unfence=True,
        meter=Meter(model.target.model),  # type: ignore[attr-defined]
        drafter=model.drafter,
        gguf=options.gguf,
    )
    systems, errors = set_up(names, setting)
    run: dict[str, Any] = {
        "kind": "bench",
        "title": f"{len(tasks)} documents through {len(names)} systems",
        "command": command,
        "started": started.isoformat(timespec="seconds"),
        "seconds": 0.0,
        "machine": machine(),
        "versions": versions(DISTRIBUTIONS),
        "model": model_facts(model),
        "drafter": getattr(model.drafter, "name", None),
        "seed": options.seed,
        "settings": _settings(options, sources, refused),
        "baseline": names[0],
        "systems": [
            {
                "name": name,
                "label": label_of(name),
                "group": "ours" if name.startswith("ours-") else "peer",
                "error": errors.get(name),
            }
            for name in names
        ],
    }
    write_run(folder, run)
    seconds = 60 * options.minutes if options.minutes else None
    bench = Bench(setting, tasks, systems, options.modes, options.temperature, options.seed, seconds)
    bench.prepare()
    rows: list[Row] = []

    def write(row: Row) -> None:
        append_row(folder, row)
        rows.append(row)

    try:
        bench.run(write)
    finally:
        run["seconds"] = round(time.perf_counter() - clock, 1)
        run["settings"] |= {"left_out": bench.left_out, "equal_ids": bench.equal_ids()}
        write_run(folder, run)
    _print(rows, names, errors, bench)
    report_on(folder)
    print("RESULT " + json.dumps(_result(rows, names, errors, bench, run)))
    return folder


def new_folder(out: str | None, kind: str) -> Path:
    """The folder of a new run.

    Raises:
        ArgumentError: it already holds one.
    """
    folder = Path(out or f"{kind}-{datetime.now():%Y%m%d-%H%M%S}")
    folder.mkdir(parents=True, exist_ok=True)
    if mend(folder):
        raise ArgumentError(f"--out {str(folder)!r} already holds a run: name another folder.")
    return folder


def named_drafter(drafter: str) -> Any:
    """What `load` is asked for: a trained drafter goes together with lookup."""
    return drafter if drafter in ("auto", "lookup", "none") else [drafter, "lookup"]


def model_facts(model: Model) -> dict[str, Any]:
    """The model, as `run.json` tells it."""
    weights: Any = model.target.model  # type: ignore[attr-defined]
    first = next(weights.parameters())
    name = str(getattr(weights.config, "name_or_path", ""))
    return {
        "name": Path(name).name if Path(name).is_absolute() else name or type(weights).__name__,
        "dtype": str(first.dtype).removeprefix("torch."),
        "parameters": sum(each.numel() for each in weights.parameters()),
    }


def _settings(options: BenchOptions, sources: Sequence[Source], refused: int) -> dict[str, Any]:
    told = {each.name: getattr(options, each.name) for each in fields(options)}
    return told | {
        "tasks": {source.category: source.told for source in sources},
        "tasks_refused": refused,
        "sampled_documents": f"one in {SAMPLED_ONE_IN}" if len(options.modes) > 1 else "all",
        "notes": list(_NOTES),
    }


_NOTES = (
    "Systems take turns document by document; each ran twice over another document before.",
    "JSON schemas are compiled inside of the measured call, grammars of SQL and Python before it.",
    "Of an unconstrained answer only what stands in its first Markdown fence is judged, if it has one.",
    "Only systems that can be told the constraint run a category; without one, masked peers are plain.",
    "Peers get SQL's and Python's grammar from this library, without the scopes of SQL.",
    "Memory is that of the whole process, with every system loaded.",
)


def _print(rows: Sequence[Row], names: Sequence[str], errors: dict[str, str], bench: Bench) -> None:
    print(tables(rows, names[0], names))
    print("\n## Notes\n")
    for name, error in errors.items():
        print(f"- {name}: failed: {error}")
    for name in names:
        told = dict.fromkeys(row.error for row in rows if row.system == name and row.error)
        for error in told:
            print(f"- {name}: failed on documents: {error}")
    for note in _NOTES:
        print(f"- {note}")
    if bench.left_out:
        print(f"- Left out for lack of minutes: {', '.join(bench.left_out)}")
    equal = bench.equal_ids()
    print(f"- Equal ids in all of ours: {equal['equal']} of {equal['compared']} documents.\n")


def report_on(folder: Path) -> None:
    """Writes the report, or says why there is none: the rows are safe either way."""
    from xpress_struct.lab.report.write import write_report

    try:
        written = write_report(folder)
    except XPressError as error:
        print(f"no report: {error}")
        return
    print(f"report: {', '.join(map(str, written))}")


def _result(
    rows: Sequence[Row], names: Sequence[str], errors: dict[str, str], bench: Bench, run: dict[str, Any]
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for mode in bench.modes:
        mine = [row for row in rows if row.mode == mode]
        base = [row for row in mine if row.system == names[0]]
        result[mode] = {
            name: {key: _rounded(value) for key, value in figures(some, base).items()}
            for name in names
            if (some := [row for row in mine if row.system == name])
        }
    return result | {
        "failed": errors,
        "equal_ids": bench.equal_ids(),
        "left_out": bench.left_out,
        "seconds": run["seconds"],
    }


def _rounded(value: float | int | None) -> float | int | None:
    return round(value, 4) if isinstance(value, float) else value
