"""Bars, one row a system: a figure with its spread, or the shares of a time. They start at 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from xpress_struct.lab.report.columns import number
from xpress_struct.lab.report.drawing import bare_axes, new_figure, to_svg
from xpress_struct.lab.report.figures import Spread
from xpress_struct.lab.report.palette import PART_COLOURS, PART_INK, colour

__all__ = ["Bar", "Stack", "bars", "stacks"]

ROW, FOOT = 40, 34
LONGEST = 36  # letters of a name that fit above a bar


@dataclass(frozen=True)
class Bar:
    """A system's figure; without one, `instead` says why."""

    label: str
    ours: bool
    found: Spread | None
    instead: str = ""


@dataclass(frozen=True)
class Stack:
    """Mean seconds by part over n documents; without parts, `instead` says why."""

    label: str
    ours: bool
    parts: dict[str, float]
    n: int
    instead: str = ""


def bars(
    items: Sequence[Bar],
    *,
    name: str,
    title: str,
    axis: str,
    unit: str = "",
    count: str = "documents",
    reach: float | None = None,
    mark: float | None = None,
) -> str:
    """Median bars with a line from the 10th to the 90th percentile.

    Args:
        count: what n counts.
        reach: largest figure of the axis; by default the largest shown.
        mark: a value to compare with, drawn as an upright line.
    """
    most = reach or max((bar.found.high for bar in items if bar.found), default=0) or 1
    figure, axes = _rows(len(items), axis, most)
    hints, told = {}, []
    for at, bar in enumerate(items):
        n = f"{bar.found.n} {count}" if bar.found else ""
        if mark is not None and bar.found:
            axes.plot(
                [mark, mark], [at - 0.04, at + 0.4], color=colour("muted"), linewidth=1.2, dashes=(2, 2)
            )
        _head(axes, at, bar.label, bar.ours, n)
        if bar.found is None:
            _instead(axes, at, most, bar.instead)
            told.append(f"{bar.label}: {bar.instead}")
            continue
        found, gid = bar.found, f"bar-{at}"
        box = Rectangle(
            (0, at), found.middle, 0.36, color=colour("ours" if bar.ours else "peer"), linewidth=0
        )
        box.set_gid(gid)
        axes.add_patch(box)
        if found.n > 1:
            _whisker(axes, at + 0.18, found)
        value = f"{number(found.middle)}{unit}"
        end = found.high if found.n > 1 else found.middle
        _value(axes, end + most * 0.025, at + 0.18, value, bar.ours)
        between = f", 10 to 90 %: {number(found.low)} to {number(found.high)}{unit}" if found.n > 1 else ""
        hints[gid] = f"{bar.label}: {value}{between}, {n}"
        told.append(hints[gid])
    return to_svg(figure, name, f"{title}. {'; '.join(told)}", hints)


def stacks(items: Sequence[Stack], *, name: str, title: str) -> str:
    """Bars of one length cut into shares, each written where there is room, the whole in seconds behind."""
    figure, axes = _rows(len(items), "share of the time of a document", 100, sign=" %")
    hints, told = {}, []
    for at, stack in enumerate(items):
        _head(axes, at, stack.label, stack.ours, f"{stack.n} documents" if stack.parts else "")
        whole = sum(stack.parts.values())
        if not whole:
            _instead(axes, at, 100, stack.instead)
            told.append(f"{stack.label}: {stack.instead}")
            continue
        start, shares = 0.0, []
        for part, seconds in stack.parts.items():
            if seconds <= 0:
                continue
            wide, gid = 100 * seconds / whole, f"part-{at}-{part}"
            box = Rectangle(
                (start, at), wide, 0.42, facecolor=PART_COLOURS[part], edgecolor=colour("card"), linewidth=0.8
            )
            box.set_gid(gid)
            axes.add_patch(box)
            if wide > 8:
                axes.text(
                    start + wide / 2,
                    at + 0.21,
                    f"{wide:.0f} %",
                    ha="center",
                    va="center_baseline",
                    fontsize=11,
                    color=PART_INK[part],
                )
            hints[gid] = f"{stack.label}: {part} {number(seconds)} s, {wide:.0f} %"
            shares.append(f"{part} {wide:.0f} %")
            start += wide
        _value(axes, 102, at + 0.21, f"{number(whole)} s", stack.ours)
        told.append(f"{stack.label}: {number(whole)} s, {', '.join(shares)}")
    return to_svg(figure, name, f"{title}. {'; '.join(told)}", hints)


def _rows(count: int, axis: str, most: float, sign: str = "") -> tuple[Figure, Axes]:
    figure = new_figure(count * ROW + FOOT + 4)
    axes = bare_axes(figure, left=16 if sign else 8, right=6, top=4, bottom=FOOT)
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_xlim(0, most * 1.24)
    axes.set_yticks([])
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}{sign}")
    axes.grid(axis="x", color=colour("grid"), linewidth=1)
    axes.set_xlabel(axis, fontsize=11, color=colour("muted"), labelpad=3, loc="left")
    axes.axvline(0, color=colour("muted"), linewidth=1)
    return figure, axes


def _head(axes: Axes, at: int, label: str, ours: bool, n: str) -> None:
    short = label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"
    across = axes.get_yaxis_transform()
    weight = "bold" if ours else "normal"
    axes.text(
        0.01,
        at - 0.1,
        short,
        transform=across,
        va="baseline",
        fontsize=12,
        color=colour("ink"),
        weight=weight,
    )
    axes.text(1, at - 0.1, n, transform=across, va="baseline", ha="right", fontsize=11, color=colour("muted"))


def _instead(axes: Axes, at: int, most: float, why: str) -> None:
    axes.text(most * 0.015, at + 0.2, f"✕ {why}", va="center_baseline", fontsize=12, color=colour("bad"))


def _whisker(axes: Axes, y: float, found: Spread) -> None:
    axes.plot([found.low, found.high], [y, y], color=colour("ink"), linewidth=1.3, solid_capstyle="butt")
    for end in (found.low, found.high):
        axes.plot([end, end], [y - 0.09, y + 0.09], color=colour("ink"), linewidth=1.3)


def _value(axes: Axes, x: float, y: float, text: str, ours: bool) -> None:
    weight = "bold" if ours else "normal"
    axes.text(x, y, text, va="center_baseline", fontsize=12, color=colour("ink"), weight=weight)
