"""Sampling: the order of logit processing, and noise that is a function of its place."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from transformers import (
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from xpress_struct.errors import ArgumentError
from xpress_struct.sampling import (
    COIN,
    DRAFT,
    RESIDUAL,
    NoiseKey,
    SamplingParams,
    draw,
    gumbel,
    probabilities,
    process,
    uniform,
    unpack_mask,
)

# Frozen: a seed must give the same text in every release.
FROZEN_GUMBEL = [0.1061993448167, -0.0432684655333, -0.0406365673797, 0.0977923590327]
FROZEN_UNIFORM = [0.6455432906467757, 0.3785545556437004, 0.13793204239742357, 0.303447185762084]


def rows(count=20, width=40, seed=0):
    return torch.randn(count, width, generator=torch.Generator().manual_seed(seed)) * 3


@pytest.mark.parametrize("temperature", [0.3, 1.0, 1.7])
@pytest.mark.parametrize("top_k", [0, 1, 7, 100])
@pytest.mark.parametrize("top_p", [1.0, 0.9, 0.3])
@pytest.mark.parametrize("min_p", [0.0, 0.05, 0.6])
def test_agrees_with_transformers(temperature, top_k, top_p, min_p):
    """Masked logits are processed as by the warpers of transformers, in their order."""
    logits = rows()
    mask = rows(seed=1) > -1
    wanted = TemperatureLogitsWarper(temperature)(None, logits.masked_fill(~mask, -math.inf))
    if top_k:
        wanted = TopKLogitsWarper(top_k)(None, wanted)
    if top_p < 1:
        wanted = TopPLogitsWarper(top_p)(None, wanted)
    if min_p:
        wanted = MinPLogitsWarper(min_p)(None, wanted)
    found = process(logits, mask, SamplingParams(temperature, top_k, top_p, min_p))
    assert torch.equal(found.isinf(), wanted.isinf())
    torch.testing.assert_close(found.softmax(-1), wanted.softmax(-1))


def test_mask_first():
    """A mask never leaves a row without a token, however strong the cuts are."""
    logits = rows()
    mask = torch.zeros_like(logits, dtype=torch.bool)
    mask[:, 3] = True
    logits[:, 3] = -50
    scores = process(logits, mask, SamplingParams(1.0, top_k=2, top_p=0.1, min_p=0.9))
    assert (probabilities(scores)[:, 3] == 1).all()


def test_greedy_leaves_logits():
    """Greedy processing masks and does nothing else."""
    logits, mask = rows(), rows(seed=1) > 0
    scores = process(logits, mask, SamplingParams())
    assert torch.equal(scores[mask], logits[mask])
    assert scores[~mask].isinf().all()


@pytest.mark.parametrize("temperature", [1e-30, 1e-6, 1e6])
def test_extreme_temperatures(temperature):
    """No temperature makes probabilities that are not numbers."""
    p = probabilities(process(rows() * 1e4, None, SamplingParams(temperature)))
    assert torch.isfinite(p).all()
    torch.testing.assert_close(p.sum(-1), torch.ones(20, dtype=torch.float64))


def test_bfloat16_logits():
    """Scores are float32 whatever the type of the logits."""
    assert process(rows().bfloat16(), None, SamplingParams(0.5)).dtype == torch.float32


def test_frozen_noise():
    """Noise of known places has the values it had in every release."""
    key = NoiseKey(1234567890123, row=2)
    assert gumbel(key, 17, 4).tolist() == pytest.approx(FROZEN_GUMBEL, abs=1e-12)
    found = [uniform(NoiseKey(seed), place) for seed in (0, 2**63 - 1) for place in (0, 5)]
    assert found == pytest.approx(FROZEN_UNIFORM, abs=1e-15)


def test_noise_repeats():
    """Noise is equal at every call, and a wider vocabulary keeps what was there."""
    key = NoiseKey(5)
    assert torch.equal(gumbel(key, 3, 1000), gumbel(key, 3, 1000))
    assert torch.equal(gumbel(key, 3, 1000), gumbel(key, 3, 5000)[:1000])
    assert uniform(key, 3) == uniform(key, 3)


def test_uniform_noise():
    """Coins and the uniforms under the Gumbel noise are uniform (Kolmogorov-Smirnov)."""
    coins = [uniform(NoiseKey(seed), place) for seed in range(100) for place in range(100)]
    assert stats.kstest(coins, "uniform").pvalue > 1e-4
    noise = torch.cat([gumbel(NoiseKey(seed), 9, 2000) for seed in range(20)])
    assert stats.kstest(noise.numpy(), "gumbel_r").pvalue > 1e-4
    by_place = torch.stack([gumbel(NoiseKey(1), place, 1)[0] for place in range(5000)])
    assert stats.kstest(by_place.numpy(), "gumbel_r").pvalue > 1e-4


def test_independent_noise():
    """Noise of neighbouring seeds, rows, places, streams and tokens is uncorrelated."""
    base = gumbel(NoiseKey(7), 3, 20_000)
    others = {
        "seed": gumbel(NoiseKey(8), 3, 20_000),
        "row": gumbel(NoiseKey(7, 1), 3, 20_000),
        "place": gumbel(NoiseKey(7), 4, 20_000),
        "coin": gumbel(NoiseKey(7), 3, 20_000, stream=COIN),
        "residual": gumbel(NoiseKey(7), 3, 20_000, stream=RESIDUAL),
        "token": base.roll(1),
    }
    for name, other in others.items():
        for left in (base, base.exp().neg()):
            assert abs(np.corrcoef(left, other)[0, 1]) < 4.5 / math.sqrt(20_000), name


@pytest.mark.parametrize("stream", [DRAFT, RESIDUAL])
def test_gumbel_argmax(stream):
    """The argmax of log p + noise is distributed as p, over seeds and over places."""
    p = torch.tensor([0.4, 0.3, 0.15, 0.1, 0.05, 0.0], dtype=torch.float64)
    for by_place in (False, True):
        counts = np.zeros(6)
        for i in range(8000):
            key, place = (NoiseKey(11), i) if by_place else (NoiseKey(i), 11)
            counts[draw(p, key, place, stream)] += 1
        assert counts[5] == 0
        assert stats.chisquare(counts[:5], p[:5].numpy() * 8000).pvalue > 1e-4


@pytest.mark.parametrize("size", [1, 7, 8, 9, 257])
@pytest.mark.parametrize("extra", [-3, 0, 1, 40])
def test_unpack_mask(size, extra):
    """Masks unpack to any width; ids beyond the mask are barred."""
    bits = np.random.default_rng(size).integers(0, 2, size=(2, size), dtype=np.uint8)
    width = max(1, size + extra)
    packed = torch.from_numpy(np.packbits(bits, axis=-1, bitorder="little"))
    found = unpack_mask(packed, width)
    wanted = np.pad(bits, ((0, 0), (0, max(0, extra))))[:, :width].astype(bool)
    assert found.shape == (2, width)
    assert (found.numpy() == wanted).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -0.1},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"top_k": -1},
        {"top_k": 1.5},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"top_p": math.nan},
        {"min_p": -0.1},
        {"min_p": 1.5},
    ],
)
def test_wrong_params(wrong):
    """Values out of range are refused by name."""
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        SamplingParams(**wrong)


def test_params_properties():
    """`greedy` and `cuts` say what the parameters do."""
    assert SamplingParams().greedy
    assert not SamplingParams(0.0, top_k=5).cuts
    assert not SamplingParams(1.0).cuts
    assert all(SamplingParams(1.0, **cut).cuts for cut in ({"top_k": 1}, {"top_p": 0.9}))
    assert SamplingParams(1.0, min_p=0.1).cuts
