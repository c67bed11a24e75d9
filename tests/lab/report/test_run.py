"""A run's folder that is not what the format says is refused, with the place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab.report import made_up
from xpress_struct.errors import ArgumentError
from xpress_struct.lab.report.run import read_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made_up.bench(tmp_path / "run", documents=1, categories=("json",))


def _change(path: Path, at: int, **changes: Any) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    found = json.loads(lines[at])
    found.update({name: value for name, value in changes.items() if value != "GONE"})
    for name in [name for name, value in changes.items() if value == "GONE"]:
        del found[name]
    lines[at] = json.dumps(found)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_what_is_read(folder: Path) -> None:
    """Systems, modes and rows are those of the files."""
    run = read_run(folder)
    assert run.modes == ["greedy", "sampled"] and len(run.rows) == 2 * len(made_up.SPEEDS)
    assert [each.name for each in run.systems if each.error] == ["dflash"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "race"}, "run.json: \"kind\" is 'race'"),
        ({"kind": "experiment"}, 'run.json: "axes" is missing'),
        ({"systems": "GONE"}, 'run.json: "systems" is missing'),
        ({"systems": [1]}, "run.json, system 0: an object"),
        ({"baseline": "other"}, "the baseline 'other' is none of"),
        ({"machine": None}, 'run.json: "machine" is None, which is no dict'),
    ],
)
def test_faults_of_run_json(folder: Path, changes: dict[str, Any], said: str) -> None:
    """A field that is missing or wrong is named."""
    _change(folder / "run.json", 0, **changes)
    with pytest.raises(ArgumentError) as caught:
        read_run(folder)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"system": "nobody"}, "the system 'nobody' is none of"),
        ({"tokens": "GONE"}, '"tokens" is missing'),
        ({"tokens": "many"}, "\"tokens\" is 'many', which is no int"),
        ({"split": {"thinking": 1.0}}, "unknown part 'thinking'"),
        ({"pieces": [["x", "guessed"]]}, 'in "pieces" is not [text, one of prefix'),
        ({"proposed_by_slot": [1], "accepted_by_slot": [1, 1]}, 'is longer than "proposed_by_slot"'),
        ({"system": "plain"}, "the document of line 1 again"),
    ],
)
def test_faults_of_a_row(folder: Path, changes: dict[str, Any], said: str) -> None:
    """A fault of a row is named with its line."""
    _change(folder / "rows.jsonl", 1, **changes)
    with pytest.raises(ArgumentError) as caught:
        read_run(folder)
    assert str(caught.value).startswith("rows.jsonl, line 2: ") and said in str(caught.value)


def test_half_a_line(folder: Path) -> None:
    """A line that was cut is named."""
    path = folder / "rows.jsonl"
    path.write_text(path.read_text(encoding="utf-8")[:-30], encoding="utf-8")
    with pytest.raises(ArgumentError, match=r"rows\.jsonl, line 10: not JSON"):
        read_run(folder)


def test_no_rows_and_no_files(folder: Path, tmp_path: Path) -> None:
    """An empty run and an empty folder are refused."""
    (folder / "rows.jsonl").write_text("")
    with pytest.raises(ArgumentError, match="nothing was run"):
        read_run(folder)
    with pytest.raises(ArgumentError, match=r"run\.json.* is missing"):
        read_run(tmp_path)
