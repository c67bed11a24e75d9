"""The backbone and its context cache."""

from __future__ import annotations

import pytest
import torch

from tests.drafting.tiny import FULL, SLIDING, D, diffusion_config, randomize
from xpress_struct.drafting.backbone import Backbone
from xpress_struct.drafting.context_cache import ContextCache
from xpress_struct.errors import UnsupportedFeatureError

CONFIGS = {
    "full": diffusion_config(FULL, FULL),
    "full, causal": diffusion_config(FULL, full_is_causal=True),
    "sliding": diffusion_config(SLIDING, SLIDING, window=6),
    "sliding, both ways": diffusion_config(SLIDING, window=6, sliding_is_causal=False),
    "sliding without a window": diffusion_config(SLIDING, FULL),
    "mixed": diffusion_config(SLIDING, FULL, SLIDING, window=6),
    "wide window": diffusion_config(SLIDING, FULL, window=100, sliding_is_causal=False),
}
LENGTHS = [20, 1, 3, 0, 8, 40]


@pytest.fixture(autouse=True)
def _inference():
    with torch.inference_mode():
        yield


def make(config):
    backbone = Backbone(config).eval()
    randomize(backbone)
    return backbone


def random(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def one_shot(backbone, features, block):
    return backbone(features, block, features.shape[0])


def close(a, b):
    torch.testing.assert_close(a, b, atol=1e-5, rtol=0)


def rms(x):
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()


def turn(x, position):
    """Rotary embedding of one head [16], pair by pair."""
    angles = position * 10000.0 ** (-torch.arange(8) / 8)
    pairs = torch.complex(x[:8], x[8:]) * torch.polar(torch.ones(8), angles)
    return torch.cat((pairs.real, pairs.imag))


def written_out(w, states, block, start):
    """The forward of one full layer in plain words (formats.md 2.1), from its weights by name."""
    context = rms(states @ w["fc.weight"].T) * w["hidden_norm.weight"]
    layer = {name.removeprefix("layers.0."): w[name] for name in w}
    attention = {name.removeprefix("self_attn."): layer[name] for name in layer}
    normed = rms(block) * layer["input_layernorm.weight"]
    read, first = torch.cat((context, normed)), start - len(context)
    rows = []
    for slot, row in enumerate(normed):
        heads = []
        for i in range(4):
            q = rms((attention["q_proj.weight"] @ row)[16 * i :][:16]) * attention["q_norm.weight"]
            own = slice(16 * (i // 2), 16 * (i // 2) + 16)
            keys = rms(read @ attention["k_proj.weight"][own].T) * attention["k_norm.weight"]
            keys = torch.stack([turn(key, first + place) for place, key in enumerate(keys)])
            weights = (keys @ turn(q, start + slot) / 4).softmax(0)
            heads.append(weights @ (read @ attention["v_proj.weight"][own].T))
        rows.append(attention["o_proj.weight"] @ torch.cat(heads))
    x = block + torch.stack(rows)
    normed = rms(x) * layer["post_attention_layernorm.weight"]
    gate, up = normed @ layer["mlp.gate_proj.weight"].T, normed @ layer["mlp.up_proj.weight"].T
    x = x + (gate * gate.sigmoid() * up) @ layer["mlp.down_proj.weight"].T
    return rms(x) * w["norm.weight"]


def test_formula():
    """A full layer computes what the format's description says, written out head by head."""
    backbone = make(diffusion_config(FULL))
    states, block = random(9, 2 * D), random(5, D, seed=2)
    hidden = backbone(backbone.fuse(states), block, 12, ContextCache())
    close(hidden, written_out(backbone.state_dict(), states, block, 12))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_incremental_equals_one_shot(config):
    """Rounds that bring the context piece by piece give the hidden states of the whole context at once."""
    backbone, cache, start = make(config), ContextCache(), 0
    features = random(sum(LENGTHS), D)
    for i, new in enumerate(LENGTHS):
        block = random(3 + i, D, seed=10 + i)
        start += new
        hidden = backbone(features[start - new : start], block, start, cache)
        close(hidden, one_shot(backbone, features[:start], block))
        assert (cache.length, cache.end) == (start, start)


def test_block_is_not_kept():
    """The keys and values of a block leave no trace: another block after it reads the context alone."""
    backbone, cache = make(CONFIGS["mixed"]), ContextCache()
    features, block, none = random(10, D), random(8, D, seed=2), random(0, D)
    close(
        backbone(features, 100 * random(16, D, seed=3), 10, cache),
        backbone(features, 100 * random(16, D, seed=3), 10),
    )
    close(backbone(none, block, 10, cache), one_shot(backbone, features, block))
    assert cache.length == 10


def test_context_matters():
    """A changed context feature changes the hidden states of every slot of a full layer."""
    backbone, block, features = make(CONFIGS["full"]), random(8, D, seed=2), random(10, D)
    other = features.clone()
    other[0] += 1
    changed = (one_shot(backbone, features, block) - one_shot(backbone, other, block)).abs().amax(-1)
    assert (changed > 1e-3).all()


def test_positions_are_absolute():
    """Hidden states do not change when context and block are moved together, and do when they part."""
    backbone, block, features = make(CONFIGS["mixed"]), random(8, D, seed=2), random(10, D)
    near, far = backbone(features, block, 10), backbone(features, block, 1010)
    torch.testing.assert_close(near, far, atol=1e-3, rtol=0)
    cache = ContextCache()
    backbone(features, block, 10, cache)
    cache.end = 20  # as if ten tokens without keys stood between
    assert (backbone(features[:0], block, 20, cache) - near).abs().max() > 1e-2


@pytest.mark.parametrize("kind", ["full, causal", "sliding"])
def test_causal_block(kind):
    """In a causal layer, a slot does not see those to its right."""
    backbone, block = make(CONFIGS[kind]), random(8, D, seed=2)
    other = block.clone()
    other[5:] += 1
    a, b = (one_shot(backbone, random(10, D), x) for x in (block, other))
    close(a[:5], b[:5])
    assert not torch.allclose(a[5:], b[5:])


@pytest.mark.parametrize("kind", ["full", "sliding, both ways"])
def test_bidirectional_block(kind):
    """In other layers, a slot sees those to its right; a sliding one within its window."""
    backbone, block = make(CONFIGS[kind]), random(8, D, seed=2)
    other = block.clone()
    other[7] += 1
    a, b = (one_shot(backbone, random(10, D), x) for x in (block, other))
    sees = (a - b).abs().amax(-1) > 0
    assert sees.tolist() == ([True] * 8 if kind == "full" else [False] * 2 + [True] * 6)


@pytest.mark.parametrize("causal", [True, False])
def test_sliding_window_bounds_the_context(causal):
    """Slot k of a sliding layer sees the token `window - 1` before it, and none before that."""
    config = diffusion_config(SLIDING, window=6, sliding_is_causal=causal)
    backbone, block, features = make(config), random(4, D, seed=2), random(10, D)
    for token in range(10):
        other = features.clone()
        other[token] += 1
        changed = (one_shot(backbone, features, block) - one_shot(backbone, other, block)).abs().amax(-1)
        assert (changed > 0).tolist() == [10 + slot - token < 6 for slot in range(4)]


@pytest.mark.parametrize("config", [CONFIGS["full"], CONFIGS["mixed"]], ids=["full", "mixed"])
def test_cache_window(config):
    """A cache with a window reads the latest tokens as if the context began there, at its old positions."""
    backbone, cache, start, window = make(config), ContextCache(7), 0, 7
    features = random(sum(LENGTHS), D)
    for i, new in enumerate(LENGTHS):
        block = random(4, D, seed=10 + i)
        start += new
        hidden = backbone(features[start - new : start], block, start, cache)
        kept = features[max(start - window, 0) : start]
        close(hidden, backbone(kept, block, start))
        assert (cache.length, cache.end) == (min(start, window), start)


def test_cache_window_bounds_memory():
    """However long the text, the buffers of a cache with a window stay within a few windows, and right."""
    backbone, cache = make(CONFIGS["full"]), ContextCache(50)
    features, block = random(500, D), random(8, D)
    for start in range(1, 501):
        hidden = backbone(features[start - 1 : start], block, start, cache)
        assert cache.capacity <= 4 * (50 + 1 + 8)
        if start % 60 == 0:
            close(hidden, backbone(features[start - 50 : start], block, start))


def test_buffers_grow_by_doubling():
    """Hundreds of tokens, one by one, move the context a few times only, and keep it."""
    backbone, cache, capacities = make(CONFIGS["full"]), ContextCache(), set()
    features, block = random(400, D), random(8, D)
    for start in range(1, 401):
        hidden = backbone(features[start - 1 : start], block, start, cache)
        capacities.add(cache.capacity)
    assert len(capacities) <= 4 and max(capacities) < 2 * 408
    torch.testing.assert_close(hidden, one_shot(backbone, features, block), atol=1e-4, rtol=0)


def test_gap_in_the_context():
    """Features that do not follow those in the cache are refused."""
    backbone, cache = make(CONFIGS["full"]), ContextCache()
    backbone(random(3, D), random(4, D), 3, cache)
    with pytest.raises(RuntimeError, match="1 context tokens before 5 do not follow those up to 3"):
        backbone(random(1, D), random(4, D), 5, cache)


def test_unknown_layer_type():
    """A layer of a type that is not attention over a window or over everything is refused."""
    with pytest.raises(UnsupportedFeatureError, match="linear_attention"):
        Backbone(diffusion_config("linear_attention"))


def test_frequencies_stay_float32():
    """Casting the weights to bfloat16 does not round the rotary frequencies."""
    backbone = make(CONFIGS["full"]).to(torch.bfloat16)
    assert backbone.fc.weight.dtype == torch.bfloat16
    assert torch.equal(backbone.rotary_emb.inv_freq, Backbone(CONFIGS["full"]).rotary_emb.inv_freq)
    hidden = backbone(random(5, D).bfloat16(), random(8, D).bfloat16(), 5, ContextCache())
    assert hidden.dtype == torch.bfloat16 and hidden.isfinite().all()


def test_built_without_memory():
    """A backbone built on the meta device and given its weights equals one built on the CPU."""
    backbone = make(CONFIGS["mixed"])
    with torch.device("meta"):
        other = Backbone(CONFIGS["mixed"])
    other.load_state_dict(backbone.state_dict(), assign=True)
    features, block = random(10, D), random(8, D)
    assert torch.equal(one_shot(other.to("cpu"), features, block), one_shot(backbone, features, block))


def test_state_dict_keys():
    """The weights have the names of the published checkpoints and no others."""
    attention = [f"self_attn.{name}" for name in ("q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm")]
    mlp = [f"mlp.{name}" for name in ("gate_proj", "up_proj", "down_proj")]
    names = ["input_layernorm", "post_attention_layernorm", *attention, *mlp]
    expected = {f"layers.0.{name}.weight" for name in names} | {
        "fc.weight",
        "hidden_norm.weight",
        "norm.weight",
    }
    assert set(Backbone(diffusion_config(FULL)).state_dict()) == expected


def test_gradients():
    """Without a cache, every weight and the embeddings get a gradient."""
    with torch.inference_mode(False):
        backbone, block = make(CONFIGS["mixed"]), random(8, D, seed=2).requires_grad_()
        backbone(backbone.fuse(random(10, 2 * D)), block, 10).square().sum().backward()
        assert block.grad.abs().sum() > 0
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in backbone.parameters())


def test_logits():
    """Logits are multiplied first and capped then."""
    raw = torch.tensor([-40.0, 0.0, 1.0])
    backbone = Backbone(diffusion_config(FULL, output_multiplier=2.0, logit_softcap=5.0))
    close(backbone.logits(raw), torch.tensor([-5.0, 0.0, 1.8997448]))
    assert torch.equal(Backbone(diffusion_config(FULL)).logits(raw), raw)
