"""TrainPrompt: what the target is asked, so that its responses can be learned from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.json_schema import json_schema
from xpress_struct.constraints.lark import lark
from xpress_struct.constraints.sql import sql
from xpress_struct.errors import ArgumentError
from xpress_struct.model import Model
from xpress_struct.prompt import Prompt
from xpress_struct.training.split import group_of, is_held_out

__all__ = ["CATEGORIES", "Category", "TrainPrompt", "constraint_of", "read_own", "write_own"]

Category = Literal["calls", "extraction", "sql", "code", "chat"]
CATEGORIES: tuple[Category, ...] = ("calls", "extraction", "sql", "code", "chat")


@dataclass(frozen=True, slots=True)
class TrainPrompt:
    """A prompt, and what the response must be.

    Attributes:
        id: unique among all sources.
        category: kind of task.
        prompt: chat messages, or a text that is one user message where the target has a chat template.
        grammar: {"json_schema": schema} (shown after the prompt, as `generate_json` does),
            {"sql": CREATE statements} (one SELECT over these tables), {"lark": text or name}, or None: free
            text.
        group: what it is held out by; see `group_of`.
    """

    id: str
    category: Category
    prompt: str | list[dict[str, Any]]
    grammar: Mapping[str, Any] | None
    group: str

    @property
    def held_out(self) -> bool:
        """Whether it serves evaluation only."""
        return is_held_out(self.group)

    def shown(self, model: Model, constraint: Constraint | None) -> Prompt:
        """The prompt as the library would ask it."""
        if constraint is None:
            return self.prompt
        return model.prompt_with_schema(self.prompt, constraint)


def constraint_of(grammar: Mapping[str, Any] | None) -> Constraint | None:
    """The constraint that a `grammar` stands for.

    Raises:
        SchemaError, GrammarError, UnsupportedFeatureError: it does not compile.
    """
    if grammar is None:
        return None
    if "sql" in grammar:
        # What SQLite would refuse is still what the target says under these masks.
        return sql(grammar["sql"], statements=("select",), check=False)
    if "lark" in grammar:
        return lark(grammar["lark"])
    return json_schema(grammar["json_schema"])


def write_own(prompts: Iterable[TrainPrompt], path: str | Path) -> None:
    """Writes prompts as JSON lines that `read_own` reads."""
    with open(path, "w", encoding="utf-8") as file:
        for item in prompts:
            row = {"id": item.id, "category": item.category, "prompt": item.prompt, **(item.grammar or {})}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_own(row: Mapping[str, Any]) -> TrainPrompt:
    """A prompt from a line {"id", "category", "prompt", and "json_schema", "sql", "lark" or none}.

    Raises:
        ArgumentError: a field is missing or has no meaning.
    """
    category, prompt = row.get("category"), row.get("prompt")
    if category not in CATEGORIES or "id" not in row or not isinstance(prompt, (str, list)):
        raise ArgumentError(
            "A line of a prompt file needs an id, a category (one of "
            f"{', '.join(CATEGORIES)}) and a prompt (text or chat messages); this one has {sorted(row)}."
        )
    grammar = {name: row[name] for name in ("json_schema", "sql", "lark") if name in row} or None
    held_by = row.get("json_schema", prompt)
    return TrainPrompt(str(row["id"]), category, prompt, grammar, group_of(held_by))
