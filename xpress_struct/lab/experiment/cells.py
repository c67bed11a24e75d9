"""The cells of a grid: every combination once, without values that make no difference."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, Literal

__all__ = ["BASELINE", "Cell", "baselines_of", "cell_id", "cells_of", "mode_of"]

Cell = dict[str, Any]
"""Value by axis; None where the value makes no difference, or the library chooses."""

BASELINE = "none"
"""Name of the system that drafts nothing, which every other cell is compared with."""
_PARALLEL = ("parallel", "low-confidence", "chunked")
_OF_A_DRAFTER: tuple[str, ...] = ("block_length", "denoising_steps", "refine", "refine_passes")
_OF_A_DRAFTER += ("draft_temperature", "draft_confidence", "acceptance")
_OF_A_BLOCK = ("denoising_steps", "refine", "refine_passes", "draft_temperature", "draft_confidence")


def cells_of(grid: Mapping[str, list[Any]]) -> list[Cell]:
    """All cells but the baselines.

    Passes belong to parallel refinement, a draft temperature and an acceptance rule to sampling, and all that
    is about drafts to a drafter: elsewhere these values are dropped, and cells that become equal are one.
    """
    axes = {"drafter": ["model"]} | dict(grid)
    found: dict[str, Cell] = {}
    for values in product(*axes.values()):
        cell = _without_idle(dict(zip(axes, values, strict=True)))
        found.setdefault(cell_id(cell), cell)
    same = [cell_id(baseline) for baseline in baselines_of(grid)]
    return [cell for name, cell in found.items() if name not in same]


def baselines_of(grid: Mapping[str, list[Any]]) -> list[Cell]:
    """What cells are compared with: decoding without a drafter, greedy and at the first temperature above 0,
    as far as the grid has cells of that mode."""
    axes = {"drafter": ["model"]} | dict(grid)
    found: dict[str, Cell] = {}
    for temperature in axes.get("temperature", [None]):
        baseline: Cell = dict.fromkeys(axes) | {"drafter": "none"}
        if temperature is not None:
            baseline["temperature"] = temperature
        found.setdefault(mode_of(baseline), baseline)
    return list(found.values())


def mode_of(cell: Cell) -> Literal["greedy", "sampled"]:
    """How a cell chooses tokens."""
    return "sampled" if cell.get("temperature") else "greedy"


def _without_idle(cell: Cell) -> Cell:
    idle: tuple[str, ...] = ()
    if cell["drafter"] == "none":
        idle += _OF_A_DRAFTER
    elif cell["drafter"] == "lookup":
        idle += _OF_A_BLOCK
    if "refine" in cell and cell["refine"] not in _PARALLEL:
        idle += ("refine_passes",)
    if not cell.get("temperature"):
        idle += ("draft_temperature", "acceptance")
    return {name: None if name in idle else value for name, value in cell.items()}


def cell_id(cell: Cell) -> str:
    """The cell in one line, the same in every run."""
    told = [f"{name}={value}" for name, value in cell.items() if value is not None]
    return " ".join(told)
