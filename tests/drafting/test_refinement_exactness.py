"""Refined drafts leave the target's distribution as it is, for the token-level and the block rule.

The rules' proof asks that slot k is offered, and from which q_k, by what stands to its left alone. That is
checked as it stands, bit by bit; and rounds on six tokens are counted against the enumerated distribution.
Each trap of the design is built in on purpose and found by the same count.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from unittest.mock import patch

import pytest
import torch

import xpress_struct as xs
from tests.drafting.blocks import Case, PairBias, random_case
from tests.exactness.helpers import (
    END,
    PROMPT,
    SIX,
    V,
    autoregressive,
    chi_square,
    legal_after,
    reference,
    table,
)
from xpress_struct.decoding.acceptance import accept_block, accept_token_level
from xpress_struct.drafting import refinement
from xpress_struct.sampling import Noise, NoiseKey, SamplingParams, probabilities, process

SLOTS, BUDGET, ROUNDS, SEED = 4, 5, 800, 8
RULES = {"token": accept_token_level, "block": accept_block}
PLAIN = SamplingParams(1.0)
# Bars half of the tokens at every place; five tokens at most.
GRAMMAR = xs.regex("[abc][bc]{2,3}")
PAIRS = PairBias(SLOTS, V, V, torch.Generator().manual_seed(SEED))
MEAN = torch.stack([PAIRS(torch.full((SLOTS,), token)) for token in range(V)]).mean(0)
# The base logits know what holds on average over the tokens to the left; the bias is the rest.
BASE = MEAN + torch.randn(SLOTS, V, generator=torch.Generator().manual_seed(SEED))


def bias(tokens):
    return PAIRS(tokens) - MEAN


@cache
def target(prefix):
    """Logits near what the drafter wants left to right, so that all of a draft matters."""
    output = prefix[len(PROMPT) :]
    if len(output) >= SLOTS:
        return [0.0] * V
    drafter = BASE + bias(torch.tensor([*output, *[0] * (SLOTS - len(output))]))
    return (drafter[len(output)] + torch.tensor(table(3, spread=0.4)(prefix))).tolist()


RIGHT, WRONG = 1e-3, 1e-6


@cache
def row(logits, output, params):
    """The target's distribution behind some output; the end token again behind the end."""
    legal = legal_after(GRAMMAR, output)
    if not any(legal):
        legal = tuple(v == END for v in range(V))
    return torch.from_numpy(reference(logits((*PROMPT, *output)), legal, params))


def emitted(rule, tokens, q, rows, rng):
    """A whole output: one round on a draft, the rest drawn from the target."""

    def draw(weights, slot):
        return rng.choices(range(V), weights.tolist())[0]

    accepted = RULES[rule](tokens, q, lambda i: rows(tuple(tokens[:i])), lambda i: rng.random(), draw)
    output = [*tokens[: accepted.count], accepted.token]
    if END in output:
        return tuple(output[: output.index(END) + 1])
    while len(output) < BUDGET and output[-1] != END:
        output.append(draw(rows(tuple(output)), 0))
    return tuple(output)


@cache
def noise(places):
    """Rows of their own for each round."""
    return Noise(NoiseKey(SEED), V).rows(0, places)


def drafted(kind, passes, *, params=PLAIN, temperature=None, ids=None, confidence=0.0, base=BASE, bias=bias):
    """A drafter on six tokens, and its drafts by seed."""
    columns = slice(None) if ids is None else ids
    case = Case(
        base[:, columns],
        lambda tokens: bias(tokens)[:, columns],
        GRAMMAR.matcher(SIX)[0],
        None,
        params,
        temperature or params.temperature,
        V,
        ids,
    )

    def draft(seed):
        case.noise = noise(ROUNDS * SLOTS)[seed * SLOTS : (seed + 1) * SLOTS]
        refined = case.refined(kind, passes, wants_q=True, confidence=confidence)
        return refined.tokens, refined.q

    return case, draft


def p_values(draft, params=PLAIN, logits=target):
    """How well the outputs of many rounds agree with masked sampling, for each rule."""
    counts = {rule: Counter() for rule in RULES}

    def rows(output):
        return row(logits, output, params)

    for seed in range(ROUNDS):
        tokens, q = draft(seed)
        for rule, found in counts.items():
            found[emitted(rule, tokens, q, rows, random.Random(f"{seed} {rule}"))] += 1
    wanted = autoregressive(logits, GRAMMAR, params, BUDGET)
    return {rule: chi_square(found, wanted) for rule, found in counts.items()}


TOP_K, TOP_P = SamplingParams(1.4, top_k=2), SamplingParams(0.8, top_p=0.8)
WAYS = {
    "none": drafted("none", 0),
    "sequential": drafted("sequential", 1),
    "parallel, 1 pass": drafted("parallel", 1),
    "parallel, 2 passes": drafted("parallel", 2),
    "low confidence, 1 pass": drafted("low-confidence", 1),
    "chunked, 1 pass": drafted("chunked", 1),
    "cold": drafted("parallel", 1, temperature=0.5),
    "hot": drafted("parallel", 2, temperature=1.7),
    "top-k": drafted("parallel", 1, params=TOP_K),
    "top-p": drafted("parallel", 2, params=TOP_P),
    "some ids": drafted("parallel", 1, ids=torch.tensor([0, 2, 3, 5])),
    "confidence": drafted("parallel", 1, confidence=0.5),
}


@pytest.mark.parametrize("way", WAYS)
def test_distribution(way):
    """What comes out is distributed as masked sampling, converged or not, however it was refined."""
    case, draft = WAYS[way]
    with patch.object(refinement, "CHUNK", 2):
        found = p_values(draft, case.params)
    assert min(found.values()) > RIGHT, found


def final_q(draft, case):
    """TRAP: q computed once more, on the tokens that came out."""

    def wrong(seed):
        tokens, _ = draft(seed)
        logits = case.base + case.bias(torch.tensor(tokens + [0] * (SLOTS - len(tokens))))
        legal = torch.tensor([legal_after(GRAMMAR, tuple(tokens[:i])) for i in range(len(tokens))])
        return tokens, probabilities(process(logits[: len(tokens)], legal, case.drawn))

    return wrong


def cut_by_drawn(draft, least):
    """TRAP: a draft cut by the probability of the token drawn."""

    def wrong(seed):
        tokens, q = draft(seed)
        kept = next((i for i, t in enumerate(tokens) if q[i, t] < least), len(tokens))
        return tokens[:kept], q[:kept]

    return wrong


def unmasked_q(draft, case):
    """TRAP: the mask is left out of the q of a token drawn under it."""

    def wrong(seed):
        tokens, _ = draft(seed)
        return tokens, probabilities(process(case.base[: len(tokens)], None, case.drawn))

    return wrong


def unsure_by_drawn(bias, scores):
    """TRAP: low confidence told by the token drawn from the base logits."""
    shares = (scores.base / PLAIN.temperature).softmax(-1)
    unsure = shares.gather(-1, scores.first().unsqueeze(-1)) < refinement.LOW_CONFIDENCE
    return lambda tokens: bias(tokens) * unsure


TRAPS = {
    "final q, 1 pass": lambda: final_q(*reversed(WAYS["parallel, 1 pass"])),
    "final q, 2 passes": lambda: final_q(*reversed(WAYS["parallel, 2 passes"])),
    "cut": lambda: cut_by_drawn(WAYS["sequential"][1], 0.3),
    "unmasked": lambda: unmasked_q(*reversed(WAYS["none"])),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_traps(trap):
    """A q that is not what was drawn from, and a cut by what was drawn, are found."""
    found = p_values(TRAPS[trap]())
    assert max(found.values()) < WRONG, found


def test_low_confidence_by_drawn():
    """Low confidence told by what the base logits drew is found; told by their maximum it is exact.

    The base logits are in doubt between two tokens, the bias is for the likelier one, the target against.
    """
    base = torch.tensor([-3.0, 0.3, 0.0, -3.0, -3.0, -3.0]).repeat(SLOTS, 1)
    towards = torch.tensor([0.0, 3.0, 0.0, 0.0, 0.0, 0.0]).repeat(SLOTS, 1)
    _, draft = drafted("low-confidence", 1, base=base, bias=lambda tokens: towards)
    against = lambda prefix: [-2.0, 0.0, 1.0, -2.0, -2.0, -1.0]  # noqa: E731
    assert min(p_values(draft, logits=against).values()) > RIGHT
    with patch.object(refinement, "_where_unsure", unsure_by_drawn):
        found = p_values(draft, logits=against)
    assert max(found.values()) < WRONG, found


@pytest.mark.parametrize("kind", ["none", "sequential", "parallel", "low-confidence", "chunked"])
def test_what_a_slot_depends_on(kind):
    """Whether a slot is offered, and its q to the bit, is decided by the noise of the slots before it."""
    compared = Counter()
    for seed in range(40):
        case = random_case(seed)
        if case.noise is None:
            continue
        passes, confidence = 1 + seed % 3, 0.3 * (seed % 2)
        noise, other = case.noise, case.noise.flip(-1)
        first = case.refined(kind, passes, wants_q=True, confidence=confidence)
        for slot in range(case.slots):
            case.noise = torch.cat([noise[:slot], other[slot:]])
            second = case.refined(kind, passes, wants_q=True, confidence=confidence)
            assert second.tokens[:slot] == first.tokens[:slot]
            assert (len(second.tokens) > slot) == (len(first.tokens) > slot)
            assert torch.equal(second.q[: slot + 1], first.q[: slot + 1])
            compared["slots"] += len(first.tokens) > slot
            compared["ends"] += len(first.tokens) <= slot
            compared["other tokens"] += first.tokens != second.tokens
    assert min(compared.values()) > 20
