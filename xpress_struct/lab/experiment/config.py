"""The file of an experiment: YAML, read with the lines of what is wrong."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

from xpress_struct.drafting.control import Refine
from xpress_struct.errors import ArgumentError, ModelError
from xpress_struct.lab.bench.tasks.task import CATEGORIES
from xpress_struct.sampling import Rule

__all__ = ["AXES", "Config", "read_config"]

AXES = (
    "drafter",
    "block_length",
    "denoising_steps",
    "refine",
    "refine_passes",
    "acceptance",
    "temperature",
    "draft_temperature",
    "draft_confidence",
)
"""What a grid may have: arguments of `generate`, in the order in which cells are told."""


@dataclass(frozen=True)
class Config:
    """An experiment.

    Attributes:
        title: the question.
        grid: values by axis. An axis that is left out stays as the library has it.
        model: hub id or folder; None is the embedded model.
        tasks: as of `xpress-struct bench`.
        limit: documents in all, the same ones for every cell.
        max_new_tokens, seed, threads: as of `xpress-struct bench`.
        guard: whether a drafter that costs more than it saves is held back. False always drafts.
    """

    title: str
    grid: Mapping[str, list[Any]]
    model: str | None = None
    tasks: list[str] = field(default_factory=lambda: list(CATEGORIES))
    limit: int = 8
    max_new_tokens: int = 96
    seed: int = 0
    threads: int = 1
    guard: bool = False

    @property
    def hash(self) -> str:
        """Of all that its rows depend on."""
        told = asdict(self)
        del told["title"]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def read_config(path: str | Path) -> Config:
    """Reads a file.

    Raises:
        ArgumentError: it cannot be read, or says something that has no meaning; the message has the line.
        ModelError: PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError:
        raise ModelError('Experiments need PyYAML: pip install "xpress-struct[bench]".') from None
    try:
        text = Path(path).read_text(encoding="utf-8")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{str(path)!r} cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise ArgumentError(f"{str(path)!r} is no YAML: {' '.join(str(error).split())}") from None
    return _Reader(str(path), yaml).config(root)


class _Reader:
    def __init__(self, path: str, yaml: Any) -> None:
        self.path, self.yaml = path, yaml

    def config(self, root: Any) -> Config:
        if root is None:
            raise ArgumentError(f"{self.path!r} is empty.")
        fields = self.mapping(root, "an experiment", tuple(Config.__dataclass_fields__))
        for name in ("title", "grid"):
            if name not in fields:
                self.fail(root, f"{name!r} is missing")
        told: dict[str, Any] = {"grid": self.grid(fields.pop("grid"))}
        for name, node in fields.items():
            value = self.value(node)
            words, fits = _SETTINGS[name]
            if not fits(value):
                self.fail(node, f"{name} is {value!r}: it must be {words}")
            told[name] = value
        return Config(**told)

    def grid(self, node: Any) -> dict[str, list[Any]]:
        axes = {}
        for name, each in self.mapping(node, "the grid", AXES).items():
            nodes = each.value if isinstance(each, self.yaml.SequenceNode) else [each]
            if not nodes:
                self.fail(each, f"the axis {name} has no value")
            values = [self.value(one) for one in nodes]
            words, fits = _VALUES[name]
            for place, (one, value) in enumerate(zip(nodes, values, strict=True)):
                if not fits(value):
                    self.fail(one, f"{name} is {value!r}: it must be {words}")
                if value in values[:place]:
                    self.fail(one, f"{name} has {value!r} twice")
            axes[name] = values
        if not axes:
            self.fail(node, "the grid is empty")
        return {name: axes[name] for name in AXES if name in axes}

    def mapping(self, node: Any, what: str, known: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(node, self.yaml.MappingNode):
            self.fail(node, f"{what} must be names with values ({', '.join(known)})")
        found: dict[str, Any] = {}
        for key, value in node.value:
            name = self.value(key)
            if name not in known:
                near = difflib.get_close_matches(str(name), known, 1, 0.5)
                hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
                self.fail(key, f"{name!r} is no part of {what}; {hint}")
            if name in found:
                self.fail(key, f"{name!r} is told twice")
            found[name] = value
        return found

    def value(self, node: Any) -> Any:
        return self.yaml.SafeLoader("").construct_object(node, deep=True)

    def fail(self, node: Any, what: str) -> None:
        raise ArgumentError(f"{self.path}, line {node.start_mark.line + 1}: {what}.")


def _whole(least: int, most: float = float("inf")) -> Any:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _number(least: float, most: float = float("inf")) -> Any:
    return lambda value: (
        isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most
    )


def _one_of(*words: str) -> Any:
    return lambda value: value in words


def _or_auto(fits: Any) -> Any:
    return lambda value: value == "auto" or fits(value)


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


_REFINE, _RULES = get_args(Refine), get_args(Rule)
_VALUES: dict[str, tuple[str, Any]] = {
    "drafter": ("model, lookup, none, or a checkpoint", _text),
    "block_length": ("a whole number from 1, or auto", _or_auto(_whole(1))),
    "denoising_steps": ("a whole number from 1 to 40", _whole(1, 40)),
    "refine": (f"one of {', '.join(_REFINE)}", _one_of(*_REFINE)),
    "refine_passes": ("a whole number from 1, or auto", _or_auto(_whole(1))),
    "acceptance": (f"one of {', '.join(_RULES)}", _one_of(*_RULES)),
    "temperature": ("a number from 0", _number(0)),
    "draft_temperature": ("a number from 0", _number(0)),
    "draft_confidence": ("a number from 0 to 1", _number(0, 1)),
}
_SETTINGS: dict[str, tuple[str, Any]] = {
    "title": ("a text", _text),
    "model": ("a hub id or a folder", lambda value: value is None or _text(value)),
    "tasks": (
        "a list of categories and files",
        lambda value: isinstance(value, list) and bool(value) and all(map(_text, value)),
    ),
    "limit": ("a whole number from 1", _whole(1)),
    "max_new_tokens": ("a whole number from 1", _whole(1)),
    "seed": ("a whole number from 0", _whole(0)),
    "threads": ("a whole number from 1", _whole(1)),
    "guard": ("true or false", lambda value: isinstance(value, bool)),
}
