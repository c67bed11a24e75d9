"""Generation.show: a terminal, a file, a notebook."""

from __future__ import annotations

import io
import re
import sys
from itertools import pairwise
from types import SimpleNamespace

import pytest

import xpress_struct as xs
from tests.cases.scripts import PROMPT, right_then_wrong, writer
from tests.stubs import stub_model
from xpress_struct.display import as_html, as_terminal
from xpress_struct.origins import ORIGINS
from xpress_struct.results import Generation

TEXT = '{"a": "<b>&"}'


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def result() -> Generation:
    model = writer(TEXT, right_then_wrong(TEXT, 1))
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    schema["additionalProperties"] = False
    return model.generate(PROMPT, xs.json_schema(schema), guard=False, block_length=2)


@pytest.fixture(autouse=True)
def colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_a_terminal_has_colours(result: Generation) -> None:
    """A terminal gets the text in colours, with the counts in the same colours as a legend."""
    file = Terminal()
    result.show(file)
    shown = file.getvalue()
    assert plain(shown).startswith(TEXT + "\n\n")
    styles = {origin: re.findall(rf"\x1b\[([0-9;]+)m{origin} \d", shown) for origin in set(result.origins)}
    for found in styles.values():
        assert len(found) == 1
        assert shown.count(f"\x1b[{found[0]}m") > 1
    assert shown.count("\x1b[0m") * 2 == shown.count("\x1b[")


@pytest.mark.parametrize("why", ["no terminal", "NO_COLOR", "dumb"])
def test_elsewhere_it_is_plain(result: Generation, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal, with NO_COLOR, or on a dumb terminal the text and the counts are plain."""
    if why == "NO_COLOR":
        monkeypatch.setenv("NO_COLOR", "1")
    if why == "dumb":
        monkeypatch.setenv("TERM", "dumb")
    file = io.StringIO() if why == "no terminal" else Terminal()
    result.show(file)
    counts = [f"{name} {result.origins.count(name)}" for name in ("forced", "drafted", "bonus")]
    assert file.getvalue() == f"{TEXT}\n\n{len(result.token_ids)} tokens: {', '.join(counts)}\n"


def test_stdout_is_the_default(result: Generation, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a file it prints to stdout."""
    result.show()
    assert capsys.readouterr().out.startswith(TEXT)


def test_what_a_terminal_would_obey_is_escaped() -> None:
    """Control characters that a model wrote do not reach the terminal or the page."""
    text = "a\x1b[2Jb\x07\tc\r\nd\x9b"
    wanted = "a\\x1b[2Jb\\x07\tc\\x0d\nd\\x9b"
    result = writer(text).generate(PROMPT)
    assert result.text == text
    for colours in (True, False):
        assert plain(as_terminal(result.pieces(), {"bonus": 1}, colours=colours)).startswith(wanted)
    assert wanted in as_html(result.pieces(), {"bonus": 1})


def notebook(monkeypatch: pytest.MonkeyPatch, shell: object) -> list[str]:
    """A pretend IPython; returns what it displays."""
    shown: list[str] = []
    display = SimpleNamespace(HTML=lambda text: text, display=shown.append)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return shown


def test_a_notebook_gets_html(
    result: Generation, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a kernel it is shown below the cell, as the cell's last value is; a file is printed to as ever."""
    shown = notebook(monkeypatch, SimpleNamespace(kernel=object()))
    result.show()
    assert shown == [result._repr_html_()]
    assert capsys.readouterr().out == ""
    file = io.StringIO()
    result.show(file)
    assert file.getvalue().startswith(TEXT)
    assert len(shown) == 1


@pytest.mark.parametrize("shell", [None, SimpleNamespace()], ids=["imported", "terminal"])
def test_ipython_in_a_terminal_is_a_terminal(
    result: Generation, shell: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """IPython that is only imported, or runs in a terminal, shows no HTML."""
    shown = notebook(monkeypatch, shell)
    result.show()
    assert shown == []
    assert capsys.readouterr().out.startswith(TEXT)


def test_html_is_escaped_and_explained(result: Generation) -> None:
    """HTML holds the text escaped, a span per run of one origin, and the counts."""
    page = result._repr_html_()
    body, legend = page.split("</div>")[:2]
    assert "<b>" not in page
    assert "&lt;" in body and "&quot;" in body
    spans = re.findall(r'<span style="([^"]+)" title="([^"]+)">', body)
    names = [name for _, name in spans]
    assert all(one != other for one, other in pairwise(names))
    assert all(f"{name} {result.origins.count(name)}</span>" in legend for name in set(names))
    assert f"{len(result.token_ids)} tokens" in legend


def test_every_origin_looks_different() -> None:
    """Each origin has a style of its own in a terminal and in HTML; no two differ by colour alone."""
    pieces = [("x", origin) for origin in ORIGINS]
    terminal = re.findall(r"\x1b\[([0-9;]+)mx", as_terminal(pieces, {}, colours=True))
    page = re.findall(r'style="([^"]+)" title="[^"]+">x', as_html(pieces, {}))
    assert len(set(terminal)) == len(set(page)) == len(ORIGINS)
    cues = [re.sub(r";?38;5;\d+", "", style) for style in terminal]
    assert len(set(cues)) == len(ORIGINS)
    cues = [re.sub(r"rgba\([^)]*\)", "", style) for style in page]
    assert len(set(cues)) == len(ORIGINS)


def test_an_empty_text() -> None:
    """Nothing but an end token can be shown."""
    file = io.StringIO()
    stub_model(lambda prefix: [0.0] * 256 + [9.0]).generate(PROMPT).show(file)
    assert file.getvalue() == "\n\n1 token: bonus 1\n"
