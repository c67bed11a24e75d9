"""Rows worked out together decide what rows asked for one by one decide."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import torch

import xpress_struct as xs
from tests.unit.grammars import make_grammar, make_vocabulary
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.decoding.acceptance import accept_block, accept_coupled, accept_token_level
from xpress_struct.decoding.device_rows import DeviceRows
from xpress_struct.decoding.rows import Rows
from xpress_struct.errors import DeadEndError
from xpress_struct.results import Stats
from xpress_struct.sampling import Noise, NoiseKey, SamplingParams, probabilities, uniform

RULES = {"token": accept_token_level, "block": accept_block}
PARAMS = [SamplingParams(0.0), SamplingParams(1.0), SamplingParams(1.3, top_k=3), SamplingParams(0.8, 0, 0.7)]


def round_of(seed, rule):
    """A draft in a random grammar, and a way to make its rows: legal, over its end, or illegal at last."""
    rng, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    if seed % 5 == 0:
        vocabulary = Vocabulary.from_tokens([b"a", b"b", b"c", b""], end_ids=[3])
        constraint = xs.choice(["ab", "cé", "cabé", "abba"])
    else:
        vocabulary = make_vocabulary(rng, end=rng.random() < 0.8)
        constraint = make_grammar(rng, rng.choice(["regex", "choice", "lark"]))[0]
    start, width = constraint.matcher(vocabulary)[0], len(vocabulary.tokens) + 2
    path, draft = start.fork(), []
    try:
        while len(draft) < 4 and not path.ended:
            legal = [v for v in range(width) if path.legal(v)]
            if not legal:
                break
            draft.append(rng.choice(legal))
            path.commit(draft[-1:])
        legal, ends = len(draft), path.ended
        if rule != "coupled" and not ends and rng.random() < 0.3:
            illegal = [v for v in range(width) if not path.legal(v)]
            draft += rng.choices(illegal, k=min(1, len(illegal)))
    except DeadEndError:
        legal, ends = len(draft), False
    logits = 2 * torch.randn(legal - ends + 1, width, generator=generator)
    q = probabilities(2 * torch.randn(len(draft), width, generator=generator))
    q = [None if rng.random() < 0.2 else row for row in q]

    def rows(kind):
        args = (logits, draft, legal, ends, start.fork(), PARAMS[seed % 4], Noise(NoiseKey(seed), width))
        return kind(*args, 9, Stats())

    return draft, q, rows


def outcome(run):
    try:
        return run()
    except DeadEndError as error:
        return error.position


@pytest.mark.parametrize("rule", ["coupled", "token", "block"])
def test_equals_rows(rule):
    """Count, token and dead ends are the same, for every rule, end and cut."""
    seen = Counter()
    for seed in range(400):
        draft, q, rows = round_of(seed, rule)

        def coin(slot, seed=seed):
            return uniform(NoiseKey(seed), slot)

        lazy, device = rows(Rows), rows(DeviceRows)
        if rule == "coupled":
            wanted = outcome(lambda d=draft, r=lazy: accept_coupled(d, r.choice))
            found = outcome(lambda d=draft, r=device: accept_coupled(d, r.choice))
        else:
            wanted = outcome(lambda d=draft, r=lazy, q=q: RULES[rule](d, q, r.p, coin, r.draw))
            found = outcome(lambda r=device, q=q: r.accept(rule, q, coin))
        assert found == wanted, seed
        seen["dead ends"] += isinstance(wanted, int)
        if not isinstance(wanted, int):
            seen["all"] += wanted.count == len(draft) > 0
            seen["some"] += 0 < wanted.count < len(draft)
            seen["none"] += wanted.count == 0
    assert len(seen) == 4
    assert min(seen.values()) > 2, seen
