"""The whole decoder against the enumerated masked distribution (B45, B46)."""

from __future__ import annotations

import pytest
import torch

import xpress_struct as xs
from tests.exactness import drafters
from tests.exactness.helpers import (
    CONSTRAINTS,
    EXACT,
    PARAMS,
    autoregressive,
    decoded,
    table,
    total_variation,
)

RULES = ["token", "block"]


KINDS = {
    "masked": lambda c, k: drafters.sampled(c, k),
    "unmasked": lambda c, k: drafters.sampled(c, k, masked=False),
    "one-hot": lambda c, k: drafters.fixed(k),
    "legal one-hot": lambda c, k: drafters.legal_fixed(c, k),
    "none": lambda c, k: drafters.nothing,
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_exact(name, params, kind, rule):
    """Outputs follow masked autoregressive sampling, whatever the draft and the logit processing."""
    constraint, logits, budget = CONSTRAINTS[name], table(3), 2 if name == "free" else 3
    wanted = autoregressive(logits, constraint, PARAMS[params], budget)
    guess = KINDS[kind](constraint, 2)
    found = decoded(logits, constraint, guess, rule=rule, params=PARAMS[params], budget=budget, block=2)
    assert total_variation(found, wanted) < EXACT


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", ["masked", "unmasked", "one-hot"])
@pytest.mark.parametrize("budget", [1, 2, 4])
@pytest.mark.parametrize("seed", [0, 1])
def test_lengths(seed, budget, kind, rule):
    """End tokens and budgets inside a block leave the distribution as it is (B46)."""
    constraint, logits = CONSTRAINTS["letters"], table(seed)
    wanted = autoregressive(logits, constraint, PARAMS["hot-top_k"], budget)
    guess = KINDS[kind](constraint, 3)
    found = decoded(logits, constraint, guess, rule=rule, params=PARAMS["hot-top_k"], budget=budget, block=3)
    assert total_variation(found, wanted) < EXACT


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(4))
def test_resumed_drafts(seed, rule):
    """Forced runs filled in between the guesses of a block leave the distribution as it is."""
    constraint, logits = CONSTRAINTS["forcing"], table(seed)
    wanted = autoregressive(logits, constraint, PARAMS["plain"], 6)
    found = decoded(
        logits,
        constraint,
        drafters.legal_fixed(constraint, 2, seed=seed),
        rule=rule,
        params=PARAMS["plain"],
        budget=6,
        block=4,
        resumes=True,
    )
    assert total_variation(found, wanted) < EXACT


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("name", "block"), [("letters", 3), ("free", 2)])
def test_drawn_past_the_end(name, block, rule):
    """What a drafter draws behind an end token is not used (B43)."""
    constraint, logits = CONSTRAINTS[name], table(3)
    wanted = autoregressive(logits, constraint, PARAMS["hot-top_k"], block + 1)
    q = torch.tensor([0.5, 0, 0, 0, 0, 0.5], dtype=torch.float64)

    def guess(output, pick):
        return [pick(q.tolist()) for _ in range(block)], q.repeat(block, 1)

    found = decoded(
        logits, constraint, guess, rule=rule, params=PARAMS["hot-top_k"], budget=block + 1, block=block
    )
    assert total_variation(found, wanted) < EXACT


@pytest.mark.parametrize(
    "rule",
    [
        "token",
        "block",
    ],
)
def test_dead_end_ahead(rule):
    """A dead end is met as often as without drafts, and not for being drafted (B52)."""
    constraint, logits = xs.choice(["ab", "ca", "cbé"]), table(3)
    wanted = autoregressive(logits, constraint, PARAMS["plain"], 4)
    assert 0 < wanted["DeadEndError"] < 1
    q = torch.tensor([0.1, 0.4, 0.5, 0, 0, 0], dtype=torch.float64)

    def guess(output, pick):
        return [pick(q.tolist()) for _ in range(3)], q.repeat(3, 1)

    found = decoded(
        logits,
        constraint,
        guess,
        rule=rule,
        params=PARAMS["plain"],
        budget=4,
        block=3,
        errors=True,
    )
    assert total_variation(found, wanted) < EXACT
