"""Function calls: BFCL's questions and acceptable answers, and the judging of a document.

`acceptable` is BFCL's ground truth: a list of calls `{function name: {argument: [acceptable values]}}`.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema

from xpress_struct.lab.bench.tasks.task import Task
from xpress_struct.training.bfcl import bfcl_prompts

__all__ = ["WARM_UP", "bfcl_tasks", "call_task", "problem", "score"]

_SETS = ("simple_python", "live_simple", "multiple", "live_multiple", "parallel", "live_parallel")


def call_task(row: Mapping[str, Any]) -> Task:
    """A task from a row with id, messages, prompt, schema, acceptable and, as its group, category."""
    return Task(
        id=row["id"],
        category="json",
        prompt=row["prompt"],
        group=row.get("category", ""),
        messages=row["messages"],
        schema=row["schema"],
        problem=partial(problem, schema=row["schema"]),
        grade=lambda text: score(json.loads(text), row["acceptable"]),
    )


def bfcl_tasks(wheel: Path) -> list[Task]:
    """The tasks of one turn in a wheel of `bfcl-eval` whose schemas training holds out, and whose own answer
    fits the schema."""
    acceptable: dict[str, tuple[str, list[Any]]] = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in _SETS:
            lines = archive.read(f"bfcl_eval/data/possible_answer/BFCL_v4_{name}.json").decode()
            for row in map(json.loads, lines.splitlines()):
                acceptable[f"bfcl_{row['id']}"] = name, row["ground_truth"]
    tasks = []
    for prompt in bfcl_prompts(wheel):
        if prompt.id not in acceptable or not prompt.held_out or prompt.grammar is None:
            continue
        messages, schema = prompt.prompt, prompt.grammar["json_schema"]
        name, answers = acceptable[prompt.id]
        if isinstance(messages, str) or problem(json.dumps(_reference(schema, answers)), schema):
            continue
        tasks.append(
            call_task(
                {
                    "id": prompt.id,
                    "category": name,
                    "messages": messages,
                    "prompt": "\n\n".join(message["content"] for message in messages),
                    "schema": schema,
                    "acceptable": answers,
                }
            )
        )
    return tasks


def _reference(schema: Any, answers: list[Any]) -> Any:
    """The document that makes the first of the acceptable calls."""
    calls = [
        {"name": name, "arguments": _first(arguments)}
        for answer in answers
        for name, arguments in answer.items()
    ]
    return calls if schema.get("type") == "array" else calls[0] if len(calls) == 1 else calls


def _first(arguments: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, values in arguments.items():
        value = values[0] if isinstance(values, list) and values else values
        if value != "":
            found[name] = _first(value) if isinstance(value, dict) else value
    return found


def problem(text: str, schema: Any) -> str | None:
    """Why a complete text is not a valid document, or None. The whole text counts, nothing is cut out."""
    try:
        value = json.loads(text)
    except ValueError as error:
        return f"not JSON: {error}"
    checker = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    found = next(checker(schema).iter_errors(value), None)
    return None if found is None else f"schema: {found.message[:100]}"


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

WARM_UP = call_task(
    {
        "id": "warm_up",
        "category": "warm_up",
        "messages": [{"role": "user", "content": "Maria Lopez is 34 years old and lives in Madrid."}],
        "prompt": "Maria Lopez is 34 years old and lives in Madrid.",
        "schema": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "age": {"type": "integer"},
                "city": {"enum": ["Berlin", "Madrid", "Paris"]},
            },
            "required": ["name", "age", "city"],
            "additionalProperties": False,
        },
        "acceptable": [],
    }
)
"""Runs through every system before anything is measured."""
