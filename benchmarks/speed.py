"""Speed and quality on function-calling tasks, beside `generate` of transformers under other masks.

    python -m benchmarks.speed --tasks ../shared/data/json_tasks.jsonl --limit 40

One run, one thread, the same prompts, the same layout, interleaved document by document. It prints tables
and ends with one line `RESULT {...}`. See benchmarks/README.md for what the columns mean.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from functools import partial

import torch
from tqdm import tqdm

import xpress_struct as xs
from benchmarks.meter import Answer, Meter, Run, System, measure
from benchmarks.peers import PEERS, prompt_of
from benchmarks.report import Report
from benchmarks.tasks import WARM_UP, Task, read_tasks, sample
from xpress_struct.prompt import encode_prompt

OURS = {"ours-none": None, "ours-lookup": "lookup", "ours-all": "model"}
SYSTEMS = [*PEERS, *OURS]


class Ours:
    """This library, with or without a drafter."""

    def __init__(self, name: str, model: xs.Model, limit: int, compile_timeout: float) -> None:
        self.name, self.model, self.limit = name, model, limit

    def run(self, task: Task) -> Answer:
        xs.clear_cache()  # the schema may have been compiled for the other one of ours
        prompt = prompt_of(task, self.model)
        started = time.perf_counter()
        constraint = xs.json_schema(task.schema, layout="spaced")
        compile_s = time.perf_counter() - started
        result = self.model.generate(
            prompt,
            constraint,
            drafter=OURS[self.name],
            max_new_tokens=self.limit,
            on_limit="close",
        )
        ended_at = time.perf_counter()
        stats = result.stats
        return Answer(
            ids=list(result.token_ids),
            text=result.text,
            completed=result.finish_reason == "stop",
            closed=result.finish_reason == "closed",
            ended_at=ended_at,
            compile_s=compile_s + stats.compile_s,
            mask_s=stats.mask_s + stats.walk_s,
            apply_s=stats.accept_s,
            proposed=stats.proposed,
            accepted=stats.accepted,
            guarded=stats.guarded,
        )


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.speed", description=__doc__.split("\n\n")[0])
    parser.add_argument("--tasks", required=True, help="JSON lines, see benchmarks/tasks.py")
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


def set_up(options: argparse.Namespace, model: xs.Model) -> tuple[list[System], dict[str, str]]:
    """The systems that work, warm, and why the others do not."""
    working: list[System] = []
    failed: dict[str, str] = {}
    for name in tqdm(options.systems, desc="warm-up", file=sys.stderr):
        make = PEERS.get(name) or partial(Ours, name)
        try:
            system = make(model, options.max_new_tokens, options.compile_timeout)
            system.run(WARM_UP)
            system.run(WARM_UP)
            working.append(system)
        except Exception as error:
            traceback.print_exc()
            failed[name] = f"{type(error).__name__}: {str(error)[:300]}"
    return working, failed


def run_all(
    systems: list[System], tasks: list[Task], prompts: dict[str, list[int]], meter: Meter
) -> dict[str, list[Run]]:
    """Every task through every system; who goes first changes from task to task."""
    runs: dict[str, list[Run]] = {system.name: [] for system in systems}
    bar = tqdm(total=len(tasks) * len(systems), desc="runs", file=sys.stderr)
    for place, task in enumerate(tasks):
        shift = place % len(systems)
        for system in systems[shift:] + systems[:shift]:
            bar.set_postfix_str(f"{task.id} {system.name}")
            runs[system.name].append(measure(system, task, prompts[task.id], meter))
            bar.update()
    bar.close()
    return runs


def main() -> None:
    options = arguments()
    torch.set_num_threads(1)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    tasks = sample(read_tasks(options.tasks), options.limit, options.seed)
    model = xs.load(options.model, drafter=[options.drafter, "lookup"] if options.drafter else "auto")
    prompts = {task.id: encode_prompt(prompt_of(task, model), model.tokenizer) for task in tasks}
    meter = Meter(model.target.model)
    systems, failed = set_up(options, model)
    for system in systems:
        if hasattr(system, "prepare"):
            for task in tqdm(tasks, desc=f"{system.name}: try compiling", file=sys.stderr):
                system.prepare(task)
    runs = run_all(systems, tasks, prompts, meter)
    Report(options, runs, failed, model, prompts).print()


if __name__ == "__main__":
    main()
