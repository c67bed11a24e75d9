"""Simulated pairs: the divergence that was set, the library's own rounds, and predictions that hold."""

from __future__ import annotations

import json

import pytest
import torch

from tests.lab.pairs import pair
from xpress_struct.cli.main import main
from xpress_struct.errors import ArgumentError
from xpress_struct.lab.simulate import (
    Experiment,
    Recipe,
    RoundCosts,
    as_data,
    as_text,
    measure_costs,
    read_costs,
    replaced,
    simulate,
)
from xpress_struct.lab.simulate import rounds as rounds_module
from xpress_struct.lab.simulate.predict import (
    best_length,
    break_even_acceptance,
    coupled_bound,
    coupled_match,
    expected_tokens,
    mean_acceptance,
    tokens_from_curve,
)
from xpress_struct.lab.simulate.rounds import Variant, run_rounds
from xpress_struct.lab.simulate.tables import Tables
from xpress_struct.sampling import NoiseKey, gumbel_rows

NONE, SEQUENTIAL = Variant("none", "none"), Variant("sequential", "sequential")
SMALL = Recipe(vocabulary=24)


@pytest.mark.parametrize("divergence", [0.05, 0.3, 0.5])
def test_divergence_is_as_set(divergence):
    """In every context, target and drafter are as far apart as was asked for."""
    tables = Tables(Recipe(vocabulary=24, divergence=divergence))
    distance = (tables.target.exp() - tables.drafter.exp()).abs().sum(-1) / 2
    assert torch.allclose(distance, torch.full_like(distance, divergence), atol=1e-4)


def test_base_logits_are_the_mixture_over_what_is_to_the_left():
    """The base row of slot 1 is the drafter's row behind each first token, weighted by how likely that is."""
    tables = Tables(SMALL)
    first, second = tables.base(5, 3, 2).exp()
    rows = tables.drafter.exp()
    wanted = sum(rows[5 % tables.kinds, 3, v] * rows[6 % tables.kinds, v] for v in range(24))
    assert torch.allclose(first, rows[5 % tables.kinds, 3], atol=1e-5)
    assert torch.allclose(second, wanted, atol=1e-5)


def test_coupled_match_is_the_share_of_equal_draws():
    """Draws with shared noise agree as often as the formula says, and never less than the bound."""
    random = torch.Generator().manual_seed(0)
    p, q = torch.randn(2, 9, generator=random, dtype=torch.float64).mul(1.5).softmax(-1)
    noise = gumbel_rows(NoiseKey(0), range(20_000), 9, 0, None)
    seen = float(((p.log() + noise).argmax(-1) == (q.log() + noise).argmax(-1)).double().mean())
    assert coupled_match(p, q) == pytest.approx(seen, abs=0.012)
    assert coupled_match(p, q) > coupled_bound(float((p - q).abs().sum()) / 2)
    assert coupled_match(p, p) == pytest.approx(1.0)


@pytest.mark.parametrize("rule", ["coupled", "token", "block"])
@pytest.mark.parametrize("divergence", [0.1, 0.3])
def test_prediction_and_measurement_agree(rule, divergence):
    """Tokens by round are within 10 % of what the acceptance curve of other rounds predicts."""
    experiment = Experiment(SMALL, (5,), (divergence,), (2,), (rule,), rounds=250)
    for outcome in simulate(experiment):
        assert outcome.from_curve == pytest.approx(outcome.tokens, rel=0.1), outcome
        assert outcome.bound is None or outcome.tokens > 0.9 * outcome.bound
        speed = outcome.speeds["gpu"]
        assert outcome.formula / outcome.tokens == pytest.approx(speed.predicted / speed.measured, rel=1e-6)


@pytest.mark.parametrize("divergence", [0.05, 0.2, 0.4])
def test_published_formula(divergence):
    """Where each slot stands with probability 1 - TV, tokens by round are (1 - a^(K+1)) / (1 - a)."""
    tables = Tables(Recipe(vocabulary=24, divergence=divergence, seed=1))
    found = run_rounds(tables, "token", 6, SEQUENTIAL, 300, seed=0)
    assert found.tokens_per_round == pytest.approx(expected_tokens(1 - divergence, 6), rel=0.1)
    assert mean_acceptance(found.curve) == pytest.approx(1 - divergence, abs=1e-3)


def emitted(tables, rule, variant, monkeypatch, rounds=40):
    tokens = []
    emit = rounds_module._Text._emit

    def record(self, more):
        tokens.extend(more)
        emit(self, more)

    with monkeypatch.context() as patch:
        patch.setattr(rounds_module._Text, "_emit", record)
        found = run_rounds(tables, rule, 5, variant, rounds, seed=3)
    assert found.tokens == len(tokens)
    return tokens


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_rounds_are_lossless(temperature, monkeypatch):
    """Under the coupled rule every way of refining gives the same text."""
    tables = Tables(Recipe(vocabulary=24, divergence=0.3, temperature=temperature))
    plain = emitted(tables, "coupled", NONE, monkeypatch)
    for variant in (SEQUENTIAL, Variant("parallel-2", "parallel", 2)):
        other = emitted(tables, "coupled", variant, monkeypatch)
        shared = min(len(plain), len(other))
        assert shared >= 40
        assert plain[:shared] == other[:shared]


@pytest.mark.parametrize("rule", ["coupled", "token", "block"])
def test_grammar(rule, monkeypatch):
    """Under a mask every token is legal, what is forced comes out, and the prediction still holds."""
    tables = Tables(Recipe(vocabulary=24, illegal=0.5, forced=0.3, seed=2))
    place, left, forced = 0, 0, 0
    for token in emitted(tables, rule, SEQUENTIAL, monkeypatch):
        legal = tables.legal[place % tables.kinds, left]
        assert legal[token]
        forced += int(legal.sum()) == 1
        place, left = place + 1, token
    assert forced
    (none, sequential, _) = simulate(
        Experiment(Recipe(vocabulary=24, illegal=0.5, forced=0.3), (5,), (0.2,), (2,), (rule,), rounds=150)
    )
    assert sequential.from_curve == pytest.approx(sequential.tokens, rel=0.1)
    assert none.tokens < sequential.tokens


def test_break_even():
    """The break-even acceptance gives the tokens that a round costs; a round dearer than K + 1 never pays."""
    acceptance = break_even_acceptance(8, 2.5)
    assert expected_tokens(acceptance, 8) == pytest.approx(2.5)
    assert break_even_acceptance(2, 3.5) is None


def test_best_length():
    """On a falling curve the best block ends where another guess costs more than it brings."""
    curve = [0.9, 0.8, 0.1, 0.1]
    free = RoundCosts("flat", {1: 1.0})
    dear = RoundCosts("dear", {1: 1.0, 2: 1.5, 3: 2.0, 9: 5.0})
    assert best_length(curve, lambda k: free.round(k, 0)) == (4, 4)
    assert best_length(curve, lambda k: dear.round(k, 0))[0] == 2
    assert best_length([0.1], lambda k: dear.round(k, 0)) == (0, 0)
    assert tokens_from_curve(curve) == pytest.approx(1 + 0.9 + 0.72 + 0.072 + 0.0072)


def test_costs(tmp_path):
    """A forward costs what lies on the line between measured sizes; a file that says nothing is an error."""
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"score": {"1": 10, "9": 18}, "draft": 2}))
    costs = replaced(read_costs(str(path)), None, 0.5)
    assert (costs.name, costs.forward(1), costs.forward(5), costs.forward(17)) == ("mine", 10, 14, 26)
    assert costs.round(8, 2) == 2 + 1 + 18
    path.write_text("{}")
    for wrong in (str(path), str(tmp_path / "none.json")):
        with pytest.raises(ArgumentError, match="costs"):
            read_costs(wrong)


def test_costs_are_measured():
    """A model's forwards and its drafter's steps take time, by size."""
    costs = measure_costs(pair(), sizes=(1, 4), repeats=1)
    assert costs.score[1] > 0 and costs.score[4] > 0 and costs.draft > 0


@pytest.mark.parametrize(
    "wrong", [{"vocabulary": 2}, {"divergence": 0.7}, {"dependence": 2}, {"spread": 0}, {"temperature": -1}]
)
def test_recipes_are_checked(wrong):
    """A value outside its range is an error that names it."""
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        Recipe(**wrong)


def test_table_and_data():
    """Every row is in the table and in the data, with its costs."""
    experiment = Experiment(SMALL, (2, 4), (0.1,), (1,), rounds=10)
    outcomes = simulate(experiment)
    assert len(outcomes) == experiment.size == 6
    text = as_text(experiment, outcomes)
    assert text.count("parallel-1") == 2 and "gpu: speed" in text
    data = json.loads(json.dumps(as_data(experiment, outcomes)))
    assert [row["length"] for row in data["rows"]] == [2, 2, 2, 4, 4, 4]
    assert set(data["rows"][0]["speeds"]) == {"cpu", "gpu"}


def test_command(capsys, tmp_path):
    """The command prints the table and ends with one RESULT line; a bad list is an error."""
    out = tmp_path / "rows.json"
    given = ["simulate", "--vocabulary", "16", "--block-lengths", "3", "--divergence", "0.1", "--passes", "1"]
    assert main([*given, "--rounds", "10", "--draft-ms", "5", "--json", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert json.loads(lines[-1].removeprefix("RESULT "))["rounds"] == 10
    assert any("draft 5" in line for line in lines)
    assert len(json.loads(out.read_text())["rows"]) == 3
    assert main([*given[:-1], "few"]) == 1
    assert "--passes" in capsys.readouterr().err
