"""Files of tasks: JSON lines. The tasks themselves are those of `xpress_struct.lab.bench.tasks`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from xpress_struct.lab.bench.tasks.calls import call_task
from xpress_struct.lab.bench.tasks.task import Task

__all__ = ["read_rows", "read_tasks"]


def read_rows(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def read_tasks(path: str | Path) -> list[Task]:
    """Every function-calling task of a file, in its order; see `call_task` for the rows."""
    return [call_task(row) for row in read_rows(path)]
