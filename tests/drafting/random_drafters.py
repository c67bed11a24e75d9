"""Random drafters for the tiny models: every head and convention, right now and then."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import Qwen3Config

from tests.drafting.tiny import FULL, head_config, randomize
from xpress_struct.drafting.backbone import Backbone
from xpress_struct.drafting.config import DiffusionConfig
from xpress_struct.drafting.diffusion import DiffusionDrafter
from xpress_struct.drafting.heads import MarkovHead, make_head
from xpress_struct.drafting.weights import DraftWeights

MAX_KNOWN = 6


def random_drafter(
    head: str | None = "xpress",
    *types: str,
    seed: int = 0,
    width: int = 257,
    hidden_size: int = 32,
    window: int | None = None,
    ids: Tensor | None = None,
    own_head: bool = False,
    context_length: int | None = None,
    **fields: Any,
) -> DiffusionDrafter:
    """A block-diffusion drafter with random weights.

    Args:
        head: its kind, or None.
        types: of the layers; one full layer by default.
        width, hidden_size: of the target.
        window: of sliding layers.
        ids: a reduced draft vocabulary.
        own_head: that vocabulary has an output head of its own.
        fields: further fields of the config.
    """
    layers = Qwen3Config(
        vocab_size=width,
        hidden_size=hidden_size,
        intermediate_size=hidden_size + 16,
        num_hidden_layers=len(types) or 1,
        layer_types=list(types or (FULL,)),
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        max_position_embeddings=512,
        sliding_window=window,
        use_sliding_window=window is not None,
    )
    known = {"block_size": 6, "mask_token_id": 0, "taps": (0,), "max_known": MAX_KNOWN}
    config = DiffusionConfig(
        layers=layers,
        head=None if head is None else head_config(head),
        draft_vocab_size=None if ids is None else len(ids),
        **(known | fields),
    )
    backbone = Backbone(config)
    randomize(backbone, seed)
    refiner = None
    if config.head is not None:
        refiner = make_head(config, width)
        randomize(refiner, seed + 1, std=0.7)
    rows = None
    if own_head:
        rows = torch.randn(len(ids), hidden_size, generator=torch.Generator().manual_seed(seed + 2))
    weights = DraftWeights(config, backbone.eval(), refiner, ids, rows)
    return DiffusionDrafter(weights, context_length=context_length)


def knowing_drafter(before: Tensor, after: Tensor, **fields: Any) -> DiffusionDrafter:
    """A drafter whose head knows how the target goes on behind a token, so that many guesses stand.

    The logits that it adds behind the token t are `after @ before[t]`.

    Args:
        before: [V, r].
        after: [Vd, r].
        fields: see `random_drafter`.
    """
    drafter = random_drafter("vanilla", **({"width": len(before), "output_multiplier": 0.3} | fields))
    head = drafter.weights.head
    assert isinstance(head, MarkovHead)
    head.markov_w1 = torch.nn.Embedding.from_pretrained(before.clone())
    head.markov_w2 = torch.nn.Linear(*reversed(after.shape), bias=False)
    head.markov_w2.weight = torch.nn.Parameter(after.clone(), requires_grad=False)
    return drafter


def knowing_of(model: Any, **fields: Any) -> DiffusionDrafter:
    """One that knows a causal model of transformers but for its layers: embedding and output head."""
    before = model.get_input_embeddings().weight.detach()
    before = before / before.pow(2).mean(-1, keepdim=True).sqrt()
    after = model.get_output_embeddings().weight.detach()
    ids = fields.get("ids")
    return knowing_drafter(before, after if ids is None else after[ids], **fields)
