"""The Markdown, the part of a README, and the command that writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.report import made_up
from xpress_struct.cli.main import main
from xpress_struct.errors import ArgumentError
from xpress_struct.lab.report.markdown import BEGIN, END, SHORT, markdown, readme_part, write_between
from xpress_struct.lab.report.palette import PART_COLOURS, PART_INK
from xpress_struct.lab.report.run import Run, read_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return read_run(made_up.bench(tmp_path_factory.mktemp("runs") / "bench", documents=3))


def test_every_table_is_whole(run: Run) -> None:
    """Each row of each table has as many cells as its head; a label with a bar does not add one."""
    lines = markdown(run).replace("\\|", "").splitlines()
    tables = [line for line in lines if line.startswith("| ") and "slot" not in line and line.count("|") > 3]
    assert len(tables) == 2 * 4 * 7  # modes, all and three categories, a head and six systems
    assert {line.count("|") for line in tables} == {14}


def test_the_report_says_what_failed_and_where_it_ran(run: Run) -> None:
    """The failed peer is in the tables, and its error, the command and the machine stand below."""
    text = markdown(run)
    assert "| DFlash reference | failed |" in text
    assert "`ImportError: libcudart.so.12: no such file in dflash/kernels.py, line 12 | <module>`" in text
    assert f"`{run.command}`" in text and "AMD EPYC 9B14, 2 cores" in text
    assert "**xpress\\_struct, all**" in text and "## Sampled" in text


def test_an_experiment_has_a_row_for_each_cell(tmp_path: Path) -> None:
    """Cells are told by the axes that vary."""
    text = markdown(read_run(made_up.experiment(tmp_path / "run", documents=1)))
    assert text.count("acceptance block**") == 9
    assert "block\\_length 8, refine sequential, acceptance coupled" in text and "lookup" not in text


def test_the_text_between_the_markers_is_replaced(run: Run, tmp_path: Path) -> None:
    """What stands outside of the markers is kept, and writing twice is writing once."""
    readme = tmp_path / "README.md"
    readme.write_text(f"# Before\n\n{BEGIN}\nold\n{END}\n\nafter\n", encoding="utf-8")
    for _ in range(2):
        write_between(readme, readme_part(run))
        text = readme.read_text(encoding="utf-8")
        assert text.startswith(f"# Before\n\n{BEGIN}\n\n`") and text.endswith(f"{END}\n\nafter\n")
        assert "old" not in text and text.count("| DFlash reference |") == 1
        head = next(line for line in text.splitlines() if line.startswith("| system |"))
        assert "speed to baseline" in head and head.count("|") == len(SHORT) + 2
    assert f"`{run.command}`, 2026-11-30, on AMD EPYC" in text


@pytest.mark.parametrize("text", ["no markers", f"{END}\n{BEGIN}", f"{BEGIN}\n{BEGIN}\n{END}", BEGIN])
def test_a_readme_without_markers_is_refused(tmp_path: Path, text: str) -> None:
    """The error names the markers, and the file is left as it was."""
    readme = tmp_path / "README.md"
    readme.write_text(text, encoding="utf-8")
    with pytest.raises(ArgumentError, match="bench:begin"):
        write_between(readme, "table")
    assert readme.read_text(encoding="utf-8") == text


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It writes what it is told to, says so, and ends with 1 and a message where it cannot."""
    folder = made_up.bench(tmp_path / "run", documents=1, categories=("json",))
    readme = tmp_path / "README.md"
    readme.write_text(f"{BEGIN}{END}", encoding="utf-8")
    page = tmp_path / "page.html"
    full = tmp_path / "benchmarks.md"
    full.write_text(f"# All\n{BEGIN}{END}", encoding="utf-8")
    told = ["--html", str(page), "--readme", str(readme), "--tables", str(full)]
    assert main(["report", str(folder), *told]) == 0
    written = [str(path) for path in (page, folder / "report.md", readme, full)]
    assert capsys.readouterr().out.split() == written
    assert "## Sampled" in full.read_text(encoding="utf-8")
    assert "## Sampled" not in readme.read_text(encoding="utf-8")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert main(["report", str(tmp_path)]) == 1
    assert "run.json" in capsys.readouterr().err


def test_figures_on_parts_can_be_read() -> None:
    """What is written on a part of the time split has a contrast of 4.5 to 1 with it."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for name, colour in PART_COLOURS.items():
        low, high = sorted([light(colour), light(PART_INK[name])])
        assert (high + 0.05) / (low + 0.05) >= 4.5, name
