"""`xpress-struct experiment`: its file, its cells, and going on after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lab.tiny import helped
from xpress_struct.cli.main import main
from xpress_struct.errors import ArgumentError
from xpress_struct.lab.experiment.cells import baselines_of, cell_id, cells_of
from xpress_struct.lab.experiment.config import Config, read_config
from xpress_struct.lab.experiment.run import run_experiment
from xpress_struct.lab.rows import mend, read_run

CONFIGS = Path(__file__).parents[2] / "benchmarks" / "configs"


def write_tasks(folder: Path, count: int = 3) -> Path:
    path = folder / "texts.jsonl"
    rows = [{"id": f"x{i}", "instruction": "ask", "prompt": f"abc {i}"} for i in range(count)]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "title: a\ngrid:\n  refnie: [none]\n",
            "line 3: 'refnie' is no part of the grid; did you mean 'refine'",
        ),
        ("title: a\ngrids:\n  refine: [none]\n", "line 2: 'grids' is no part of an experiment"),
        ("title: a\ngrid:\n  refine: [none, best]\n", "line 3: refine is 'best': it must be one of none"),
        ("title: a\ngrid:\n  block_length:\n  - 4\n  - 0\n", "line 5: block_length is 0"),
        ("title: a\ngrid:\n  refine: []\n", "line 3: the axis refine has no value"),
        ("title: a\ngrid: {}\n", "line 2: the grid is empty"),
        ("title: a\ngrid:\n  refine: [none, none]\n", "line 3: refine has 'none' twice"),
        ("title: a\nlimit: true\ngrid:\n  refine: none\n", "line 2: limit is True"),
        ("grid:\n  refine: [none]\n", "line 1: 'title' is missing"),
        ("title: a\ntitle: b\ngrid:\n  refine: none\n", "line 2: 'title' is told twice"),
        ("- a\n", "line 1: an experiment must be names with values"),
        ("a: [\n", "is no YAML"),
        ("", "is empty"),
    ],
)
def test_a_bad_file(tmp_path: Path, text: str, said: str) -> None:
    """What is wrong is told with its line, and what to do instead."""
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ArgumentError) as caught:
        read_config(path)
    assert said in str(caught.value)


def test_ready_files() -> None:
    """Every configuration of the repository is read; the one of refinement compares the four kinds."""
    found = {path.stem: read_config(path) for path in sorted(CONFIGS.glob("*.yaml"))}
    assert {"refinement", "passes", "block_length", "denoising", "acceptance", "worth"} <= found.keys()
    assert found["refinement"].grid["refine"] == ["none", "sequential", "parallel", "low-confidence"]
    assert len({config.hash for config in found.values()}) == len(found)


def test_cells() -> None:
    """Combinations that make no difference are one cell; each mode has a baseline outside of the grid."""
    cells = cells_of({"refine": ["none", "parallel"], "refine_passes": [1, 2]})
    assert [cell_id(cell) for cell in cells] == [
        "drafter=model refine=none",
        "drafter=model refine=parallel refine_passes=1",
        "drafter=model refine=parallel refine_passes=2",
    ]
    rules = {"acceptance": ["coupled", "block"], "temperature": [0, 1.0, 2.0]}
    baselines = [cell_id(cell) for cell in baselines_of(rules)]
    assert baselines == ["drafter=none temperature=0", "drafter=none temperature=1.0"]
    del rules["temperature"][2]
    assert [cell_id(cell) for cell in cells_of(rules)] == [
        "drafter=model temperature=0",
        "drafter=model acceptance=coupled temperature=1.0",
        "drafter=model acceptance=block temperature=1.0",
    ]
    assert len(cells_of({"drafter": ["none", "lookup"], "refine": ["none", "parallel"]})) == 1


def test_experiment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every cell has every document; what a drafter cannot do fails its cell; another file is refused."""
    config = Config(
        "t",
        {"drafter": ["model", "lookup"], "refine": ["none", "parallel"], "block_length": [2, 64]},
        tasks=[str(write_tasks(tmp_path))],
        limit=2,
        max_new_tokens=8,
    )
    folder = run_experiment(config, tmp_path / "out", "typed", helped())
    run, rows = read_run(folder), mend(folder)
    assert run is not None and run["kind"] == "experiment" and run["cells"] == 6
    assert run["axes"]["block_length"] == [2, 64]
    assert len(rows) == 14 and len({(row.get("cell_id"), row["task"]) for row in rows}) == 14
    failed = {row.get("cell_id") for row in rows if row["error"]}
    assert failed == {f"drafter=model refine={kind} block_length=64" for kind in ("none", "parallel")}
    texts = {(row["task"], row["text"]) for row in rows if not row["error"]}
    assert len(texts) == 2
    assert "<svg" in (folder / "report.html").read_text(encoding="utf-8")
    last = capsys.readouterr().out.strip().splitlines()[-1]
    baseline = json.loads(last.removeprefix("RESULT "))["cells"]["baseline, greedy"]
    assert baseline["docs"] == 2 and baseline["tokens_per_s"] > 0
    assert baseline["completed"] == 0 and baseline["ratio"] is None  # cut documents are in no ratio
    with pytest.raises(ArgumentError, match="its configuration is not this one's"):
        run_experiment(Config("t", {"refine": ["none"]}), folder, "typed", helped())


SCRIPT = """
import sys, time
from types import ModuleType
report = ModuleType("xpress_struct.lab.report.write")
report.write_report = lambda folder: [folder]
sys.modules["xpress_struct.lab.report.write"] = report
from tests.lab.tiny import helped
from xpress_struct.lab.experiment import run
from xpress_struct.lab.experiment.config import Config
slow = run.append_row
def append_row(folder, row):
    slow(folder, row)
    time.sleep(float(sys.argv[3]))
run.append_row = append_row
config = Config("t", {"refine": ["none", "parallel"]}, tasks=[sys.argv[1]], limit=3, max_new_tokens=4)
run.run_experiment(config, sys.argv[2], "typed", helped())
"""


@pytest.mark.slow
def test_killed_and_started_again(tmp_path: Path) -> None:
    """A run that is killed half-way keeps its rows as they are, and the next one runs the rest alone."""
    out = tmp_path / "out"
    command = [sys.executable, "-c", SCRIPT, str(write_tasks(tmp_path)), str(out)]
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": str(root)}
    process = subprocess.Popen([*command, "0.5"], cwd=root, env=environment)
    try:
        until = time.monotonic() + 240
        while len(_lines(out)) < 4 and time.monotonic() < until and process.poll() is None:
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    before = _lines(out)
    assert 4 <= len(before) < 9
    with (out / "rows.jsonl").open("a") as file:
        file.write('{"system": "ours", "te')
    done = subprocess.run(
        [*command, "0"], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    after = _lines(out)
    assert after[: len(before)] == before
    keys = [(row.get("cell_id"), row["task"]) for row in map(json.loads, after)]
    assert len(keys) == len(set(keys)) == 9
    run = read_run(out)
    assert run is not None and run["settings"]["resumed"] == 1


def _lines(folder: Path) -> list[str]:
    path = folder / "rows.jsonl"
    return [line for line in path.read_text().split("\n") if line] if path.exists() else []


def test_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A drafter that is named stands for the model's own in the grid."""
    path = tmp_path / "c.yaml"
    path.write_text("title: a\ngrid:\n  refine: [none]\n")
    asked: list[tuple[Config, str]] = []
    monkeypatch.setattr(
        "xpress_struct.lab.experiment.run.run_experiment",
        lambda config, out, command: asked.append((config, out)),
    )
    assert main(["experiment", str(path), "--drafter", "some/drafter", "--limit", "2"]) == 0
    config, out = asked[0]
    assert config.grid == {"drafter": ["some/drafter"], "refine": ["none"]} and config.limit == 2
    assert out == "experiment-c"
    assert main(["experiment", str(tmp_path / "none.yaml")]) == 1
    assert "cannot be read" in capsys.readouterr().err
