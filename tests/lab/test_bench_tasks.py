"""What is asked, and how answers are judged: calls, queries, programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.tiny import helped, texts
from xpress_struct.errors import ArgumentError
from xpress_struct.lab.bench.sandbox import run_tests
from xpress_struct.lab.bench.tasks.calls import problem, score
from xpress_struct.lab.bench.tasks.programs import code_task, start_of
from xpress_struct.lab.bench.tasks.queries import normalised, own_queries, query_task, unprepared
from xpress_struct.lab.bench.tasks.sampling import draw_tasks, sample
from xpress_struct.lab.bench.tasks.sources import Source, find_sources

ONE = [{"area": {"base": [10, 10.5], "unit": ["units", ""]}}]


@pytest.mark.parametrize(
    ("value", "right"),
    [
        ({"name": "area", "arguments": {"base": 10}}, True),
        ({"name": "area", "arguments": {"base": 10.0, "unit": "UNITS"}}, True),
        ([{"name": "area", "arguments": {"base": 10}}], True),
        ({"name": "area", "arguments": {"base": 11}}, False),
        ({"name": "area", "arguments": {"base": True}}, False),
        ({"name": "area", "arguments": {"unit": "units"}}, False),
        ({"name": "area", "arguments": {"base": 10, "more": 1}}, False),
        ({"name": "other", "arguments": {"base": 10}}, False),
        ("text", False),
    ],
)
def test_calls(value: object, right: bool) -> None:
    """A call is right with the function's name and acceptable arguments only."""
    assert score(value, ONE) is right


def test_calls_in_any_order() -> None:
    """Several calls are matched in any order, each of the acceptable ones once."""
    two = [{"f": {"x": [1]}}, {"f": {"x": [2]}}]
    calls = [{"name": "f", "arguments": {"x": x}} for x in (2, 1, 2)]
    assert score(calls[:2], two) and not score(calls[::2], two) and not score(calls, two)


def test_documents() -> None:
    """The whole text must be JSON that fits the schema."""
    schema = {"type": "object", "required": ["a"]}
    assert problem('{"a": 1}', schema) is None
    assert "required" in str(problem("{}", schema)) and "not JSON" in str(problem('{"a": 1} x', schema))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT name FROM singer;", "select  Name from singer"),
        ('SELECT "name" FROM `singer` WHERE a <> 1', "SELECT name FROM singer WHERE a != 1"),
        ("SELECT T1.name FROM singer AS T1", "SELECT name FROM singer"),
        ("SELECT s.name FROM singer s ORDER BY s.age ASC", "SELECT name FROM singer ORDER BY age"),
        (
            "SELECT T1.a, T2.b FROM x AS T1 JOIN y AS T2 ON T1.i = T2.i",
            "SELECT x.a, y.b FROM x INNER JOIN y ON x.i = y.i",
        ),
    ],
)
def test_equal_queries(one: str, other: str) -> None:
    """Queries that differ in spelling, aliases or needless qualifiers are the same."""
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM x WHERE b = 'Paris'", "SELECT a FROM x WHERE b = 'paris'"),
        ("SELECT a FROM x ORDER BY a", "SELECT a FROM x ORDER BY a DESC"),
        ("SELECT x.a FROM x JOIN y ON x.i = y.i", "SELECT y.a FROM x JOIN y ON x.i = y.i"),
        ("SELECT a FROM x", "SELECT DISTINCT a FROM x"),
    ],
)
def test_other_queries(one: str, other: str) -> None:
    """Queries that ask for something else are not the same."""
    assert normalised(one) != normalised(other)


def test_own_queries() -> None:
    """Each query of the set written by hand is one that SQLite prepares over its tables."""
    rows = own_queries()
    assert len(rows) == 30 and len({row["id"] for row in rows}) == 30
    assert [row["id"] for row in rows if unprepared(row["schema"], row["query"])] == []


def test_a_query_is_judged() -> None:
    """A query over a column that is not there is no answer; the gold one is right."""
    row = own_queries()[0]
    task = query_task(row)
    assert task.problem(row["query"]) is None and task.grade is not None and task.grade(row["query"])
    assert "no such column" in str(task.problem("SELECT nobody FROM recipe"))
    assert not task.grade("SELECT name FROM recipe")


HEAD = 'def double(x):\n    """Twice x."""\n'
TEST = "def check(candidate):\n    assert candidate(2) == 4\n"


@pytest.mark.slow
def test_programs() -> None:
    """A completion is judged behind its head, by its tests; a module by itself."""
    row = {"id": "a", "prompt": HEAD, "test": TEST, "entry_point": "double"}
    task = code_task(row)
    assert task.raw and task.grade is not None and task.grammar_start == HEAD.rstrip()
    assert task.problem("\n    return 2 * x") is None and task.grade("\n    return 2 * x")
    assert not task.grade("\n    return 3 * x") and task.problem("\n    return (") is not None
    asked = code_task(row | {"kind": "instruction", "prompt": "Double.", "test": "assert double(2) == 4"})
    assert asked.grade is not None and asked.grade("def double(x):\n    return 2 * x\n") and not asked.raw
    assert start_of(row | {"kind": "instruction"}) == ""


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("x = 1\nassert x == 2", "AssertionError"),
        ("while True: pass", "no end after|signal"),
        ("import time\ntime.sleep(60)", "no end after"),
        ("x = [0] * 10**10", "MemoryError"),
        ("open('/tmp/xpress_struct_evil', 'w')", "PermissionError: open for writing"),
        ("import os\nos.remove('/tmp/xpress_struct_evil')", "PermissionError: os.remove"),
        ("f = open('x', 'w')\nfor _ in range(9): f.write('a' * 10**6)", "File too large"),
        ("import os\nos.fork()", "PermissionError: os.fork"),
        ("import subprocess\nsubprocess.run(['true'])", "PermissionError: subprocess"),
        ("import socket\nsocket.socket()", "PermissionError: socket"),
        ("import sys\nsys.exit(0)", "ended by itself with code 0"),
        ("import os\nos._exit(0)", "ended by itself with code 0"),
        ("def f(: pass", "SyntaxError"),
    ],
)
def test_sandbox_ends(program: str, reason: str) -> None:
    """Programs that fail, never end, take too much, change other files or start others do not pass."""
    outcome = run_tests(program, wall_s=3.0, cpu_s=2)
    assert not outcome.passed
    assert any(part in outcome.reason for part in reason.split("|")), outcome.reason
    assert not Path("/tmp/xpress_struct_evil").exists()


def test_sandbox_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that comes to its end passes; it sees no environment, and may write in its own folder."""
    monkeypatch.setenv("A_SECRET", "x")
    program = "import math, os\nopen('x', 'w').write('a')\nassert 'A_SECRET' not in os.environ"
    assert run_tests(program).passed


def test_files(tmp_path: Path) -> None:
    """Rows are known by their fields; one of no known form is refused with its number."""
    path = tmp_path / "tasks.jsonl"
    rows = [
        {"id": "a", "messages": [], "prompt": "", "schema": {}, "acceptable": []},
        {
            "id": "b",
            "db_id": "d",
            "question": "q",
            "schema": "CREATE TABLE t (a);",
            "query": "SELECT a FROM t",
        },
        {"id": "c", "kind": "completion", "prompt": "def f():\n", "test": "", "entry_point": "f"},
        {"id": "d", "kind": "k", "instruction": "i", "prompt": "p"},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert [source.category for source in find_sources([str(path)])] == ["json", "sql", "code", "text"]
    path.write_text('{"id": "a"}')
    with pytest.raises(ArgumentError, match="row 1: it has no known form"):
        find_sources([str(path)])
    with pytest.raises(ArgumentError, match="'jsn' is neither one of json, sql"):
        find_sources(["json.jsonl,jsn".replace("json.jsonl", "text")])


def test_the_sample_takes_turns() -> None:
    """Categories take turns, and groups within them; the same seed draws the same."""
    sources = [
        Source("text", [(task.group, lambda task=task: task) for task in texts(6)], "one"),  # type: ignore[misc]
        Source("json", [(task.group, lambda task=task: task) for task in texts(2, "json")], "two"),  # type: ignore[misc]
    ]
    model = helped()
    drawn, refused = draw_tasks(sources, 6, 0, model, 8)
    assert [task.category for task in drawn] == ["text", "json", "text", "json", "text", "text"]
    assert refused == 0 and {task.group for task in drawn[:3:2]} == {"0", "1"}
    assert [t.id for t in draw_tasks(sources, 6, 0, model, 8)[0]] == [t.id for t in drawn]
    assert draw_tasks(sources, 6, 0, model, 10**6) == ([], 8)


def test_the_sample_by_share() -> None:
    """Every group has its share of a limit."""
    tasks = [*texts(6), *texts(2)]
    assert len(sample(tasks, 4)) == 4 and sample(tasks, 4) == sample(tasks, 4)
