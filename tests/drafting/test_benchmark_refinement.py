"""The refinement benchmark, at a size that shows its code at work and nothing about speed."""

from __future__ import annotations

import json
import random

import pytest

from benchmarks import pair, refinement
from benchmarks.synthetic import SCHEMAS, document, prompts
from xpress_struct import json_schema

TINY = pair.Recipe(width=16, target_steps=2, texts=4, length=64, drafter_steps=2, block=9, known=32, rank=4)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(pair, "cache_dir", lambda: tmp_path)
    return tmp_path


def test_it_prints_every_row(cache, capsys, monkeypatch):
    """Each rule, length and variant has its row, and RESULT holds the greedy ones with their ratio."""
    monkeypatch.setattr(refinement, "_LONGEST", 16)
    refinement.main(["--limit", "1", "--lengths", "8"], TINY)
    lines = capsys.readouterr().out.strip().splitlines()
    rows = [line for line in lines if line.startswith(("coupled", "token", "block"))]
    assert len(rows) == len(refinement.RULES) * (1 + len(refinement.VARIANTS))
    result = json.loads(lines[-1].removeprefix("RESULT "))
    assert list(result["K"]) == ["8"]
    for length, row in result["K"].items():
        assert list(row) == list(refinement.VARIANTS)
        assert all(tokens >= 1 for tokens in row.values())
        assert result["parallel_over_sequential"][length] == pytest.approx(
            row["parallel-4"] / row["sequential"], abs=1e-3
        )


def test_a_pair_is_made_once_and_again_when_asked(cache, monkeypatch):
    """A second call reads what the first one made; `fresh` makes it again, with the same weights."""
    first = pair.load_pair(TINY).target.model.state_dict()
    made = []
    make = pair._make
    monkeypatch.setattr(pair, "_make", lambda *how: (made.append(how), make(*how)))
    pair.load_pair(TINY)
    assert not made
    again = pair.load_pair(TINY, fresh=True).target.model.state_dict()
    assert made and all(again[name].equal(weight) for name, weight in first.items())


def test_other_ids_fail_the_run(cache, monkeypatch):
    """When a variant gives other ids than decoding without a drafter, the benchmark raises."""
    model, wrong = pair.load_pair(TINY), iter(range(1, 100))
    monkeypatch.setattr(model, "generate", _other_seeds(model.generate, wrong))
    options = refinement.arguments(["--limit", "1", "--lengths", "4", "--rules", "coupled"])
    with pytest.raises(AssertionError, match="coupled, K=4, none"):
        refinement.run_all(model, options)


def _other_seeds(generate, seeds):
    return lambda *args, **options: generate(*args, **options | {"seed": next(seeds)})


def test_documents_fit_their_schemas():
    """Every prompt's documents are what its schema's mask would let pass."""
    constraints = {kind: json_schema(schema) for kind, schema in SCHEMAS.items()}
    rng = random.Random(0)
    assert all(constraints[kind].accepts(document(rng, prompt)) for kind, prompt in prompts())


@pytest.mark.parametrize("given", [["--rules", "greedy,guess"], ["--lengths", "4,many"]])
def test_arguments_are_checked(given, capsys):
    """An unknown rule or a length that is no number ends with a message."""
    with pytest.raises(SystemExit):
        refinement.arguments(given)
    assert given[0].strip("-") in capsys.readouterr().err
