"""The benchmarks of SQL and code, with a scripted model: what they count, and nothing about quality."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import xpress_struct as xs
from benchmarks import code, sql
from benchmarks.judges import JUDGES
from benchmarks.trials import Request, evenly, run_all, unfenced
from tests.stubs import END, StubTarget, byte_vocabulary

TABLES = "CREATE TABLE singer (id INTEGER, name TEXT);"


def scripted(answers: Mapping[str, str]) -> xs.Model:
    """A model over bytes that answers a prompt with that word in it, and then wants to end."""
    vocabulary = byte_vocabulary()
    prompt = 0

    def encode(text: str, **_: Any) -> list[int]:
        nonlocal prompt
        prompt = len(text.encode())
        return list(text.encode())

    def logits(prefix: tuple[int, ...]) -> list[float]:
        asked = bytes(prefix[:prompt]).decode()
        answer = next(answer for word, answer in answers.items() if word in asked)
        written = len(prefix) - len(asked) - len(code.FENCE) * asked.endswith("only.")
        wanted = [*answer.encode(), END]
        row = [0.0] * 257
        row[wanted[min(written, len(answer))]] = 10.0
        return row

    tokenizer = SimpleNamespace(chat_template=None, encode=encode)
    return xs.Model(StubTarget(logits, vocabulary.width), tokenizer, vocabulary, None)  # type: ignore[arg-type]


def tasks(path: Path, rows: list[dict[str, str]]) -> list[str]:
    file = path / "tasks.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return ["--tasks", str(file)]


def result(printed: str) -> dict[str, Any]:
    last = printed.strip().splitlines()[-1]
    assert last.startswith("RESULT ")
    return json.loads(last.removeprefix("RESULT "))


def test_sql(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A good query counts everywhere; one over tables that do not exist parses and does not prepare."""
    rows = [
        {"id": word, "db_id": word, "schema": TABLES, "question": f"The {word}?"}
        for word in ("names", "ages")
    ]
    answers = {"names": "SELECT name FROM singer;", "ages": "SELECT age FROM people;"}
    sql.main([*tasks(tmp_path, rows), "--compile"], scripted(answers))
    found = result(capsys.readouterr().out)
    assert found["compile"]["databases"] == 2
    for name in ("unconstrained", "grammar"):
        assert (found[name]["parses"], found[name]["prepares"]) == (1.0, 0.5)
    assert found["sql"]["docs"] == 2
    assert found["sql"]["prepares"] >= 0.5
    assert found["unconstrained"]["masks"] == 0 < found["sql"]["masks"]
    assert found["unconstrained"]["complete"] == 1.0


@pytest.mark.slow
def test_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Prose parses under the constraint only; a function's rest is judged behind its head."""
    rows = [
        {"id": "rest", "kind": "completion", "prompt": "def one():\n"},
        {"id": "prose", "kind": "instruction", "prompt": "Say prose."},
    ]
    answers = {"def one": "\n    return 1\n", "prose": "x = 1\n?? no\n"}
    code.main([*tasks(tmp_path, rows), "--max-new-tokens", "24"], scripted(answers))
    found = result(capsys.readouterr().out)
    assert found["unconstrained"]["parses"] == 0.5
    assert found["unconstrained"]["complete"] == 1.0
    assert found["code"]["parses"] == 1.0


def test_an_error_counts_as_failed() -> None:
    """What the library raises instead of a text is kept, and passes no judge."""
    model = scripted({"ask": "x"})
    systems = {"one": lambda row: Request("ask", None, {"max_new_tokens": 0})}
    (trial,) = run_all(model, systems, [{"id": "a"}], lambda row: {"parses": JUDGES["python"]})["one"]
    assert trial.error is not None and "max_new_tokens" in trial.error
    assert not trial.passes("parses") and not trial.complete


def test_the_sample_is_even() -> None:
    """Every group has its share as far as it goes, and a seed always draws the same."""
    rows = [{"id": str(place), "group": "abb bccc"[place % 8]} for place in range(80)]
    drawn = evenly(rows, "group", 12, 1)
    assert drawn == evenly(rows, "group", 12, 1) != evenly(rows, "group", 12, 2)
    assert sorted(row["group"] for row in drawn) == [*"   aaabbbccc"]


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("SELECT 1", "SELECT 1"),
        ("So:\n```sql\nSELECT 1\n```\nIt is.", "SELECT 1\n"),
        ("```\nSELECT", "SELECT"),
    ],
)
def test_unfenced(text: str, inside: str) -> None:
    """The first fence's block, also one that is cut, is what an answer says."""
    assert unfenced(text) == inside
