"""The charts of an experiment: a line for each way of refining, over block lengths, a panel for the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from xpress_struct.lab.report.about import baseline_label, varied
from xpress_struct.lab.report.columns import number, plain
from xpress_struct.lab.report.curves import Curve, curves
from xpress_struct.lab.report.figures import Spread, Summary, summaries
from xpress_struct.lab.report.run import Run
from xpress_struct.lab.report.sections import Panel, Section, slots_section

__all__ = ["ablation_sections", "roles"]

FAR = 1.5  # times the largest figure of the cells: a baseline beyond it would flatten all lines

Place = tuple[tuple[str, Any], ...]


def roles(run: Run) -> tuple[str | None, str | None, list[str]]:
    """Which axis is x, which one makes the lines, which ones make the panels.

    x is "block_length" where that varies, else the first axis of numbers, else the first; lines are "refine"
    where that varies, else the next axis that does.
    """
    axes = varied(run)
    numeric = [axis for axis in axes if all(type(value) in (int, float) for value in run.axes[axis])]
    x = "block_length" if "block_length" in axes else next(iter([*numeric, *axes]), None)
    rest = [axis for axis in axes if axis != x]
    lines = "refine" if "refine" in rest else next(iter(rest), None)
    return x, lines, [axis for axis in rest if axis != lines]


def ablation_sections(run: Run, mode: str) -> list[Section]:
    """The charts of an experiment in one mode, over all its categories."""
    found = summaries(run, mode)
    cells = [each for each in found if each.cell]
    x, _, others = roles(run)
    if x is None:
        return [slots_section([("All cells", cells)], f"{mode}-slots")]
    level = next((each for each in found if each.is_base and not each.cell), None)
    spread = (
        "Each point is the median over completed documents; the y axis begins at 0, the same in all panels."
    )
    per_forward = _panels(
        run, cells, level, lambda each: each.tokens_per_forward, f"{mode}-forward", "tokens per forward"
    )
    per_token = _panels(
        run, cells, level, lambda each: each.seconds_per_token, f"{mode}-token", "seconds per token"
    )
    against = f" The dashed line, where it fits, is {baseline_label(run)}." if level else ""
    by_block = [axis for axis in [x, *others] if axis in varied(run)]
    slots = [(_title(place) or "All cells", _at(cells, place)) for place in _places(run, by_block)]
    lines = roles(run)[1]
    return [
        Section("Tokens per forward", spread + against, "higher", per_forward),
        Section(
            "Seconds per token", "The whole call, prompt included. " + spread + against, "lower", per_token
        ),
        slots_section(slots, f"{mode}-slots", [lines] if lines else []),
    ]


def _panels(
    run: Run,
    cells: Sequence[Summary],
    level: Summary | None,
    figure: Callable[[Summary], Spread | None],
    name: str,
    y: str,
) -> list[Panel]:
    x, lines, others = roles(run)
    assert x is not None
    reach = max((value.middle for each in cells if (value := figure(each))), default=1.0)
    flat = figure(level) if level else None
    near = flat is not None and flat.middle <= FAR * reach
    reach = max(reach, flat.middle) if flat and near else reach
    beyond = f"; {baseline_label(run)}: {number(flat.middle)}, beyond the axis" if flat and not near else ""
    systems = list(dict.fromkeys(each.system.label for each in cells))
    panels = []
    for at, place in enumerate(_places(run, others)):
        here = _at(cells, place)
        drawn = []
        for system, line in product(systems, _places(run, [lines] if lines else [])):
            values = [
                _middle(
                    figure, _at([each for each in here if each.system.label == system], (*line, (x, value)))
                )
                for value in run.axes[x]
            ]
            label = ", ".join(
                [*([system] if len(systems) > 1 or not lines else []), *(plain(value) for _, value in line)]
            )
            drawn.append(Curve(label, values))
        counts = sorted({len(each.done) for each in here})
        title, note = _title(place) or "All cells", f"{_range(counts)} documents a point{beyond}"
        svg = curves(
            drawn,
            [plain(value) for value in run.axes[x]],
            name=f"{name}-{at}",
            title=title,
            x=x,
            y=y,
            reach=reach,
            level=(baseline_label(run), flat.middle) if flat and near else None,
        )
        panels.append(Panel(title, svg, note))
    return panels


def _middle(figure: Callable[[Summary], Spread | None], found: Sequence[Summary]) -> float | None:
    value = figure(found[0]) if found else None
    return None if value is None else value.middle


def _places(run: Run, axes: Sequence[str]) -> list[Place]:
    return [tuple(zip(axes, values, strict=True)) for values in product(*(run.axes[axis] for axis in axes))]


def _at(cells: Sequence[Summary], place: Place) -> list[Summary]:
    return [each for each in cells if all(_same(each.cell, axis, value) for axis, value in place)]


def _same(cell: Mapping[str, Any], axis: str, value: Any) -> bool:
    return axis in cell and cell[axis] == value and type(cell[axis]) is type(value)


def _title(place: Place) -> str:
    return ", ".join(f"{axis} {plain(value)}" for axis, value in place)


def _range(counts: Sequence[int]) -> str:
    if not counts:
        return "0"
    return str(counts[0]) if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
