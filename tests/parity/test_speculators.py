"""The backbone against the training forward of speculators 0.9.0, one anchor at a time."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from speculators.models.dflash import DFlashSpeculatorConfig
from speculators.models.dflash.core import DFlashDraftModel
from speculators.models.xpress.config import XPressSpeculatorConfig
from speculators.models.xpress.core import XPressDraftModel

from tests.drafting.tiny import FULL, SLIDING, D, V, diffusion_config, randomize
from xpress_struct.drafting.backbone import Backbone
from xpress_struct.drafting.context_cache import ContextCache

pytestmark = pytest.mark.parity

OURS = ("layers.", "fc.", "hidden_norm.", "norm.")
TOKENS, WINDOW = 40, 48
"""The window is wider than a text: at its edge, their training mask counts from the anchor and not, as the
served models do, from the slot."""


def reference(kind, config, non_causal):
    """Their model of our config, with random weights and no verifier."""
    layers = deepcopy(config.layers)
    layers._attn_implementation = "eager"
    config_class, model_class = {
        "dflash": (DFlashSpeculatorConfig, DFlashDraftModel),
        "xpress": (XPressSpeculatorConfig, XPressDraftModel),
    }[kind]
    theirs = config_class(
        transformer_layer_config=layers,
        draft_vocab_size=V,
        block_size=config.block_size,
        aux_hidden_state_layer_ids=[tap + 1 for tap in config.taps],
        mask_token_id=config.mask_token_id,
        sliding_window_non_causal=non_causal,
    )
    model = model_class(theirs).eval()
    randomize(model)
    return model


@pytest.mark.parametrize("non_causal", [False, True])
@pytest.mark.parametrize("types", [(FULL, FULL), (SLIDING,), (SLIDING, FULL, SLIDING)])
@pytest.mark.parametrize("kind", ["dflash", "xpress"])
@torch.inference_mode()
def test_backbone(kind, types, non_causal):
    """Hidden states and logits of a block equal theirs, whichever way sliding layers look."""
    config = diffusion_config(*types, window=WINDOW, sliding_is_causal=not non_causal)
    theirs, ours = reference(kind, config, non_causal), Backbone(config).eval()
    weights = theirs.state_dict()
    ours.load_state_dict({name: weights[name] for name in weights if name.startswith(OURS)})
    generator = torch.Generator().manual_seed(0)
    for anchor in (1, 7, 30):
        ids = torch.randint(V, (1, TOKENS), generator=generator)
        states = torch.randn(1, TOKENS, 2 * D, generator=generator)
        last = torch.zeros(1, TOKENS, D)
        chosen = torch.zeros(1, TOKENS)
        chosen[0, anchor] = 1
        documents = torch.zeros(1, TOKENS, dtype=torch.long)
        expected, logits, *_ = theirs._backbone_forward(states, ids, chosen, last, documents, max_anchors=1)
        block = torch.full((config.block_size,), config.mask_token_id)
        block[0] = ids[0, anchor]
        features = ours.fuse(states[0, :anchor])
        hidden = ours(features, theirs.embed_tokens(block), anchor, ContextCache())
        torch.testing.assert_close(hidden, expected[0], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(ours.logits(theirs.lm_head(hidden)), logits[0], atol=1e-5, rtol=1e-5)
