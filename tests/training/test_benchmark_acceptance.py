"""The acceptance benchmark, at a size that shows its code at work and nothing about drafting."""

from __future__ import annotations

import json
from functools import cache

import pytest
import torch

import xpress_struct as xs
from benchmarks import acceptance
from benchmarks.held_out import CATEGORIES, MADE_UP, select
from benchmarks.unforced import UnforcedDrafter, unforced
from tests.training.tiny import SIZES, tiny_model, tokenizer
from xpress_struct.drafting.diffusion import DiffusionDrafter
from xpress_struct.drafting.lookup import LookupDrafter
from xpress_struct.drafting.several import SeveralDrafter
from xpress_struct.model import Model
from xpress_struct.training.sources import read_prompts
from xpress_struct.training.split import group_of, is_held_out
from xpress_struct.training.start import new_weights

RUNS = xs.regex("([ab]wxyz){6}")
SMALL = ["--limit", "1", "--max-new-tokens", "12"]


@cache
def trained() -> DiffusionDrafter:
    torch.manual_seed(0)
    return DiffusionDrafter(new_weights(tiny_model(), [], SIZES))


def helped() -> Model:
    """The tiny target with a drafter as `load` would make it from a checkpoint's name."""
    tiny = tiny_model()
    drafter = SeveralDrafter([trained(), LookupDrafter()])
    return Model(tiny.target, tokenizer(), tiny.vocabulary, drafter)


def names(held_out: bool, count: int) -> list[str]:
    return [name for name in map(str, range(99)) if is_held_out(group_of(name)) == held_out][:count]


@pytest.fixture
def tasks(tmp_path, monkeypatch):
    """Function calls, two of three held out, and the tiny model in place of what would be loaded."""
    schemas = [{"type": "object", "properties": {f"k{i}": {"type": "boolean"}}} for i in range(40)]
    chosen = [s for s in schemas if is_held_out(group_of(s))][:2]
    chosen += [s for s in schemas if not is_held_out(group_of(s))][:1]
    rows = [
        {"id": f"call{i}", "messages": [{"role": "user", "content": f"say {i}"}], "schema": schema}
        for i, schema in enumerate(chosen)
    ]
    path = tmp_path / "json_tasks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(acceptance.xs, "load", lambda name, drafter: helped())
    return path


def test_it_prints_every_row(tasks, capsys):
    """Each rule, category and way has its row, RESULT holds them, and the file every document."""
    out = tasks.with_name("out.json")
    acceptance.main(["--tasks", str(tasks), *SMALL, "--rules", "greedy,token", "--out", str(out)])
    printed = capsys.readouterr().out
    lines = printed.strip().splitlines()
    result = json.loads(lines[-1].removeprefix("RESULT "))
    assert "json: 1 documents" in printed
    assert "of 3 prompts 2 are held out, with 2 schemas" in printed
    assert result["equal_ids"] == result["compared"] == len(CATEGORIES)
    for rule, figures in [("greedy", result), *result["sampled"].items()]:
        for category in CATEGORIES:
            shown = [line.split()[3] for line in lines if line.split()[:3:2] == [rule, category]]
            row = figures[category]
            assert list(row) == list(acceptance.WAYS)
            assert shown == [way for way in acceptance.WAYS if row[way] is not None]
            assert all(value >= 1 for value in row.values() if value is not None)
            assert (row["forced"] is None) == (rule == "token")
    rows = json.loads(out.read_text())["rows"]
    for row in rows:
        if row["way"] == "forced":
            assert row["tokens"] - row["forced"] <= row["forwards"] <= row["tokens"] - row["forced"] + 1
    assert sum(row["forced"] for row in rows) > 0
    assert printed.count("(goal ") == 6


def test_without_a_trained_drafter(tasks, capsys, monkeypatch):
    """Its ways are left out, and the goals say that they were not measured."""
    monkeypatch.setattr(acceptance.xs, "load", lambda name, drafter: tiny_model())
    acceptance.main(["--tasks", str(tasks), *SMALL, "--rules", "greedy"])
    printed = capsys.readouterr().out
    result = json.loads(printed.strip().splitlines()[-1].removeprefix("RESULT "))
    assert result["json"]["lookup"] >= result["json"]["forced"] > 1
    assert result["json"]["parallel"] is None
    assert printed.count("not measured (goal") == 6


def test_other_ids_fail_the_run(tasks, capsys, monkeypatch):
    """When a way gives other ids than the rest under the coupled rule, the exit status is 1."""
    run = acceptance.Ways.run

    def moved(self, question, rule, way, seed):
        return run(self, question, rule, way, seed + (way == "base"))

    monkeypatch.setattr(acceptance.Ways, "run", moved)
    with pytest.raises(SystemExit) as raised:
        acceptance.main(["--tasks", str(tasks), *SMALL, "--rules", "coupled"])
    assert raised.value.code == 1
    assert "['base']" in capsys.readouterr().out


@pytest.mark.parametrize("rule", ["coupled", "token", "block"])
def test_unforced_decoding_pays_for_every_token(rule):
    """Without a drafter each token takes a forward; with one, forced tokens are guesses that stand."""
    asked = {"temperature": 1.0, "seed": 1, "guard": False, "acceptance": rule}
    model = tiny_model()
    free = model.generate([1, 2], RUNS, drafter=None, **asked)
    plain = model.generate([1, 2], unforced(RUNS), drafter=None, **asked)
    assert free.stats.forced == 25  # four behind each letter, and the end
    assert (plain.stats.forced, plain.stats.forwards) == (0, len(plain.token_ids))
    drafted = model.generate([1, 2], unforced(RUNS), drafter=UnforcedDrafter(trained()), **asked)
    assert drafted.stats.forced == 0
    assert drafted.stats.accepted >= len(drafted.token_ids) / 2
    assert drafted.stats.accepted + drafted.stats.forwards >= len(drafted.token_ids)
    if rule == "coupled":
        assert free.token_ids == plain.token_ids == drafted.token_ids


def test_only_held_out_prompts_are_selected():
    """No prompt that training may use is asked, and a seed selects the same questions."""
    prompts = {prompt.id: prompt for prompt in read_prompts([MADE_UP])}
    chosen, again, other = (select("code", MADE_UP, 9, seed, tiny_model()).questions for seed in (0, 0, 1))
    assert all(prompts[each.id].held_out and prompts[each.id].category == "code" for each in chosen)
    assert len(chosen) == 9
    assert [each.id for each in again] == [each.id for each in chosen] != [each.id for each in other]


def test_questions_over_tables(tmp_path):
    """A question of a file is answered over its own tables; a file without a held-out one is refused."""
    path = tmp_path / "sql.jsonl"
    rows = [
        {"id": f"q{db}", "db_id": db, "question": "How many?", "schema": f"CREATE TABLE t{db} (c{db} TEXT);"}
        for db in (*names(True, 1), *names(False, 5))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    chosen = select("sql", str(path), 4, 0, tiny_model())
    assert (chosen.prompts, chosen.held_out, chosen.schemas, len(chosen.questions)) == (6, 1, 1, 1)
    constraint, db = chosen.questions[0].constraint, rows[0]["db_id"]
    assert constraint.accepts(f"SELECT c{db} FROM t{db}")
    assert not constraint.accepts(f"SELECT x FROM t{db}")
    path.write_text(json.dumps(rows[-1]))
    with pytest.raises(ValueError, match="holds out no sql prompt of 1"):
        select("sql", str(path), 4, 0, tiny_model())


def test_a_document_that_takes_no_forward():
    """A text that is forced from end to end counts as one that took one forward, and is shown with none."""
    figures = acceptance.Figures([acceptance.Row("greedy", "json", "forced", "x", 10, 10, 0, 0)])
    assert figures.per_forward == 10
    assert figures.cells()[:4] == ["1", "10", "0", "10.00"]


def test_files_beside_the_tasks_are_found(tmp_path):
    """A file that is not named is the one beside the tasks, or made up; an unknown rule is refused."""
    (tmp_path / "code_tasks.jsonl").write_text("")
    options = acceptance.arguments(["--tasks", str(tmp_path / "json.jsonl"), "--text-prompts", "mine.jsonl"])
    assert options.code == str(tmp_path / "code_tasks.jsonl")
    assert (options.sql, options.text, options.extraction) == (MADE_UP, "mine.jsonl", MADE_UP)
    with pytest.raises(SystemExit):
        acceptance.arguments(["--tasks", "x", "--rules", "guess"])
