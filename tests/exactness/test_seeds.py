"""Real seeds: what the noise keys draw follows the enumerated distribution (B45)."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from tests.exactness import drafters
from tests.exactness.helpers import (
    CONSTRAINTS,
    PARAMS,
    PROMPT,
    SIX,
    V,
    autoregressive,
    chi_square,
    generate,
    legal_after,
    table,
)
from tests.stubs import ScriptedDrafter, stub_model
from xpress_struct.decoding.acceptance import accept_block, accept_token_level
from xpress_struct.sampling import COIN, RESIDUAL, NoiseKey, SamplingParams, draw, gumbel, uniform

RUNS = 4000
ROUNDS = 20_000
CUT = SamplingParams(0.8, top_k=3)


class Mixed:
    """A drafter with real noise: q masked, unmasked or one-hot, by the place in the output."""

    def __init__(self, constraint, params):
        self.constraint, self.params, self.seed = constraint, params, 0

    def __call__(self, output):
        kind = len(output) % 3
        tokens, rows = [], []
        for _ in range(2):
            prefix = (*output, *tokens)
            legal = legal_after(self.constraint, prefix)
            if not any(legal):
                break
            row = drafters.q_row(77, prefix, drafters.EVERY if kind == 1 else legal, self.params)
            key = NoiseKey(self.seed).fresh(len(output))  # the round's own
            noise = gumbel(key, len(PROMPT) + len(prefix), V).numpy()
            with np.errstate(divide="ignore"):
                tokens.append(int(np.argmax(np.log(row) + (noise if kind < 2 else 0))))
            rows.append(row)
            if not legal[tokens[-1]]:
                break
        return tokens, torch.from_numpy(np.stack(rows)) if tokens and kind < 2 else None


@pytest.mark.parametrize("rule", ["coupled", "token", "block"])
@pytest.mark.parametrize("name", ["letters", "forcing"])
def test_decoder(name, rule):
    """Thousands of seeded generations pass a chi-square test against the promise."""
    constraint, logits = CONSTRAINTS[name], table(4)
    wanted = autoregressive(logits, constraint, CUT, 4)
    model, mixed = stub_model(logits, SIX), Mixed(constraint, PARAMS["plain"])
    counts = Counter()
    for seed in range(RUNS):
        mixed.seed = seed
        counts[generate(model, constraint, ScriptedDrafter(mixed), rule, CUT, 4, 2, seed)] += 1
    assert chi_square(counts, wanted) > 1e-4


@pytest.mark.parametrize("rule", [accept_token_level, accept_block])
def test_rounds(rule):
    """Tens of thousands of rounds with keyed noise pass a chi-square test."""
    p = {x: drafters.q_row(5, x, drafters.EVERY, CUT) for x in [(), *((v,) for v in range(V))]}
    q = drafters.q_row(6, (), drafters.EVERY, PARAMS["plain"])
    target, drawn_from = {x: torch.from_numpy(row) for x, row in p.items()}, torch.from_numpy(q)
    log_q, counts = drawn_from.log(), Counter()
    for seed in range(ROUNDS):
        key = NoiseKey(seed)
        draft = [int((log_q + gumbel(key, 3, V)).argmax())]
        accepted = rule(
            draft,
            [drawn_from],
            lambda k, draft=draft: target[tuple(draft[:k])],
            lambda k, key=key: uniform(key, 3 + k, COIN),
            lambda weights, k, key=key: draw(weights, key, 3 + k, RESIDUAL),
        )
        counts[(draft[0] if accepted.count else accepted.token)] += 1
    assert chi_square(counts, {v: float(x) for v, x in enumerate(p[()]) if x}) > 1e-4


def test_chi_square_can_fail():
    """The test statistic refuses a distribution that is off by a few percent."""
    wanted = dict.fromkeys(range(V), 1 / V)
    off = {v: round(ROUNDS / V * (1.06 if v < 3 else 0.94)) for v in range(V)}
    assert chi_square(off, wanted) < 1e-4
    assert chi_square(dict.fromkeys(range(V), ROUNDS), wanted) > 0.9
    assert chi_square({9: 1}, wanted) == 0
