"""The report, opened in headless Chromium."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

from tests.lab.report.chromium import Chromium

PLOTS = """
[...document.querySelectorAll(".view")].flatMap(view => {
  const button = document.querySelector(`[data-mode="${view.dataset.view}"]`);
  if (button) button.click();
  return [...view.querySelectorAll("svg.plot")].map(svg => {
    const box = svg.getBoundingClientRect();
    const marks = [...svg.querySelectorAll(".mark")].map(mark => {
      const {width, height} = mark.getBoundingClientRect();
      const drawn = mark.querySelector("path, use");
      const {fill, stroke} = getComputedStyle(drawn);
      const inside = mark.getBoundingClientRect().left >= box.left - 1 && mark.getBoundingClientRect().right <= box.right + 1;
      return inside && width + height > 2 && (fill !== "none" || stroke !== "none");
    });
    const texts = [...svg.querySelectorAll("text")].map(text => {
      const {left, right, width} = text.getBoundingClientRect();
      return width > 0 && left >= box.left - 1 && right <= box.right + 1;
    });
    return {label: svg.getAttribute("aria-label"), width: box.width, height: box.height, marks, texts};
  });
})
"""  # noqa: E501

CONTRAST = """
(() => {
  const bytes = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = colour => bytes(colour).map(byte => byte / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = element => {
    for (let each = element; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if (!/, 0\\)$/.test(colour)) return colour;
    }
  };
  const onParts = new Set(["rgb(253, 253, 253)", "rgb(17, 19, 24)"]);
  const texts = document.querySelectorAll(
    "h1, h2, p, td, th, dt, dd, small, label, figcaption, .better, .piece, [aria-pressed], .plot text");
  return [...texts].filter(each => each.textContent.trim() && each.getClientRects().length).map(each => {
    const style = getComputedStyle(each);
    const colour = each.matches("text") ? style.fill : style.color;
    if (each.matches("text") && onParts.has(colour)) return [21, ""];
    const [a, b] = [light(colour), light(behind(each))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), `${each.tagName} ${each.className} ${each.textContent.slice(0, 40)}`];
  }).sort((x, y) => x[0] - y[0])[0];
})()
"""


def _texts(browser: Chromium, query: str) -> list[str]:
    return list(browser.evaluate(f"[...document.querySelectorAll({query!r})].map(each => each.innerText)"))


@pytest.mark.parametrize(("name", "plots"), [("bench", 2 * 5 * 3), ("experiment", 2 + 2 + 6)])
def test_every_plot_is_drawn(
    browser: Chromium, request: pytest.FixtureRequest, name: str, plots: int
) -> None:
    """Each plot has a size, visible marks and text inside of it, in every mode; the page asks no host."""
    path: Path = request.getfixturevalue(name)
    browser.view(1280)
    browser.open(path)
    found = browser.evaluate(PLOTS)
    assert len(found) == plots
    for plot in found:
        assert plot["width"] > 300 and plot["height"] > 100, plot["label"]
        assert plot["marks"] and all(plot["marks"]), plot["label"]
        assert len(plot["texts"]) > 5 and all(plot["texts"]), plot["label"]
        assert plot["label"]
    assert browser.requests == [path.as_uri()]
    assert browser.problems == []


def test_what_a_page_asks_for_and_complains_of_is_seen(browser: Chromium, tmp_path: Path) -> None:
    """A page that asks a host, logs an error and throws is caught at all three."""
    page = tmp_path / "bad.html"
    page.write_text(
        '<img src="http://127.0.0.1:9/x.png"><script>console.error("bad"); throw new Error("worse")</script>',
        encoding="utf-8",
    )
    browser.open(page)
    assert "http://127.0.0.1:9/x.png" in browser.requests
    assert "bad" in str(browser.problems) and "worse" in str(browser.problems)


@pytest.mark.parametrize("name", ["bench", "experiment"])
def test_light_and_dark(browser: Chromium, request: pytest.FixtureRequest, name: str) -> None:
    """Both modes have their own background, and text stands out from it by 4.5 to 1."""
    corners = []
    for dark in (False, True):
        browser.view(1280, dark=dark)
        browser.open(request.getfixturevalue(name))
        least, where = browser.evaluate(CONTRAST)
        assert least >= 4.5, where
        corners.append(Image.open(io.BytesIO(browser.screenshot(whole=False))).convert("L").getpixel((2, 2)))
    assert corners[0] > 200 and corners[1] < 60


def test_the_button_overrules_the_device(browser: Chromium, bench: Path) -> None:
    """The button goes from what the device says to light and to dark."""
    browser.view(1280, dark=False)
    browser.open(bench)
    colours = []
    for _ in range(3):
        browser.evaluate("document.getElementById('theme').click()")
        colours.append(browser.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours[0] == colours[2] != colours[1]


@pytest.mark.parametrize("name", ["bench", "experiment"])
def test_on_a_phone(browser: Chromium, request: pytest.FixtureRequest, name: str) -> None:
    """At 390 pixels the page does not scroll sideways, tables do, and text in plots is 9 pixels or more."""
    browser.view(390, 844, phone=True)
    browser.open(request.getfixturevalue(name))
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    assert browser.evaluate("(s => s.scrollWidth > s.clientWidth)(document.querySelector('.scroll'))")
    letters = (
        "Math.min(...[...document.querySelectorAll('.shown .plot text')].map("
        "each => parseFloat(getComputedStyle(each).fontSize) * each.getScreenCTM().a))"
    )
    assert browser.evaluate(letters) >= 9


def test_failures_and_missing_figures_are_said(browser: Chromium, bench: Path) -> None:
    """A failed peer stands in every chart and table with its error; one that completed nothing says so."""
    browser.view(1280)
    browser.open(bench)
    assert any("DFlash reference" in text and "libcudart" in text for text in _texts(browser, ".figures tr"))
    assert "no such file" in _texts(browser, ".failed")[0]
    plot = browser.evaluate("document.querySelector('.shown svg.plot').textContent")
    assert "✕ failed" in plot and "✕ no completed document" in plot


def test_modes_categories_and_sorting(browser: Chromium, bench: Path) -> None:
    """Buttons choose mode and category; a head sorts, and systems without the figure come last."""
    browser.view(1280)
    browser.open(bench)
    browser.evaluate("document.querySelector('[data-mode=sampled]').click()")
    views = "[...document.querySelectorAll('.view')]"
    shown = f"{views}.filter(view => view.getClientRects().length).map(view => view.dataset.view)"
    assert browser.evaluate(shown) == ["sampled"]
    browser.evaluate("document.querySelector('.shown [data-category=Code]').click()")
    rows = "[...document.querySelectorAll('.shown tbody tr')].filter(r => !r.hidden)"
    assert browser.evaluate(f"{rows}.map(r => r.dataset.category)") == ["Code"] * 6
    head = "[...document.querySelectorAll('.shown thead button')].find(b => b.innerText.startsWith('speed'))"
    browser.evaluate(f"{head}.click()")
    names = browser.evaluate(f"{rows}.map(r => r.cells[0].innerText)")
    assert names[0] == "xpress_struct, all" and set(names[-2:]) == {"DFlash reference", "llama.cpp"}


def test_documents_by_who_found_them(browser: Chromium, bench: Path) -> None:
    """The chosen document is shown piece by piece in colours, and its text stays text."""
    browser.view(1280)
    browser.open(bench)
    assert "</pre><script>alert(1)</script>" in _texts(browser, ".document:not([hidden]) .text")[0]
    assert browser.evaluate("document.querySelectorAll('.document script').length") == 0
    choose = (
        "(s => { s.value = [...s.options].find(o => o.value.includes('code_01')).value; "
        "s.dispatchEvent(new Event('change')); })(document.getElementById('task'))"
    )
    browser.evaluate(choose)
    assert len(_texts(browser, ".document:not([hidden])")) == 1
    assert "def area(r: float)" in _texts(browser, ".document:not([hidden]) .text")[0]
    colours = (
        "new Set([...document.querySelectorAll('.document:not([hidden]) .text .piece')]"
        ".map(each => getComputedStyle(each).backgroundColor)).size"
    )
    assert browser.evaluate(colours) >= 4


def test_without_scripts_everything_is_there(browser: Chromium, bench: Path) -> None:
    """Where scripts are off, both modes are shown, and each document too."""
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(bench)
        visible = (
            "[...document.querySelectorAll('.view, .document')].every(each => each.getClientRects().length)"
        )
        assert browser.evaluate(visible)
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
