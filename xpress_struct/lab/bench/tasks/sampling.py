"""Which tasks are run: a sample that is spread evenly, and the same one for the same seed."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Sequence

from xpress_struct.errors import XPressError
from xpress_struct.lab.bench.tasks.sources import Source
from xpress_struct.lab.bench.tasks.task import Task, prompt_ids
from xpress_struct.model import Model

__all__ = ["draw_tasks", "sample"]


def sample(tasks: list[Task], limit: int | None, seed: int = 0) -> list[Task]:
    """`limit` tasks in a shuffled order, the same ones for the same seed.

    Every group gets its share of the limit, by largest remainder, and at least two tasks (fewer
    when the limit or the group has no room for them).
    """
    by_group: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        by_group[task.group].append(task)
    shuffler = random.Random(seed)
    for group in by_group.values():
        shuffler.shuffle(group)
    limit = len(tasks) if limit is None else min(limit, len(tasks))
    largest_first = sorted(by_group, key=lambda name: -len(by_group[name]))
    least = min(2, limit // len(by_group))
    counts = {name: min(least, len(by_group[name])) for name in largest_first}
    share = {name: limit * len(by_group[name]) / len(tasks) for name in largest_first}
    while sum(counts.values()) < limit:
        open_ones = [name for name in largest_first if counts[name] < len(by_group[name])]
        counts[max(open_ones, key=lambda name: share[name] - counts[name])] += 1
    chosen = [task for name in largest_first for task in by_group[name][: counts[name]]]
    shuffler.shuffle(chosen)
    return chosen


def draw_tasks(
    sources: Sequence[Source], limit: int | None, seed: int, model: Model, answer: int
) -> tuple[list[Task], int]:
    """`limit` tasks in all, from each source in turn, and in each from its groups in turn.

    Args:
        answer: tokens that the model must have room for behind a prompt.

    Returns:
        The tasks, and how many were drawn and left out: their constraint is refused, or they are too long.
    """
    longest = model.target.max_length
    queues = [_spread(source, random.Random(f"{seed} {source.told}")) for source in sources]
    chosen: list[Task] = []
    left_out = 0
    while any(queues) and (limit is None or len(chosen) < limit):
        for queue in queues:
            while queue and (limit is None or len(chosen) < limit):
                try:
                    task = queue.pop(0)()
                    fits = longest is None or len(prompt_ids(task, model)) + answer < longest
                except XPressError:
                    fits = False
                if fits:
                    chosen.append(task)
                    break
                left_out += 1
    return chosen, left_out


def _spread(source: Source, draw: random.Random) -> list[Callable[[], Task]]:
    """How to make each task of a source, one of every group in turn."""
    groups: dict[str, list[Callable[[], Task]]] = defaultdict(list)
    for group, make in source.rows:
        groups[group].append(make)
    names = sorted(groups)
    draw.shuffle(names)
    for each in groups.values():
        draw.shuffle(each)
    most = max(map(len, groups.values()), default=0)
    return [groups[name][place] for place in range(most) for name in names if place < len(groups[name])]
