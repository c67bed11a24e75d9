"""What must not depend on the device: ids, noise, masks, acceptance, a cache that goes back."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import xpress_struct as xs
from tests.exactness.texts import CUTS, GRAMMARS
from tests.gpu.device import GPU, marks, model_on_gpu, on_gpu
from tests.unit.models import tiny
from tests.unit.test_acceptance_batched import case, purely, reachable
from xpress_struct.decoding.acceptance import Accepted, accept_coupled
from xpress_struct.decoding.acceptance_batched import accept_batched
from xpress_struct.decoding.device_rows import DeviceRows
from xpress_struct.drafting.refinement import Plan, refine
from xpress_struct.errors import DeadEndError
from xpress_struct.results import Stats
from xpress_struct.sampling import RESIDUAL, Noise, NoiseKey, SamplingParams, gumbel, unpack_mask
from xpress_struct.target.target import TransformersTarget

pytestmark = marks


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.3])
def test_ids_equal(temperature, cut):
    """With and without a drafter the ids are equal in float32, for lookup and for block diffusion."""
    model, accepted = model_on_gpu(), 0
    for seed, name in enumerate(GRAMMARS):
        options = {"temperature": temperature, "seed": seed, "max_new_tokens": 40, **CUTS[cut]}
        plain = model.generate([seed, 7], GRAMMARS[name], drafter=None, **options)
        for drafter in ("lookup", on_gpu()):
            drafted = model.generate([seed, 7], GRAMMARS[name], drafter=drafter, **options)
            assert drafted.token_ids == plain.token_ids, (name, drafter)
            accepted += drafted.stats.proposed
    assert accepted > 0


@pytest.mark.parametrize("rule", ["token", "block"])
def test_outputs_are_legal(rule):
    """Under the other rules every output satisfies its constraint."""
    for seed in range(6):
        for name in ("json", "regex", "choice"):
            out = model_on_gpu().generate(
                [seed],
                GRAMMARS[name],
                drafter=on_gpu(),
                acceptance=rule,
                temperature=1.0,
                top_p=0.9,
                seed=seed,
            )
            assert out.finish_reason == "stop"
            assert GRAMMARS[name].accepts(out.text)


def test_noise():
    """Noise is the CPU's to the last places of float64, and so are its winners."""
    key = NoiseKey(11)
    here, there = Noise(key, 1000).rows(3, 50), Noise(key, 1000, GPU).rows(3, 50)
    torch.testing.assert_close(there.cpu(), here, rtol=1e-12, atol=1e-12)
    assert there.argmax(-1).tolist() == here.argmax(-1).tolist()
    row = gumbel(key, 7, 1000, stream=RESIDUAL, device=GPU)
    torch.testing.assert_close(row.cpu(), gumbel(key, 7, 1000, stream=RESIDUAL), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [1, 7, 8, 257, 5000])
def test_masks(size):
    """A packed mask unpacks there as here; what the tokenizer does not have is barred."""
    packed = np.packbits(np.random.default_rng(size).integers(0, 2, size), bitorder="little")
    bits = torch.from_numpy(packed)
    for width in (size, size + 13):
        there = unpack_mask(bits.to(GPU, non_blocking=True), width)
        assert torch.equal(there.cpu(), unpack_mask(bits, width))


@pytest.mark.parametrize("rule", ["token", "block"])
def test_acceptance(rule):
    """Acceptance there is that of the pure functions here, for 1,000 random rounds."""
    for seed in range(1000):
        draft, q, p, coins, noise = case(seed)
        rows, dead_end = reachable(draft, p), DeadEndError("here", position=0, text="")
        given = [None if row is None else row.to(GPU) for row in q]
        args = (rule, draft, given, rows.to(GPU), coins.__getitem__, noise[: len(rows)].to(GPU), dead_end)
        try:
            wanted = purely(rule, draft, q, p, coins, noise, dead_end)
        except DeadEndError:
            with pytest.raises(DeadEndError):
                accept_batched(*args)
            continue
        assert accept_batched(*args) == wanted, seed


def no_bias(tokens):
    return torch.zeros(8, 257, device=GPU)


@pytest.mark.parametrize("temperature", [0.0, 1.1])
def test_draft_of_the_target_itself(temperature):
    """With the target's own logits as base, the coupled rule takes the whole draft."""
    params, model, longest = SamplingParams(temperature), model_on_gpu(), 0
    constraint = xs.regex("[a-f]{3,20}|[0-9]{4,30}")
    for seed in range(50):
        logits = torch.randn(8, 257, generator=torch.Generator().manual_seed(seed)).to(GPU)
        matcher, noise = constraint.matcher(model.vocabulary)[0], Noise(NoiseKey(seed), 257, GPU)
        drawn = None if params.greedy else noise.rows(5, 8)
        plan = Plan("parallel", 9, temperature)
        draft = refine(logits, no_bias, matcher, drawn, plan, params, width=257, candidates=32).tokens
        if model.vocabulary.end_id in draft:
            continue
        rows = DeviceRows(
            torch.cat([logits[: len(draft)], logits[:1]]),
            draft,
            len(draft),
            False,
            matcher.fork(),
            params,
            noise,
            5,
            Stats(),
        )
        assert accept_coupled(draft, rows.choice).count == len(draft)
        longest += len(draft) == 8
    assert longest > 10


def test_cache_goes_back():
    """Logits after a rollback are those of a cache that never saw the tokens taken back."""
    target = TransformersTarget(copy.deepcopy(tiny("llama")).to(GPU))
    went, fresh = target.new_cache(), target.new_cache()
    target.score(went, [1, 2, 3, 4], 1)
    target.score(went, [9, 8, 7, 6, 5], 5)
    went.rollback_to([4])
    target.score(fresh, [1, 2, 3, 4], 1)
    for ids in ([11, 12], [13]):
        back, plain = (target.score(cache, ids, len(ids)) for cache in (went, fresh))
        torch.testing.assert_close(back, plain, rtol=1e-6, atol=1e-6)
    assert went.lengths == fresh.lengths == [7]


def test_accepted_is_plain():
    """A round's outcome is made of Python integers."""
    draft, _, p, coins, noise = case(3)
    found = accept_batched("token", draft, [None] * len(draft), p.to(GPU), coins.__getitem__, noise.to(GPU))
    assert isinstance(found, Accepted)
    assert type(found.count) is int and type(found.token) is int
