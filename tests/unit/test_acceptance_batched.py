"""Acceptance for a device says what the pure functions say, case by case."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import torch

from xpress_struct.decoding.acceptance import Accepted, accept_block, accept_token_level
from xpress_struct.decoding.acceptance_batched import accept_batched
from xpress_struct.errors import DeadEndError

RULES = {"token": accept_token_level, "block": accept_block}


def row(rng: random.Random, width: int) -> torch.Tensor:
    """A distribution; some tokens are impossible."""
    weights = torch.tensor([rng.random() ** 3 * (rng.random() < 0.8) for _ in range(width)]).double()
    weights[rng.randrange(width)] += 0.1
    return weights / weights.sum()


def case(seed: int):
    """Draft, q, p, coins and noise of a round, with an edge of each kind now and then."""
    rng = random.Random(seed)
    width, slots = rng.choice([2, 5, 40]), rng.choice([0, 1, 2, 3, 5, 8])
    p = torch.stack([row(rng, width) for _ in range(slots + 1)])
    if rng.random() < 0.15:
        p = torch.nn.functional.one_hot(p.argmax(-1), width).double()  # greedy
    draft, q = [], []
    kind = rng.choice(["near", "far", "equal", "one-hot"])
    for slot in range(slots):
        if kind == "one-hot" or rng.random() < 0.2:
            q.append(None)
            draft.append(rng.randrange(width) if rng.random() < 0.3 else int(p[slot].argmax()))
            continue
        other = row(rng, width)
        drawn_from = {"near": (3 * p[slot] + other) / 4, "far": other, "equal": p[slot].clone()}[kind]
        if kind == "far" and rng.random() < 0.5:
            drawn_from = other * (p[slot] == 0)  # nothing in common
            drawn_from = other if not drawn_from.any() else drawn_from / drawn_from.sum()
        q.append(drawn_from)
        draft.append(int(torch.multinomial(drawn_from, 1, generator=torch.Generator().manual_seed(seed))))
    if rng.random() < 0.2:
        p[rng.randrange(slots + 1)] = 0.0  # a dead end
    generator = torch.Generator().manual_seed(seed)
    noise = -(-torch.rand(slots + 1, width, generator=generator, dtype=torch.float64).log()).log()
    coins = [rng.random() ** rng.choice([1, 3]) for _ in range(slots)]
    return draft, q, p, coins, noise


def reachable(draft, p):
    """The rows up to the first one that lets no draft pass, as the round gives them."""
    stop = next((i for i, token in enumerate(draft) if p[i, token] == 0 or not p[i].any()), len(draft))
    return p[: stop + 1]


def purely(rule, draft, q, p, coins, noise, dead_end):
    def draw(weights, slot):
        if not weights.any():
            raise dead_end
        return int((weights.log() + noise[slot]).argmax())

    return RULES[rule](draft, q, lambda slot: p[slot], lambda slot: coins[slot], draw)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("part", range(4))
def test_equals_pure_functions(part, rule):
    """In 3,000 random rounds the count, the token and the dead ends met are those of the pure function."""
    seen = Counter()
    for seed in range(750 * part, 750 * part + 750):
        draft, q, p, coins, noise = case(seed)
        rows, dead_end = reachable(draft, p), DeadEndError("here", position=0, text="")
        before = [p.clone(), *[None if each is None else each.clone() for each in q]]
        try:
            wanted = purely(rule, draft, q, p, coins, noise, dead_end)
        except DeadEndError:
            with pytest.raises(DeadEndError):
                accept_batched(rule, draft, q, rows, coins.__getitem__, noise[: len(rows)], dead_end)
            seen["dead ends"] += 1
            continue
        found = accept_batched(rule, draft, q, rows, coins.__getitem__, noise[: len(rows)], dead_end)
        assert found == wanted, seed
        assert all(a is b or torch.equal(a, b) for a, b in zip(before, [p, *q], strict=True))
        seen["all stand"] += bool(draft) and wanted.count == len(draft)
        seen["some stand"] += 0 < wanted.count < len(draft)
        seen["none stands"] += bool(draft) and wanted.count == 0
        seen["impossible token"] += len(rows) <= len(draft)
        seen["no draft"] += not draft
    assert len(seen) == 6
    assert min(seen.values()) > 20, seen


@pytest.mark.parametrize("rule", RULES)
def test_empty_residual(rule):
    """Where rounding leaves nothing of p - q, p itself is drawn from (B46)."""
    p = torch.tensor([[0.5, 0.25, 0.25, 0.0], [1.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    q = p[0].clone()
    q[3] = 1e-12
    noise = torch.tensor([[0.0, 5.0, 0.0, 9.0], [0.0] * 4], dtype=torch.float64)
    assert accept_batched(rule, [3], [q], p, lambda slot: 0.5, noise) == Accepted(0, 1)


@pytest.mark.parametrize("rule", RULES)
def test_one_transfer(rule, monkeypatch):
    """What is decided on comes down in one piece."""
    reads = []
    for name in ("tolist", "item", "cpu", "numpy", "__bool__", "__int__", "__float__", "__index__"):
        plain = getattr(torch.Tensor, name)
        monkeypatch.setattr(
            torch.Tensor, name, lambda self, *a, _f=plain, _n=name: (reads.append(_n), _f(self, *a))[1]
        )
    draft, q, p, coins, noise = case(3)
    assert len(draft) > 1
    reads.clear()
    accept_batched(rule, draft, q, p, coins.__getitem__, noise)
    assert reads == ["tolist"]
