"""Small drafter configs and weights, made in memory."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers import Qwen3Config

from xpress_struct.drafting.config import DiffusionConfig, HeadConfig

D, V = 32, 50
FULL, SLIDING = "full_attention", "sliding_attention"


def diffusion_config(
    *types: str, window: int | None = None, layers: dict[str, Any] | None = None, **fields: Any
) -> DiffusionConfig:
    """A drafter of a target of width 32 and 50 tokens; one layer for each type.

    Args:
        types: of the layers.
        window: of the sliding ones.
        layers: further fields of the Qwen3 config.
        fields: further fields of the drafter's.
    """
    qwen3 = {
        "vocab_size": V,
        "hidden_size": D,
        "intermediate_size": 48,
        "num_hidden_layers": len(types),
        "layer_types": list(types),
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 512,
        "sliding_window": window,
        "use_sliding_window": window is not None,
        **(layers or {}),
    }
    drafter = {"block_size": 8, "mask_token_id": V - 1, "taps": (1, 3), **fields}
    return DiffusionConfig(layers=Qwen3Config(**qwen3), **drafter)


def head_config(kind: str, rank: int = 6, mlp_hidden: int = 12) -> HeadConfig:
    """A small head."""
    return HeadConfig(kind=kind, rank=rank, mlp_hidden=mlp_hidden if kind == "xpress" else 0)


def randomize(module: nn.Module, seed: int = 0, std: float = 0.3) -> None:
    """Fills all weights from a seed; those of norms stay near 1."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator) * std
            parameter.copy_(1 + 0.3 * noise if "norm" in name else noise)
