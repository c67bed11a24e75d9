"""Function-calling tasks: reading them, sampling them, and judging an answer.

A task file holds JSON lines with `id`, `category`, `messages`, `prompt`, `schema` and `acceptable`.
`acceptable` is BFCL's ground truth: a list of calls `{function name: {argument: [acceptable values]}}`.
"""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema

__all__ = ["WARM_UP", "Task", "problem", "read_rows", "read_tasks", "sample", "score"]


@dataclass(frozen=True)
class Task:
    """One document to write: the question, what it must look like, and which answers are right."""

    id: str
    category: str
    messages: list[dict[str, Any]]
    prompt: str
    schema: Any
    acceptable: list[dict[str, dict[str, Any]]]


def read_rows(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def read_tasks(path: str | Path) -> list[Task]:
    """Every task of a file, in its order."""
    names = Task.__dataclass_fields__
    return [Task(**{name: row[name] for name in names}) for row in read_rows(path)]


def sample(tasks: list[Task], limit: int | None, seed: int = 0) -> list[Task]:
    """`limit` tasks in a shuffled order, the same ones for the same seed.

    Every category gets its share of the limit, by largest remainder, and at least two tasks (fewer
    when the limit or the category has no room for them).
    """
    by_category: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        by_category[task.category].append(task)
    shuffler = random.Random(seed)
    for group in by_category.values():
        shuffler.shuffle(group)
    limit = len(tasks) if limit is None else min(limit, len(tasks))
    largest_first = sorted(by_category, key=lambda name: -len(by_category[name]))
    least = min(2, limit // len(by_category))
    counts = {name: min(least, len(by_category[name])) for name in largest_first}
    share = {name: limit * len(by_category[name]) / len(tasks) for name in largest_first}
    while sum(counts.values()) < limit:
        open_ones = [name for name in largest_first if counts[name] < len(by_category[name])]
        counts[max(open_ones, key=lambda name: share[name] - counts[name])] += 1
    chosen = [task for name in largest_first for task in by_category[name][: counts[name]]]
    shuffler.shuffle(chosen)
    return chosen


def problem(text: str, schema: Any) -> str | None:
    """Why a complete text is not a valid document, or None. The whole text counts, nothing is cut out."""
    try:
        value = json.loads(text)
    except ValueError as error:
        return f"not JSON: {error}"
    checker = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    error = next(checker(schema).iter_errors(value), None)
    return None if error is None else f"schema: {error.message[:100]}"


def score(value: Any, acceptable: list[dict[str, dict[str, Any]]]) -> bool:
    """Whether a document makes exactly the acceptable calls.

    The rules of BFCL's checker: as many calls as there are acceptable ones, matched in any order, each of
    them used once; a call has the function's name and no argument that is not listed; each argument equals
    one of its listed values; an argument may be absent only when "" is listed. Texts are compared without
    case, blanks and the signs `,./-_*^`, with ' for "; numbers by value (5 equals 5.0, True is no number);
    lists item by item; objects member by member, each against its own list of acceptable values.
    """
    calls = value if isinstance(value, list) else [value]
    return len(calls) == len(acceptable) and _pair_up(calls, acceptable)


def _pair_up(calls: list[Any], wanted: list[Any]) -> bool:
    if not calls:
        return True
    return any(
        _is_call(calls[0], want) and _pair_up(calls[1:], wanted[:place] + wanted[place + 1 :])
        for place, want in enumerate(wanted)
    )


def _is_call(call: Any, want: dict[str, dict[str, Any]]) -> bool:
    if not isinstance(call, dict) or not isinstance(call.get("arguments"), dict):
        return False
    name, arguments = next(iter(want.items()))
    return call.get("name") == name and _members(call["arguments"], arguments)


def _members(found: dict[str, Any], want: dict[str, Any]) -> bool:
    if not found.keys() <= want.keys():
        return False
    for name, values in want.items():
        values = values if isinstance(values, list) else [values]
        if name not in found:
            if "" not in values:
                return False
        elif not any(_same(found[name], value) for value in values):
            return False
    return True


def _same(found: Any, want: Any) -> bool:
    if isinstance(want, dict):
        return isinstance(found, dict) and _members(found, want)
    if isinstance(want, list):
        return isinstance(found, list) and len(found) == len(want) and all(map(_same, found, want))
    if isinstance(want, str):
        return isinstance(found, str) and _plain(found) == _plain(want)
    if isinstance(want, bool) or want is None:
        return found is want
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return False
    return found == want or math.isclose(found, want, rel_tol=1e-12)


def _plain(text: str) -> str:
    return text.translate(_PLAIN).lower()


_PLAIN = str.maketrans("'", '"', " ,./-_*^")

WARM_UP = Task(
    id="warm_up",
    category="warm_up",
    messages=[{"role": "user", "content": "Maria Lopez is 34 years old and lives in Madrid."}],
    prompt="Maria Lopez is 34 years old and lives in Madrid.",
    schema={
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer"},
            "city": {"enum": ["Berlin", "Madrid", "Paris"]},
        },
        "required": ["name", "age", "city"],
        "additionalProperties": False,
    },
    acceptable=[],
)
"""Runs once through every system before anything is measured."""
