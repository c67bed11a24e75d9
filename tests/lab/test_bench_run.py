"""The runner of `xpress-struct bench`: turns, warm-up, failures, pairs, and what it writes."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.lab.tiny import Scripted, broken, helped, setting, texts
from xpress_struct.cli.main import main
from xpress_struct.errors import ArgumentError
from xpress_struct.lab.bench.command import BenchOptions, run_bench
from xpress_struct.lab.bench.run import Bench, interleaved, set_up
from xpress_struct.lab.bench.summary import figures, ratios, tables
from xpress_struct.lab.bench.systems.registry import PEERS, chosen, make_system
from xpress_struct.lab.bench.tasks.calls import WARM_UP
from xpress_struct.lab.rows import Row, append_row, mend, read_run


def test_turns() -> None:
    """Every document goes through every system before the next one, and who goes first changes each time."""
    heard: list[tuple[str, str]] = []
    systems = [Scripted(name, heard) for name in "abc"]
    turns = [(t.id, [s.name for s in able]) for t, _, able in interleaved(texts(4), systems, ("greedy",))]
    assert turns == [("t0", [*"abc"]), ("t1", [*"bca"]), ("t2", [*"cab"]), ("t3", [*"abc"])]


def test_a_quarter_is_sampled() -> None:
    """Beside a greedy run one document in four is sampled; alone, all are."""
    systems = [Scripted("a", [])]
    both = [(task.id, mode) for task, mode, _ in interleaved(texts(5), systems, ("greedy", "sampled"))]
    assert [task for task, mode in both if mode == "sampled"] == ["t0", "t1"]
    assert len([1 for _ in interleaved(texts(5), systems, ("sampled",))]) == 5


def test_systems_run_what_they_take() -> None:
    """A system is not asked for a category that it cannot be told the constraint of."""
    one, other = Scripted("a", []), Scripted("b", [])
    other.takes = ("json",)
    turns = [able for _, _, able in interleaved(texts(1), [one, other], ("greedy",))]
    assert turns == [[one]]


def test_warm_up_leaves_no_row() -> None:
    """Each system runs twice before, over another document, and no row tells of it."""
    heard: list[tuple[str, str]] = []
    shared = setting()
    systems, errors = set_up(["a"], shared, lambda name, _: Scripted(name, heard, lambda task: ""))
    assert heard == [("a", WARM_UP.id)] * 2 and not errors
    rows: list[Row] = []
    Bench(shared, texts(2), systems, ("greedy",)).run(rows.append)
    assert [row.task for row in rows] == ["t0", "t1"]


def test_a_failing_peer_is_shown() -> None:
    """What a system raises, when it is made or on a document, stands with its name and stops nothing."""
    shared = setting()

    def make(name: str, _: Any) -> Scripted:
        if name == "absent":
            return make_system(name, shared)
        return Scripted(name, [], lambda task: broken(task) if task is not WARM_UP else "")

    systems, errors = set_up(["absent", "late"], shared, make)
    assert "KeyError" in errors["absent"]
    rows: list[Row] = []
    Bench(shared, texts(1), systems, ("greedy",)).run(rows.append)
    assert [(row.system, row.error, row.valid) for row in rows] == [
        ("late", "RuntimeError: out of luck", False)
    ]
    assert figures(rows, rows)["failed"] == 1


def test_a_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that is not installed names the command that installs it."""
    monkeypatch.setitem(sys.modules, "dflash", None)
    _, errors = set_up(["dflash"], setting())
    assert errors["dflash"].startswith("not installed: dflash is not installed; pip install")


def test_seconds_leave_documents_out() -> None:
    """When the minutes are over no document begins, and the rest is named."""
    rows: list[Row] = []
    bench = Bench(
        setting(), texts(3), [Scripted("a", [], lambda task: "")], ("greedy", "sampled"), seconds=0.0
    )
    bench.run(rows.append)
    assert not rows and bench.left_out == ["t0", "t1", "t2"]


def test_ratios_are_of_pairs() -> None:
    """A ratio compares one document by two systems; what only one of them wrote does not count, nor what the
    system had cut. The baseline's rate counts where it was cut too."""
    ended = {"completed": True, "tokens": 10}
    mine = [Row("a", "t0", "text", seconds=1.0, **ended), Row("a", "t1", "text", seconds=2.0, **ended)]
    mine.append(Row("a", "t2", "text", tokens=10, seconds=1.0))
    base = [Row("b", "t0", "text", tokens=10, seconds=2.0), Row("b", "t2", "text", tokens=99, seconds=1.0)]
    assert ratios(mine, base) == [2.0]
    assert figures(mine, base)["ratio"] == 2.0
    assert figures(mine, base)["tokens_per_s"] == pytest.approx(30 / 4)
    base.append(Row("b", "t1", "text", tokens=10, seconds=8.0))
    assert figures(mine, base)["ratio"] == 3.0 and figures(mine, base)["ratio_q3"] == 3.5


def test_tables_show_all_systems() -> None:
    """Each system has a line of its own, by category too; a failed one says how many."""
    rows = [Row("a", "t0", "json", tokens=3, seconds=1.0, completed=True, valid=True)]
    rows.append(Row("b", "t0", "json", error="X", seconds=1.0))
    printed = tables(rows, "a", ["a", "b"])
    assert "json  a" in printed and "json  b" in printed and "by category" in printed


def test_names_of_systems() -> None:
    """Lists of systems are read in the order of the tables; a name that is not known is refused."""
    assert chosen("xgrammar,plain", "all,none")[:2] == ["plain", "xgrammar"]
    assert chosen("none", "lookup") == ["ours-lookup"]
    assert len(chosen("all", "none")) == len(PEERS)
    with pytest.raises(ArgumentError, match="unknown vllm; known: plain"):
        chosen("vllm", "all")


def test_a_torn_row_is_cut_off(tmp_path: Path) -> None:
    """What a killed run left of a line goes; whole rows stay as they were written."""
    append_row(tmp_path, Row("a", "t0", "text", text="é"))
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('{"system": "a", "ta')
    (row,) = mend(tmp_path)
    assert row["text"] == "é" and "cell" not in row
    append_row(tmp_path, Row("a", "t1", "text"))
    assert [row["task"] for row in mend(tmp_path)] == ["t0", "t1"]


def test_bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run over a file with a tiny model writes run.json and a row for each system, prints, and reports."""
    tasks = tmp_path / "text.jsonl"
    rows = [{"id": f"x{i}", "kind": "k", "instruction": "ask", "prompt": f"abc {i}"} for i in range(2)]
    tasks.write_text("\n".join(map(json.dumps, rows)))
    options = BenchOptions(
        tasks=[str(tasks)],
        peers="plain-lookup,plain",
        ours="none,refined,all",
        max_new_tokens=12,
        out=str(tmp_path / "out"),
    )
    folder = run_bench(options, "xpress-struct bench", helped())
    run, found = read_run(folder), mend(folder)
    assert run is not None and run["kind"] == "bench" and run["baseline"] == "plain"
    assert {each["name"]: each["error"] for each in run["systems"]} == dict.fromkeys(
        ["plain", "plain-lookup", "ours-none", "ours-refined", "ours-all"]
    )
    assert len(found) == 3 * 5 and {row["mode"] for row in found} == {"greedy", "sampled"}
    assert all(row["tokens"] and row["forwards"] and not row["error"] for row in found)
    for row in found:
        assert sum(row["split"].values()) == pytest.approx(row["seconds"], abs=1e-3)
    assert run["settings"]["equal_ids"] == {"compared": 3, "equal": 3}
    assert "<svg" in (folder / "report.html").read_text(encoding="utf-8")
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last.startswith("RESULT ") and json.loads(last[7:])["greedy"]["plain"]["docs"] == 2
    with pytest.raises(ArgumentError, match="already holds a run"):
        run_bench(options, "again", helped())
    alone = replace(options, peers="none", ours="none,refined", out=str(tmp_path / "ours"))
    folder = run_bench(alone, "xpress-struct bench", helped())
    run = read_run(folder)
    assert run is not None and run["baseline"] == "ours-none" and (folder / "report.html").is_file()


def test_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The options arrive under their names; a value that has no meaning ends the command with its reason."""
    asked: list[BenchOptions] = []
    monkeypatch.setattr("xpress_struct.lab.bench.command.run_bench", lambda o, command: asked.append(o))
    assert main(["bench", "--limit", "3", "--tasks", "json,sql", "f.jsonl", "--modes", "greedy"]) == 0
    assert asked[0].limit == 3 and asked[0].tasks == ["json,sql", "f.jsonl"] and asked[0].modes == ["greedy"]
    assert main(["bench", "--limit", "0"]) == 1
    assert "--limit 0" in capsys.readouterr().err
