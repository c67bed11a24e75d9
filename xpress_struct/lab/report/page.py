"""The page: everything of a run in one HTML file that asks nothing of any host."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from xpress_struct.lab.report.ablation import ablation_sections
from xpress_struct.lab.report.about import about, baseline_label, how, machine_line, varied
from xpress_struct.lab.report.columns import COLUMNS, label, named, number, share
from xpress_struct.lab.report.documents import MEANINGS, documents
from xpress_struct.lab.report.figures import Spread, Summary, summaries
from xpress_struct.lab.report.palette import css
from xpress_struct.lab.report.run import Run
from xpress_struct.lab.report.sections import bench_sections

__all__ = ["page"]


@dataclass(frozen=True)
class Card:
    """A figure at the top of the page."""

    name: str
    value: str
    note: str


def page(run: Run) -> str:
    """The report as HTML."""
    environment = Environment(
        loader=PackageLoader("xpress_struct.lab.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["raw"] = Markup
    templates = files("xpress_struct.lab.report") / "templates"
    sections = bench_sections if run.kind == "bench" else ablation_sections
    return environment.get_template("page.html").render(
        run=run,
        style=Markup(css() + (templates / "page.css").read_text(encoding="utf-8")),
        script=Markup((templates / "page.js").read_text(encoding="utf-8")),
        machine=machine_line(run),
        about=about(run),
        how=how(run),
        columns=COLUMNS,
        views=[_view(run, mode, sections(run, mode)) for mode in run.modes],
        documents=documents(run),
        meanings=MEANINGS,
        failed=[each for each in run.systems if each.error is not None],
        errors=[row for row in run.rows if row.error],
        count=len({row.document[1:] for row in run.rows}),
    )


def _view(run: Run, mode: str, sections: list[Any]) -> dict[str, Any]:
    categories = run.categories(mode)
    groups: list[tuple[str, str | None]] = [(named(each), each) for each in categories]
    if len(groups) > 1:
        groups.insert(0, ("All", None))
    axes = varied(run)
    rows = [
        {"category": title, "name": label(each, axes), "summary": each}
        for title, category in groups
        for each in summaries(run, mode, category)
    ]
    title, cards = (_bench_cards if run.kind == "bench" else _experiment_cards)(run, summaries(run, mode))
    return {
        "mode": mode,
        "sections": sections,
        "groups": [title for title, _ in groups],
        "rows": rows,
        "title": title,
        "cards": cards,
    }


def _bench_cards(run: Run, found: list[Summary]) -> tuple[str, list[Card]]:
    """How the fastest of ours does, beside the baseline."""
    ours = [each for each in found if each.system.group == "ours" and each.rows and not each.is_base]
    if not ours:
        return "", []
    best = max(ours, key=lambda each: each.ratio.middle if each.ratio else 0.0)
    base = next((each for each in found if each.is_base), None)
    name = baseline_label(run)
    against = f"{name}: {share(base.valid)}" if base else ""
    cards = [Card("valid documents", share(best.valid), f"of {len(best.formed)} that have a form; {against}")]
    if best.ratio:
        note = f"tokens per second of {name}, median of {best.ratio.n} documents that it ended"
        cards.append(
            Card("speed", f"{number(best.ratio.middle)}×", f"{note}; 10 to 90 %: {_between(best.ratio)}")
        )
    if best.tokens_per_forward:
        cards.append(_card("tokens per forward", best.tokens_per_forward))
    if best.seconds:
        cards.append(_card("seconds per document", best.seconds))
    return f"The fastest of ours, {best.system.label}" if best.ratio else best.system.label, cards


def _experiment_cards(run: Run, found: list[Summary]) -> tuple[str, list[Card]]:
    """The best cells."""
    axes = varied(run)
    cards: list[Card] = []
    forward = [
        (each.tokens_per_forward.middle, each) for each in found if each.cell and each.tokens_per_forward
    ]
    token = [(each.seconds_per_token.middle, each) for each in found if each.cell and each.seconds_per_token]
    if forward:
        value, each = max(forward, key=lambda pair: pair[0])
        cards.append(Card("most tokens per forward", number(value), label(each, axes)))
    if token:
        value, each = min(token, key=lambda pair: pair[0])
        cards.append(Card("least seconds per token", number(value), label(each, axes)))
    return "The best cells", cards


def _card(name: str, found: Spread) -> Card:
    note = f"median of {found.n} completed documents; 10 to 90 %: {_between(found)}"
    return Card(name, number(found.middle), note)


def _between(found: Spread) -> str:
    return f"{number(found.low)} to {number(found.high)}"
