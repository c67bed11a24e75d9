"""One run: the same prompts through every system, document by document."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tqdm import tqdm

from xpress_struct.lab.bench.meter import GREEDY, Draw, Meter, Run, measure, told
from xpress_struct.lab.bench.record import row_of
from xpress_struct.lab.bench.systems.plain import Setting
from xpress_struct.lab.bench.systems.registry import failed, make_system
from xpress_struct.lab.bench.tasks.calls import WARM_UP
from xpress_struct.lab.bench.tasks.task import Task, prompt_ids
from xpress_struct.lab.rows import Row

__all__ = ["Bench", "Mode", "interleaved", "set_up"]

Mode = Literal["greedy", "sampled"]
SAMPLED_ONE_IN = 4
"""Of the documents that are run greedily, one in this many is also sampled."""


def set_up(
    names: Sequence[str], setting: Setting, make: Callable[[str, Setting], Any] = make_system
) -> tuple[list[Any], dict[str, str]]:
    """The systems that work, warm, and why the others do not."""
    working: list[Any] = []
    errors: dict[str, str] = {}
    for name in tqdm(names, desc="warm-up", file=sys.stderr):
        try:
            system = make(name, setting)
            for _ in range(2):
                system.run(WARM_UP, GREEDY)
            working.append(system)
        except Exception as error:  # of any kind: it is a peer's
            errors[name] = failed(error)
    return working, errors


def interleaved(
    tasks: Sequence[Task], systems: Sequence[Any], modes: Sequence[Mode]
) -> Iterator[tuple[Task, Mode, list[Any]]]:
    """Documents in their order, and for each the systems that take it; who goes first changes each time."""
    sampled = math.ceil(len(tasks) / SAMPLED_ONE_IN) if "greedy" in modes else len(tasks)
    turn = 0
    for place, task in enumerate(tasks):
        able = [system for system in systems if task.category in system.takes]
        for mode in modes:
            if mode == "sampled" and place >= sampled:
                continue
            shift = turn % max(1, len(able))
            turn += 1
            yield task, mode, able[shift:] + able[:shift]


@dataclass
class Bench:
    """Runs documents through systems.

    Attributes:
        tasks: in the order in which they are run.
        systems: warm ones.
        temperature, seed: of sampled runs.
        seconds: no document begins after so long; None runs all.
        left_out: ids of documents that the seconds left out.
    """

    setting: Setting
    tasks: Sequence[Task]
    systems: Sequence[Any]
    modes: Sequence[Mode]
    temperature: float = 0.7
    seed: int = 0
    seconds: float | None = None
    left_out: list[str] = field(default_factory=list)
    _unprepared: dict[tuple[str, str], str] = field(default_factory=dict)
    _ids: dict[tuple[str, Mode], dict[str, list[int]]] = field(default_factory=dict)

    def prepare(self) -> None:
        """Lets every system compile the grammars that several documents share; no row counts that."""
        for system in self.systems:
            if not hasattr(system, "prepare"):
                continue
            tasks = [task for task in self.tasks if task.category in system.takes]
            for task in tqdm(tasks, desc=f"{system.name}: prepare", file=sys.stderr):
                try:
                    system.prepare(task)
                except Exception as error:  # of any kind: it is a peer's
                    self._unprepared[system.name, task.id] = told(error)

    def run(self, write: Callable[[Row], None]) -> None:
        """Runs all, and hands every row on as it comes."""
        started = time.perf_counter()
        meter = self.setting.meter
        assert meter is not None
        places = {task.id: place for place, task in enumerate(self.tasks)}
        with tqdm(total=len(self.tasks), desc="documents", file=sys.stderr) as bar:
            done = 0
            for task, mode, systems in interleaved(self.tasks, self.systems, self.modes):
                if places[task.id] > done:
                    bar.update()
                    done = places[task.id]
                over = self.seconds is not None and time.perf_counter() - started > self.seconds
                if task.id in self.left_out or (over and mode == self.modes[0]):
                    self.left_out.append(task.id)
                    continue
                draw = Draw(self.temperature, self.seed + places[task.id]) if mode == "sampled" else GREEDY
                ids = prompt_ids(task, self.setting.model)
                for system in systems:
                    bar.set_postfix_str(f"{task.id} {mode} {system.name}")
                    write(row_of(system.name, self._measure(system, task, ids, meter, draw, mode), mode))
            bar.update(len(self.tasks) - done)
        self.left_out = sorted(set(self.left_out), key=places.__getitem__)

    def equal_ids(self) -> dict[str, int]:
        """Documents and modes in which all of our systems wrote the same tokens, of how many."""
        mine = [each for each in self._ids.values() if len(each) > 1]
        equal = sum(len({tuple(ids) for ids in each.values()}) == 1 for each in mine)
        return {"compared": len(mine), "equal": equal}

    def _measure(self, system: Any, task: Task, ids: list[int], meter: Meter, draw: Draw, mode: Mode) -> Run:
        refused = self._unprepared.get((system.name, task.id))
        if refused is not None:
            score = None if task.grade is None else False
            return Run(task, error=refused, reason=refused, score=score)
        run = measure(system, task, ids, meter, draw)
        if run.answer is not None and system.name.startswith("ours-"):
            self._ids.setdefault((task.id, mode), {})[system.name] = run.answer.ids
        return run
