"""Lines with their names at their ends: acceptance by slot, and figures over an axis of an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.ticker import MaxNLocator

from xpress_struct.lab.report.columns import number, share
from xpress_struct.lab.report.drawing import bare_axes, new_figure, separate, to_svg
from xpress_struct.lab.report.palette import LINES, colour

__all__ = ["Curve", "curves"]

HEIGHT = 250
MARKERS = "osD^vPX*"
DASHES = ((), (5, 2), (1.5, 1.5), (6, 2, 1.5, 2))
LONGEST = 20
LETTER, GAP = 6.2, 15  # units: a letter of a line's name at most, and lines of text from each other


@dataclass(frozen=True)
class Curve:
    """A line: its name, and a figure (or None) at each place of the x axis."""

    label: str
    values: Sequence[float | None]


def curves(
    lines: Sequence[Curve],
    ticks: Sequence[str],
    *,
    name: str,
    title: str,
    x: str,
    y: str,
    reach: float | None = None,
    shares: bool = False,
    level: tuple[str, float] | None = None,
) -> str:
    """Lines over named places; y begins at 0.

    Args:
        reach: largest y; by default the largest shown.
        shares: whether y is a share from 0 to 1.
        level: name and height of a flat line to compare with.
    """
    values = [value for line in lines for value in line.values if value is not None]
    most = reach or max([*values, level[1] if level else 0], default=0) or 1
    names = [_short(line.label) for line in lines]
    figure = new_figure(HEIGHT)
    right = 14 + LETTER * max(map(len, [*names, level[0] if level else ""]), default=0)
    axes = bare_axes(figure, left=44, right=right, top=22, bottom=38)
    axes.set_xlim(-0.15, max(len(ticks) - 1, 1) + 0.1)
    axes.set_ylim(0, most * 1.05)
    step = -(-len(ticks) // 8)
    axes.set_xticks(range(0, len(ticks), step), ticks[::step])
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(lambda value, _: share(value) if shares else f"{value:,.6g}")
    axes.grid(axis="y", color=colour("grid"), linewidth=1)
    axes.axhline(0, color=colour("muted"), linewidth=1)
    axes.set_xlabel(x, fontsize=11, color=colour("muted"), labelpad=3, loc="left")
    figure.text(0.01, 1 - 12 / HEIGHT, y, fontsize=11, color=colour("muted"), va="center")
    hints: dict[str, str] = {}
    ends: list[tuple[str, float, str]] = []
    told = []
    if level:
        axes.axhline(level[1], color=colour("muted"), linewidth=1.2, dashes=(3, 3))
        ends.append((level[0], level[1], "muted"))
    for at, (line, short) in enumerate(zip(lines, names, strict=True)):
        points = [(place, value) for place, value in enumerate(line.values) if value is not None]
        if not points:
            continue
        tint = LINES[at % len(LINES)]
        axes.plot(
            *zip(*points, strict=True), color=colour(tint), linewidth=2, dashes=DASHES[at % 4] or (None, None)
        )
        for place, value in points:
            gid = f"point-{at}-{place}"
            shown = share(value) if shares else number(value)
            hints[gid] = f"{line.label}, {x} {ticks[place]}: {shown}"
            axes.plot([place], [value], MARKERS[at % 8], color=colour(tint), markersize=5.5, gid=gid)
        ends.append((short, points[-1][1], tint))
        told.append(f"{line.label}: " + ", ".join(share(v) if shares else number(v) for _, v in points))
    unit = most * 1.05 / (HEIGHT - 60)
    places = separate([end[1] for end in ends], GAP * unit)
    for (text, _, tint), height in zip(ends, places, strict=True):
        axes.text(
            1.015,
            height,
            text,
            transform=axes.get_yaxis_transform(),
            va="center_baseline",
            fontsize=11.5,
            color=colour(tint),
        )
    return to_svg(figure, name, f"{title}, {y} over {x}. {'; '.join(told)}", hints)


def _short(label: str) -> str:
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"
