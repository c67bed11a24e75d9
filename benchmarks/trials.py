"""Texts in one language through several systems: what `benchmarks.sql` and `benchmarks.code` share."""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tqdm import tqdm

import xpress_struct as xs
from benchmarks.report import print_table
from benchmarks.soundness import quantile
from xpress_struct.constraints.matcher import GrammarMatcher
from xpress_struct.errors import XPressError
from xpress_struct.lab.bench.systems.plain import unfenced
from xpress_struct.prompt import Prompt

__all__ = ["Request", "Trial", "arguments", "evenly", "mask_clock", "print_trials", "run_all", "unfenced"]

Judge = Callable[[str], str | None]
"""A text -> why it is refused, or None."""


@dataclass(frozen=True)
class Request:
    """What one system is asked for one task.

    Attributes:
        options: of `generate`.
        read: the emitted text -> the text that is judged.
    """

    prompt: Prompt
    constraint: xs.Constraint | None
    options: Mapping[str, Any] = field(default_factory=dict)
    read: Callable[[str], str] = str


@dataclass
class Trial:
    """One task through one system.

    Attributes:
        text: what was judged.
        error: what the library raised instead of a text.
        refusals: by judge, why it refuses the text, or None.
        finish: `finish_reason`, "" after an error.
        seconds: of the call; the constraint was compiled before.
        masks: CPU seconds of every mask that was made.
    """

    task: str
    text: str = ""
    error: str | None = None
    refusals: dict[str, str | None] = field(default_factory=dict)
    finish: str = ""
    retries: int = 0
    forwards: int = 0
    seconds: float = 0.0
    masks: list[float] = field(default_factory=list)

    def passes(self, judge: str) -> bool:
        return self.error is None and self.refusals[judge] is None

    @property
    def complete(self) -> bool:
        """It ended by itself."""
        return self.finish in ("stop", "stop_string")


@contextmanager
def mask_clock() -> Iterator[list[float]]:
    """CPU seconds of every mask that is made inside, those that look for a way of closing too."""
    seconds: list[float] = []
    make = GrammarMatcher.mask

    def timed(matcher: GrammarMatcher) -> Any:
        started = time.thread_time()  # a mask is shorter than what another process may take meanwhile
        try:
            return make(matcher)
        finally:
            seconds.append(time.thread_time() - started)

    GrammarMatcher.mask = timed  # type: ignore[method-assign]
    try:
        yield seconds
    finally:
        GrammarMatcher.mask = make  # type: ignore[method-assign]


def arguments(parser: argparse.ArgumentParser, systems: Sequence[str], given: list[str] | None) -> Any:
    """Reads a command line: the parser's own arguments, and those that such benchmarks share."""
    parser.add_argument("--limit", type=int, help="how many tasks, evenly over their groups")
    parser.add_argument("--model", help="hub id or folder; the embedded model by default")
    parser.add_argument("--systems", nargs="+", default=list(systems), choices=systems)
    parser.add_argument("--seed", type=int, default=0, help="of the sample, and of texts drawn again")
    return parser.parse_args(given)


def evenly(rows: Sequence[dict[str, Any]], group: str, limit: int | None, seed: int) -> list[dict[str, Any]]:
    """`limit` rows, the same number of every group as far as it goes; the same ones for the same seed."""
    draw = random.Random(seed)
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row[group]].append(row)
    for each in groups.values():
        draw.shuffle(each)
    order = sorted(groups)
    draw.shuffle(order)
    most = max(map(len, groups.values()), default=0)
    taken = [groups[name][place] for place in range(most) for name in order if place < len(groups[name])]
    return taken[:limit]


def run_all(
    model: xs.Model,
    systems: Mapping[str, Callable[[dict[str, Any]], Request]],
    rows: Sequence[dict[str, Any]],
    judges: Callable[[dict[str, Any]], Mapping[str, Judge]],
) -> dict[str, list[Trial]]:
    """Every task through every system; who goes first changes from task to task."""
    trials: dict[str, list[Trial]] = {name: [] for name in systems}
    names = list(systems)
    bar = tqdm(total=len(rows) * len(names), desc="runs", file=sys.stderr)
    for place, row in enumerate(rows):
        shift = place % len(names)
        for name in names[shift:] + names[:shift]:
            bar.set_postfix_str(f"{row['id']} {name}")
            trials[name].append(_run(model, row["id"], systems[name](row), judges(row)))
            bar.update()
    bar.close()
    return trials


def _run(model: xs.Model, task: str, request: Request, judges: Mapping[str, Judge]) -> Trial:
    trial = Trial(task)
    if request.constraint is not None:
        request.constraint.matcher(model.vocabulary)  # compiled before the clock starts
    gc.collect()
    started = time.perf_counter()
    with mask_clock() as trial.masks:
        try:
            result = model.generate(request.prompt, request.constraint, **request.options)
        except XPressError as error:
            trial.error = f"{type(error).__name__}: {error}"
            trial.text = getattr(error, "text", None) or ""
            return trial
        finally:
            trial.seconds = time.perf_counter() - started
    trial.text, trial.finish = request.read(result.text), result.finish_reason
    trial.retries, trial.forwards = result.stats.retries, result.stats.forwards
    trial.refusals = {name: judge(trial.text) for name, judge in judges.items()}
    return trial


def print_trials(trials: Mapping[str, Sequence[Trial]], judges: Sequence[str]) -> dict[str, Any]:
    """Prints the table, and what was refused; returns the figures by system.

    The last judge is the strictest.
    """
    figures = {name: _figures(each, judges) for name, each in trials.items()}
    print()
    print_table(["system"], {(name,): row for name, row in figures.items()})
    print(f"\n{_NOTE.format(last=judges[-1])}\n")
    for name, each in trials.items():
        for trial in each:
            why = trial.error or next(filter(None, trial.refusals.values()), None)
            if why:
                print(
                    f"{name} {trial.task} [{trial.finish or 'error'}]: {why[:200]}\n    {trial.text[:400]!r}"
                )
    rounded = {
        name: {
            key: value if value is None or isinstance(value, int) else round(value, 4)
            for key, value in row.items()
        }
        for name, row in figures.items()
    }
    return {name: {_key(key): value for key, value in row.items()} for name, row in rounded.items()}


def _figures(trials: Sequence[Trial], judges: Sequence[str]) -> dict[str, float | int | None]:
    done = [trial for trial in trials if trial.complete]
    masks = [seconds for trial in trials for seconds in trial.masks]

    def share(test: Callable[[Trial], bool]) -> float:
        return sum(map(test, trials)) / len(trials)

    def mean(amount: Callable[[Trial], float]) -> float | None:
        return sum(map(amount, done)) / len(done) if done else None

    def spread(q: float) -> float | None:
        return quantile(masks, q) * 1e3 if masks else None

    last = judges[-1]
    return {
        "docs": len(trials),
        **{judge: share(lambda trial, judge=judge: trial.passes(judge)) for judge in judges},  # type: ignore[misc]
        "at once": share(lambda trial: trial.passes(last) and not trial.retries),
        "complete": share(lambda trial: trial.complete),
        "closed at the limit": share(lambda trial: trial.finish == "closed"),
        "failed": share(lambda trial: trial.error is not None),
        "s/doc": mean(lambda trial: trial.seconds),
        "forwards/doc": mean(lambda trial: trial.forwards),
        "masks": len(masks),
        "mask ms p50": spread(0.5),
        "mask ms p99": spread(0.99),
        "mask ms max": spread(1.0),
    }


def _key(column: str) -> str:
    return column.replace("/", "_per_").replace(" ", "_")


_NOTE = (
    "Shares are of all documents. at once: {last} without having been drawn again. complete: ended by\n"
    'itself. closed at the limit: ended by the library there (on_limit="close"). failed: the library raised\n'
    "an error. Seconds and forwards are those of complete documents; constraints are compiled before.\n"
    "Masks, in CPU time: every one, also those that look for a way of closing.\n"
    "Of an unconstrained text only what stands in its first Markdown fence is judged, if it has one."
)
