"""The backbone against dflash 0.1.0, round after round, each with its own cache."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from dflash.model import DFlashDraftModel, _crop_to, _make_cache

from tests.drafting.tiny import FULL, SLIDING, D, V, diffusion_config, randomize
from xpress_struct.drafting.backbone import Backbone
from xpress_struct.drafting.context_cache import ContextCache

pytestmark = pytest.mark.parity

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 1e4}
LINEAR = {"rope_type": "linear", "factor": 3.0, "rope_theta": 5e5}
BOTH_WAYS = {"sliding_is_causal": False, "full_is_causal": False}
CAUSAL = {"sliding_is_causal": True, "full_is_causal": True}

CONFIGS = {
    "full": (diffusion_config(FULL, FULL, FULL), None),
    "full, causal": (diffusion_config(FULL, FULL, **CAUSAL), True),
    "sliding": (diffusion_config(SLIDING, SLIDING, window=9), None),
    "sliding, is_causal false": (diffusion_config(SLIDING, window=9, **BOTH_WAYS), False),
    "sliding, narrow": (diffusion_config(SLIDING, SLIDING, window=3, **BOTH_WAYS), False),
    "mixed": (diffusion_config(SLIDING, FULL, SLIDING, window=12), None),
    "mixed, full first": (diffusion_config(FULL, SLIDING, window=12), None),
    "mixed, is_causal true": (diffusion_config(SLIDING, FULL, window=12, **CAUSAL), True),
    "mixed, is_causal false": (diffusion_config(SLIDING, FULL, window=12, **BOTH_WAYS), False),
    "one key head, biases": (
        diffusion_config(FULL, SLIDING, window=20, layers={"num_key_value_heads": 1, "attention_bias": True}),
        None,
    ),
    "no groups, narrow heads": (
        diffusion_config(FULL, FULL, layers={"num_key_value_heads": 4, "head_dim": 6}),
        None,
    ),
    "yarn": (diffusion_config(FULL, SLIDING, window=30, layers={"rope_parameters": YARN}), None),
    "linear": (diffusion_config(FULL, layers={"rope_parameters": LINEAR}), None),
    "one tap, scaled": (
        diffusion_config(FULL, taps=(2,), embedding_scale=5.5, output_multiplier=0.3, logit_softcap=2.0),
        None,
    ),
}


def reference(config, is_causal):
    """Their model of our config."""
    theirs = deepcopy(config.layers)
    theirs.num_target_layers = 8
    theirs.block_size = config.block_size
    theirs.dflash_config = {
        "target_layer_ids": list(config.taps),
        "mask_token_id": config.mask_token_id,
        "input_embedding_scale": config.embedding_scale,
        "output_multiplier": config.output_multiplier,
        "final_logit_softcapping": config.logit_softcap,
    }
    if is_causal is not None:
        theirs.is_causal = is_causal
    model = DFlashDraftModel(theirs).eval()
    randomize(model)
    return model


@pytest.mark.parametrize("block", [4, 8, 16])
@pytest.mark.parametrize("name", CONFIGS)
@torch.inference_mode()
def test_rounds(name, block):
    """Hidden states and logits equal theirs over a prompt and rounds of 1 to B new tokens."""
    config, is_causal = CONFIGS[name]
    theirs, ours = reference(config, is_causal), Backbone(config).eval()
    ours.load_state_dict(theirs.state_dict())
    generator = torch.Generator().manual_seed(block)
    embedding = torch.randn(V, D, generator=generator)
    head = torch.nn.Linear(D, V, bias=False)
    randomize(head)
    cache, their_cache, start = ContextCache(), _make_cache(theirs.config), 0
    for new in [23, 1, block, 2, block - 1, 1, 1, block, 3]:
        start += new
        states = torch.randn(new, len(config.taps) * D, generator=generator)
        ids = torch.full((block,), config.mask_token_id)
        ids[0] = torch.randint(V, (1,), generator=generator)
        embedded = embedding[ids] * config.embedding_scale
        expected = theirs(
            target_hidden=states[None],
            noise_embedding=embedded[None],
            position_ids=torch.arange(start - new, start + block)[None],
            past_key_values=their_cache,
            use_cache=True,
        )
        _crop_to(their_cache, start)
        hidden = ours(ours.fuse(states), embedded, start, cache)
        torch.testing.assert_close(hidden, expected[0], atol=1e-5, rtol=1e-5)
        logits = ours.logits(head(hidden))
        torch.testing.assert_close(logits, theirs.compute_logits(expected, head)[0], atol=1e-5, rtol=1e-5)
