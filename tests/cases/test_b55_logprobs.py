"""B55: log-probabilities are those of the masked target, with and without speculation."""

from __future__ import annotations

import math

import pytest
import torch

import xpress_struct as xs
from tests.cases.scripts import PROMPT, noisy
from tests.stubs import ScriptedDrafter, stub_model
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.results import Generation

SIX = Vocabulary.from_tokens([b"a", b"b", b"c", b"d", b"e", b""], end_ids=[5])
LOGITS = noisy(11, 6)
CONSTRAINTS = {
    "free": None,
    "regex": xs.regex("[ab]{2}cd[a-e]{1,3}"),
    "choice": xs.choice(["abc", "abd", "cab"]),
}


def expected(constraint: object, ids: tuple[int, ...]) -> list[torch.Tensor]:
    """Log-softmax of the masked logits at each place."""
    rows, matcher = [], None
    if constraint is not None:
        matcher, _ = constraint.matcher(SIX)
    for place, token in enumerate(ids):
        logits = torch.tensor(LOGITS((0, *ids[:place])))
        if matcher is not None:
            legal = torch.tensor([matcher.legal(i) for i in range(6)])
            logits = logits.masked_fill(~legal, -math.inf)
            matcher.commit([token])
        rows.append(logits.log_softmax(-1))
    return rows


def check(result: Generation, constraint: object, count: int) -> None:
    assert result.logprobs is not None
    assert [entry.token_id for entry in result.logprobs] == list(result.token_ids)
    for entry, row in zip(result.logprobs, expected(constraint, result.token_ids), strict=True):
        assert entry.logprob == pytest.approx(float(row[entry.token_id]), abs=1e-5)
        assert len(entry.top) == min(count, int((row > -math.inf).sum()))
        scores = [score for _, score in entry.top]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] == pytest.approx(float(row.max()), abs=1e-5)
        for token, score in entry.top:
            assert score == pytest.approx(float(row[token]), abs=1e-5)


@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize("acceptance", ["coupled", "token", "block"])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("drafted", [False, True])
@pytest.mark.parametrize("count", [1, 4])
def test_b55_logprobs_are_those_of_the_masked_target(
    name: str, acceptance: str, temperature: float, drafted: bool, count: int
) -> None:
    """Each emitted token has the log-softmax of the masked logits at its place."""
    plain = stub_model(LOGITS, SIX).generate([0], CONSTRAINTS[name], max_new_tokens=8)

    def guess(output: tuple[int, ...]) -> list[int]:
        return [*plain.token_ids[len(output) : len(output) + 3], 1, 0]

    model = stub_model(LOGITS, SIX, ScriptedDrafter(guess) if drafted else None)
    for seed in range(3):
        result = model.generate(
            [0],
            CONSTRAINTS[name],
            acceptance=acceptance,
            temperature=temperature,
            seed=seed,
            logprobs=count,
            max_new_tokens=8,
        )
        check(result, CONSTRAINTS[name], count)


@pytest.mark.parametrize("cut", [{"top_k": 2}, {"top_p": 0.4}, {"min_p": 0.8}])
def test_b55_logprobs_are_before_temperature_and_cuts(cut: dict) -> None:
    """Temperature and cuts change what is drawn, not what is reported."""
    model = stub_model(LOGITS, SIX)
    result = model.generate([0], CONSTRAINTS["regex"], temperature=2.0, seed=1, logprobs=6, **cut)
    check(result, CONSTRAINTS["regex"], 6)


def test_b55_asking_for_logprobs_changes_no_token() -> None:
    """The ids with logprobs are the ids without."""
    model = stub_model(noisy(3), drafter=ScriptedDrafter(lambda output: list(b"abc")))
    constraint = xs.regex("[a-d]{20}")
    for options in ({}, {"temperature": 1.0, "seed": 4}):
        plain = model.generate(PROMPT, constraint, **options)
        assert plain.logprobs is None
        assert model.generate(PROMPT, constraint, logprobs=3, **options).token_ids == plain.token_ids


def test_b55_a_forced_token_has_probability_one() -> None:
    """A token that is the only legal one is reported as certain."""
    result = stub_model(LOGITS, SIX).generate([0], xs.regex("abc[de]"), logprobs=2)
    for entry in (*result.logprobs[:3], result.logprobs[4]):
        assert (entry.logprob, entry.top) == (0.0, ((entry.token_id, 0.0),))
    assert result.logprobs[3].logprob < 0
