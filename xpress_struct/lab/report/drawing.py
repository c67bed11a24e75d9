"""From a matplotlib figure to SVG for a page: its fonts, its colours by mode, hints on its marks."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from html import escape

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from xpress_struct.lab.report.palette import COLOURS, colour

__all__ = ["WIDTH", "bare_axes", "new_figure", "separate", "to_svg"]

WIDTH = 350.0
"""Width of every plot in units of the SVG; about pixels, so that text keeps its size on a phone."""

_NAMES = {light: name for name, (light, _) in COLOURS.items()}


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure; sizes in units of the SVG."""
    return Figure(figsize=(width / 72, height / 72), facecolor="none")


def bare_axes(figure: Figure, left: float, right: float, top: float, bottom: float) -> Axes:
    """Axes without a frame, that far (in units) from the edges of the figure."""
    width, height = figure.get_size_inches() * 72
    axes = figure.add_axes(
        (left / width, bottom / height, (width - left - right) / width, (height - top - bottom) / height)
    )
    axes.set_facecolor("none")
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0, labelsize=11, colors=colour("muted"), pad=4)
    axes.set_axisbelow(True)
    return axes


def separate(places: list[float], gap: float) -> list[float]:
    """Places moved apart until neighbours are `gap` apart, as little as that needs, order kept."""
    order = sorted(range(len(places)), key=lambda at: places[at])
    groups: list[list[float]] = []  # of neighbours that touch: [middle, how many]
    for at in order:
        groups.append([places[at], 1])
        while len(groups) > 1 and groups[-1][0] - groups[-2][0] < gap * (groups[-1][1] + groups[-2][1]) / 2:
            (above, more), (below, fewer) = groups.pop(), groups.pop()
            groups.append([(above * more + below * fewer) / (more + fewer), more + fewer])
    moved = [middle + gap * (at - (count - 1) / 2) for middle, count in groups for at in range(int(count))]
    result = [0.0] * len(places)
    for at, place in zip(order, moved, strict=True):
        result[at] = place
    return result


def to_svg(figure: Figure, name: str, label: str, hints: Mapping[str, str]) -> str:
    """The figure as an SVG element.

    Args:
        name: what the ids inside begin with; another for each plot of a page.
        label: what it shows, in words, for those who cannot see it.
        hints: what a mark says when it is pointed at, by the mark's gid.
    """
    out = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        FigureCanvasSVG(figure).print_svg(out, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'<defs>\s*<style type="text/css">.*?</style>\s*</defs>', "", text, flags=re.DOTALL)
    # matplotlib says it in one property or in several, by its version.
    text = re.sub(r"font-family: [^;\"]*", "font-family: var(--font)", text)
    text = re.sub(r"font: ([^;\"]*?[\d.]+px) [^;\"]*", r"font: \1 var(--font)", text)
    text = re.sub(r"#[0-9a-f]{6}\b", _swapped, text)
    for gid, hint in hints.items():
        text = text.replace(f'<g id="{gid}">', f'<g class="mark"><title>{escape(hint)}</title>')
    text = re.sub(r'<g id="[^"]*">', "<g>", text)
    text = re.sub(r'( id="|href="#|url\(#)', rf"\1{name}-", text)
    box = re.search(r'viewBox="[^"]*"', text)
    assert box is not None
    head = f'<svg class="plot" role="img" aria-label="{escape(label)}" {box[0]}>'
    return re.sub(r"<svg[^>]*>", lambda _: head, text, count=1)


def _swapped(found: re.Match[str]) -> str:
    name = _NAMES.get(found[0])
    return f"var(--{name})" if name else found[0]
