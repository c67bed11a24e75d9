"""The charts of a page: which figures, in which order, with what is said above them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xpress_struct.lab.report.about import baseline_label
from xpress_struct.lab.report.bars import Bar, Stack, bars, stacks
from xpress_struct.lab.report.columns import label, named, plain
from xpress_struct.lab.report.curves import Curve, curves
from xpress_struct.lab.report.figures import Spread, Summary, slot_rates, summaries
from xpress_struct.lab.report.run import Run
from xpress_struct.lab.rows import SPLIT

__all__ = ["Panel", "Section", "bench_sections", "slots_section"]

Groups = Sequence[tuple[str, Sequence[Summary]]]
ALL = "All categories"


@dataclass(frozen=True)
class Panel:
    """A plot, its name, and what is to be known about it."""

    title: str
    svg: str
    note: str = ""


@dataclass(frozen=True)
class Section:
    """Plots of one figure: better is "higher", "lower" or ""; legend: names of parts, or nothing."""

    title: str
    lead: str
    better: str
    panels: Sequence[Panel]
    legend: Sequence[str] = ()


def bench_sections(run: Run, mode: str) -> list[Section]:
    """The charts of a benchmark in one mode: over all categories, and for each where there are several."""
    categories = run.categories(mode)
    groups: list[tuple[str, Sequence[Summary]]] = [
        (named(each), summaries(run, mode, each)) for each in categories
    ]
    if len(groups) > 1:
        groups.insert(0, (ALL, summaries(run, mode)))
    spread = "Bars are medians over documents; the line goes from the 10th to the 90th percentile."
    found = [
        Section(
            "Speed to baseline",
            f"Tokens per second, divided by those of {baseline_label(run)} on the same document, where both "
            f"ended it. {spread} The dashed line is the baseline.",
            "higher",
            _bars(
                groups,
                lambda each: None if each.is_base else each.ratio,
                f"{mode}-ratio",
                "times the baseline's tokens per second",
                unit="×",
                count="pairs",
                mark=1.0,
                shared=True,
                skip_base=True,
            ),
        ),
        Section(
            "Seconds per completed document",
            f"The whole call, prompt included, over the documents that a system ended by itself. Each panel "
            f"has its own axis. {spread}",
            "lower",
            _bars(groups, lambda each: each.seconds, f"{mode}-seconds", "seconds", unit=" s"),
        ),
        Section(
            "Tokens per forward",
            f"Output tokens, forced ones included, for each forward of the target. {spread}",
            "higher",
            _bars(
                groups,
                lambda each: each.tokens_per_forward,
                f"{mode}-forward",
                "tokens per target forward",
                shared=True,
            ),
        ),
        slots_section(groups, f"{mode}-slots"),
        Section(
            "Where the time goes",
            "Shares of the mean time of a completed document, and that mean in seconds (means add up, "
            "medians do not). Score is the target's forward; other is what a system does not tell apart.",
            "",
            [
                Panel(
                    title,
                    stacks(
                        [_stack(each) for each in group],
                        name=f"{mode}-split-{at}",
                        title=f"Time split, {title}",
                    ),
                )
                for at, (title, group) in enumerate(groups)
            ],
            SPLIT,
        ),
    ]
    return [section for section in found if section.panels]


def slots_section(groups: Groups, name: str, axes: Sequence[str] = ()) -> Section:
    """Acceptance by slot; groups in which nothing was proposed have no panel."""
    panels = []
    for at, (title, group) in enumerate(groups):
        one = len({each.system.name for each in group if slot_rates(each.rows)}) == 1
        lines = [Curve(_name(each, axes, one), slot_rates(each.rows)) for each in group]
        lines = [line for line in lines if line.values]
        if lines:
            longest = max(len(line.values) for line in lines)
            svg = curves(
                lines,
                [str(slot + 1) for slot in range(longest)],
                name=f"{name}-{at}",
                title=f"Acceptance by slot, {title}",
                x="slot",
                y="accepted of proposed",
                reach=1.0,
                shares=True,
            )
            panels.append(Panel(title, svg))
    lead = (
        "Share of the tokens proposed at a slot of the block that the target accepted, as far as a slot was "
        "proposed ten times."
    )
    return Section("Acceptance by slot", lead, "higher", panels)


def _name(each: Summary, axes: Sequence[str], one: bool) -> str:
    """Name of a line: where all are of one system, its place on the axes is enough."""
    cell = ", ".join(plain(each.cell[axis]) for axis in axes if axis in each.cell)
    return cell if cell and one else label(each, axes)


def _bars(
    groups: Groups,
    figure: Callable[[Summary], Spread | None],
    name: str,
    axis: str,
    *,
    unit: str = "",
    count: str = "documents",
    mark: float | None = None,
    shared: bool = False,
    skip_base: bool = False,
) -> list[Panel]:
    """A panel a group; `shared`: all with the same axis, so that lengths compare across panels."""
    found = [figure(each) for _, group in groups for each in group]
    reach = max((each.high for each in found if each), default=None) if shared else None
    panels = []
    for at, (title, group) in enumerate(groups):
        items = [
            Bar(
                label(each),
                each.system.group == "ours",
                figure(each),
                each.why_empty or "no document that both ended",
            )
            for each in group
            if not (skip_base and each.is_base)
        ]
        if items:
            svg = bars(
                items,
                name=f"{name}-{at}",
                title=f"{title}, {axis}",
                axis=axis,
                unit=unit,
                count=count,
                reach=reach,
                mark=mark,
            )
            panels.append(Panel(title, svg))
    return panels


def _stack(each: Summary) -> Stack:
    return Stack(label(each), each.system.group == "ours", each.split, len(each.done), each.why_empty or "")
