"""The acceptance rules as pure functions: exact to 1e-9, every draft and every coin enumerated."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from tests.exactness.helpers import Coin, V, one_hot_rows, outcomes, total_variation
from xpress_struct.decoding.acceptance import accept_block, accept_coupled, accept_token_level

RULES = {"token": accept_token_level, "block": accept_block}


def rows(seed, *, legal=V, spread=1.2):
    """prefix -> a random distribution with `legal` possible tokens, float64."""

    def row(prefix):
        random = np.random.default_rng([seed, len(prefix), *prefix])
        weights = np.exp(spread * random.normal(size=V))
        weights[random.permutation(V)[legal:]] = 0
        return torch.from_numpy(weights / weights.sum())

    return row


def one_hot(q):
    return lambda prefix: one_hot_rows([int(q(prefix).argmax())])[0]


def emitted(rule, p, q, length, *, random=True):
    """Exact distribution of the tokens of one round."""

    def program(pick):
        draft = []
        for _ in range(length):
            draft.append(pick(q(tuple(draft)).tolist()))
        given = [q(tuple(draft[:k])) for k in range(length)] if random else None
        accepted = rule(
            draft,
            given,
            lambda k: p(tuple(draft[:k])),
            lambda k: Coin(pick),
            lambda weights, k: pick(weights.tolist()),
        )
        return (*draft[: accepted.count], accepted.token)

    return outcomes(program)


def completed(found, p, length):
    """The same, continued from p to `length` tokens."""
    whole = {}
    for tokens in itertools.product(range(V), repeat=length):
        chain = [float(p(tokens[:k])[tokens[k]]) for k in range(length)]
        share = sum(found.get(tokens[:k], 0.0) * float(np.prod(chain[k:])) for k in range(1, length + 1))
        if share:
            whole[tokens] = share
    return whole


def chained(p, length):
    return completed({(v,): float(x) for v, x in enumerate(p(()))}, p, length)


DRAWN = {
    "masked": (rows(5, legal=3), True),
    "unmasked": (rows(5), True),
    "one-hot": (one_hot(rows(5)), False),
    "one-hot rows": (one_hot(rows(5)), True),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", DRAWN)
@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_exact(seed, length, kind, rule):
    """A round and its continuation are distributed as autoregressive draws from p."""
    p, (q, random) = rows(seed, legal=3), DRAWN[kind]
    found = emitted(RULES[rule], p, q, length, random=random)
    assert total_variation(completed(found, p, length + 1), chained(p, length + 1)) < 1e-9


@pytest.mark.parametrize("rule", RULES)
def test_exact_three(rule):
    """Three slots, each with two possible guesses, are exact too."""
    p, q = rows(1, legal=3), rows(2, legal=2)
    found = emitted(RULES[rule], p, q, 3)
    assert total_variation(completed(found, p, 4), chained(p, 4)) < 1e-9


@pytest.mark.parametrize("rule", RULES)
def test_mixed_rows(rule):
    """Slots with q and one-hot slots (forced runs) may stand in one draft."""
    p, drawn, sure = rows(1, legal=4), rows(6), one_hot(rows(6))

    def program(pick):
        draft = [pick(drawn(()).tolist())]
        draft.append(int(sure(tuple(draft)).argmax()))
        accepted = RULES[rule](
            draft,
            [drawn(()), None],
            lambda k: p(tuple(draft[:k])),
            lambda k: Coin(pick),
            lambda weights, k: pick(weights.tolist()),
        )
        return (*draft[: accepted.count], accepted.token)

    assert total_variation(completed(outcomes(program), p, 3), chained(p, 3)) < 1e-9


@pytest.mark.parametrize("kind", ["masked", "unmasked", "one-hot rows"])
@pytest.mark.parametrize("seed", range(4))
def test_block_accepts_no_less(seed, kind):
    """Block acceptance keeps at least as many tokens as token-level acceptance, on average."""
    p, (q, _) = rows(seed, legal=4), DRAWN[kind]
    mean = {
        name: sum((len(tokens) - 1) * share for tokens, share in emitted(rule, p, q, 2).items())
        for name, rule in RULES.items()
    }
    assert mean["block"] >= mean["token"] - 1e-12


@pytest.mark.parametrize("rule", RULES)
def test_first_slot_is_optimal(rule):
    """One guess stands with probability 1 - TV(p, q), the best that is possible."""
    p, q = rows(3), rows(4)
    kept = sum(share for t, share in emitted(RULES[rule], p, q, 1).items() if len(t) == 2)
    distance = 0.5 * float((p(()) - q(())).abs().sum())
    assert kept == pytest.approx(1 - distance, abs=1e-12)


@pytest.mark.parametrize("length", [0, 1, 2, 4])
def test_coupled_is_the_target(length):
    """The coupled rule emits the target's own choices, whatever is drafted."""

    def choose(prefix):
        return int(np.random.default_rng([8, len(prefix), *prefix]).integers(V))

    def own(count):
        tokens = []
        while len(tokens) < count:
            tokens.append(choose(tuple(tokens)))
        return tokens

    for draft in itertools.product(range(V), repeat=length):
        accepted = accept_coupled(draft, lambda slot, draft=draft: choose(draft[:slot]))
        assert [*draft[: accepted.count], accepted.token] == own(accepted.count + 1)
        assert accepted.count == length or draft[accepted.count] != accepted.token
