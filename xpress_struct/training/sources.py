"""Where prompts come from: BFCL, made up, and JSON-lines files in the forms that are known."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from xpress_struct.errors import ArgumentError
from xpress_struct.training.bfcl import bfcl_prompts
from xpress_struct.training.made_up import made_up_prompts
from xpress_struct.training.made_up.sql import sql_ask
from xpress_struct.training.prompts import TrainPrompt, read_own
from xpress_struct.training.split import group_of

__all__ = ["read_prompts"]

_MADE_UP = 2000
_LONGEST_SCHEMA, _LONGEST_INSTANCE = 1200, 500


def read_prompts(sources: Iterable[str | Path]) -> list[TrainPrompt]:
    """All prompts of several sources; of those with the same id the first.

    Args:
        sources: each "bfcl" (fetched from PyPI), a wheel of `bfcl-eval`, "made-up" (the same 2,000 of each
            kind every time), or a file of JSON lines: `TrainPrompt`s as `read_own` takes them; function
            calls (id, messages, schema); questions with tables (id, db_id, question, schema); documents
            with a schema (id, schema, instances); code (id, prompt, entry_point); instructions (id,
            instruction, prompt).

    Raises:
        ArgumentError: a source is none of these.
        ModelError: BFCL cannot be fetched.
    """
    found: dict[str, TrainPrompt] = {}
    for source in sources:
        for prompt in _read(str(source)):
            found.setdefault(prompt.id, prompt)
    return list(found.values())


def _read(source: str) -> Iterable[TrainPrompt]:
    if source == "bfcl":
        return bfcl_prompts()
    if source == "made-up":
        return made_up_prompts(_MADE_UP)
    path = Path(source)
    if not path.is_file():
        raise ArgumentError(f"--prompts {source!r} is neither 'bfcl' nor 'made-up' nor a file.")
    if path.suffix == ".whl":
        return bfcl_prompts(path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines if line.strip()]
    except ValueError as error:
        raise ArgumentError(f"The prompt file {source!r} holds no JSON lines: {error}") from None
    return [prompt for row in rows for prompt in _reader(row)(row)]


def _reader(row: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], list[TrainPrompt]]:
    for fields, reader in _FORMS:
        if fields <= row.keys():
            return reader
    return lambda row: [read_own(row)]


def _calls(row: Mapping[str, Any]) -> list[TrainPrompt]:
    schema = row["schema"]
    return [TrainPrompt(row["id"], "calls", row["messages"], {"json_schema": schema}, group_of(schema))]


def _sql(row: Mapping[str, Any]) -> list[TrainPrompt]:
    ask = sql_ask(row["schema"], row["question"])
    return [TrainPrompt(row["id"], "sql", ask, {"sql": row["schema"]}, group_of(row["db_id"]))]


def _documents(row: Mapping[str, Any]) -> list[TrainPrompt]:
    """A document is told in words, line by line, and asked for again."""
    schema = row["schema"]
    if not isinstance(schema, dict) or len(json.dumps(schema)) > _LONGEST_SCHEMA:
        return []
    prompts = []
    for number, instance in enumerate(row["instances"]):
        if len(json.dumps(instance)) <= _LONGEST_INSTANCE:
            ask = "Write a JSON document with this content:\n" + "\n".join(_told(instance))
            grammar = {"json_schema": schema}
            prompts.append(TrainPrompt(f"{row['id']}/{number}", "extraction", ask, grammar, group_of(schema)))
    return prompts


def _told(value: Any, name: str = "") -> list[str]:
    if isinstance(value, dict) and value:
        return [line for key, item in value.items() for line in _told(item, f"{name} {key}".strip())]
    if isinstance(value, list) and value:
        return [
            line for place, item in enumerate(value, 1) for line in _told(item, f"{name} {place}".strip())
        ]
    return [f"{name}: {value}" if name else str(value)]


def _code(row: Mapping[str, Any]) -> list[TrainPrompt]:
    ask = row["prompt"] if row.get("kind") != "completion" else f"Complete this code:\n\n{row['prompt']}"
    return [TrainPrompt(row["id"], "code", ask, None, group_of(row["prompt"]))]


def _chat(row: Mapping[str, Any]) -> list[TrainPrompt]:
    return [TrainPrompt(row["id"], "chat", row["prompt"], None, group_of(row["prompt"]))]


_FORMS: tuple[tuple[set[str], Callable[[Mapping[str, Any]], list[TrainPrompt]]], ...] = (
    ({"messages", "schema"}, _calls),
    ({"db_id", "question", "schema"}, _sql),
    ({"instances", "schema"}, _documents),
    ({"prompt", "entry_point"}, _code),
    ({"instruction", "prompt"}, _chat),
)
