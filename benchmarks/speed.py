"""Speed and quality on function-calling tasks, beside `generate` of transformers under other masks.

    python -m benchmarks.speed --tasks ../shared/data/json_tasks.jsonl --limit 40

One run, one thread, the same prompts, the same layout, interleaved document by document. It prints tables
and ends with one line `RESULT {...}`. See benchmarks/README.md for what the columns mean.
"""

from __future__ import annotations

import argparse
import os
import sys

import torch
from tqdm import tqdm

import xpress_struct as xs
from benchmarks.report import Report
from benchmarks.tasks import read_tasks
from xpress_struct.lab.bench.meter import Meter, Run, System, measure
from xpress_struct.lab.bench.run import interleaved, set_up
from xpress_struct.lab.bench.systems.plain import Setting
from xpress_struct.lab.bench.tasks.sampling import sample
from xpress_struct.lab.bench.tasks.task import Task, prompt_ids

SYSTEMS = ["plain", "llguidance", "xgrammar", "outlines", "ours-none", "ours-lookup", "ours-all"]


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.speed", description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--tasks", required=True, help="JSON lines with id, category, messages, prompt, schema, acceptable"
    )
    parser.add_argument("--limit", type=int, help="how many tasks, spread over the categories")
    parser.add_argument("--model", help="hub id or folder; the embedded model by default")
    parser.add_argument("--drafter", help="of ours-all, beside lookup; default: the model's own")
    parser.add_argument("--max-new-tokens", type=int, default=256)
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="comma-separated names")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--compile-timeout", type=float, default=30.0, help="seconds for an Outlines index")
    options = parser.parse_args(given)
    options.systems = options.systems.split(",")
    if unknown := set(options.systems) - set(SYSTEMS):
        parser.error(f"unknown systems {sorted(unknown)}; known: {', '.join(SYSTEMS)}")
    return options


def run_all(
    systems: list[System], tasks: list[Task], prompts: dict[str, list[int]], meter: Meter
) -> dict[str, list[Run]]:
    """Every task through every system; who goes first changes from task to task."""
    runs: dict[str, list[Run]] = {system.name: [] for system in systems}
    with tqdm(total=len(tasks) * len(systems), desc="runs", file=sys.stderr) as bar:
        for task, _, turn in interleaved(tasks, systems, ("greedy",)):
            for system in turn:
                bar.set_postfix_str(f"{task.id} {system.name}")
                runs[system.name].append(measure(system, task, prompts[task.id], meter))
                bar.update()
    return runs


def main() -> None:
    options = arguments()
    torch.set_num_threads(1)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    tasks = sample(read_tasks(options.tasks), options.limit, options.seed)
    model = xs.load(options.model, drafter=[options.drafter, "lookup"] if options.drafter else "auto")
    prompts = {task.id: prompt_ids(task, model) for task in tasks}
    meter = Meter(model.target.model)
    setting = Setting(
        model, options.max_new_tokens, options.compile_timeout, meter=meter, drafter=model.drafter
    )
    systems, failed = set_up(options.systems, setting)
    for system in systems:
        if hasattr(system, "prepare"):
            for task in tqdm(tasks, desc=f"{system.name}: try compiling", file=sys.stderr):
                system.prepare(task)
    runs = run_all(systems, tasks, prompts, meter)
    Report(options, runs, failed, model, prompts).print()


if __name__ == "__main__":
    main()
