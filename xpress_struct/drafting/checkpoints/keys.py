"""Tensors of a checkpoint in any of the formats -> the state dicts of backbone and head.

The names inside: those of z-lab for the backbone, `head.` before those of speculators for the head,
`lm_head.weight` and `draft_ids` for a reduced vocabulary.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from xpress_struct.drafting.config import DiffusionConfig
from xpress_struct.errors import DrafterMismatchError, UnsupportedFeatureError

if TYPE_CHECKING:
    from transformers import Qwen3Config

__all__ = ["HEAD", "is_wanted", "rename"]

HEAD = "head."

_OF_THE_TARGET = ("embed_tokens.", "verifier_lm_head.", "verifier_norm.", "t2d")
_UNUSED = ("confidence_head.",)
_DFLASH2 = ("candidate_selector.", "attention_conv.", "mlp_conv.")
_PREFIXES = ("refiner_head.", "markov_head.")
_SERVING = {
    "xpress_head.w1.weight": "token_embed.weight",
    "xpress_head.w2.weight": "readout.weight",
    "xpress_head.down_h.weight": "down_h.weight",
    "xpress_head.down_g.weight": "down_g.weight",
    "xpress_head.in_proj.weight": "in_proj.weight",
    "xpress_head.mix.L": "mix_l",
    "xpress_head.mlp.gate_proj.weight": "mlp_gate.weight",
    "xpress_head.mlp.up_proj.weight": "mlp_up.weight",
    "xpress_head.mlp.down_proj.weight": "mlp_down.weight",
}


def is_wanted(key: str, config: DiffusionConfig) -> bool:
    """Whether a tensor is the drafter's own; copies of the target's are not even loaded.

    Raises:
        UnsupportedFeatureError: it belongs to DFlash2.
    """
    if any(part in key for part in _DFLASH2):
        raise UnsupportedFeatureError(
            f"The checkpoint has the key {key}: DFlash2's convolutions and its selector are not implemented.",
            feature="DFlash2",
        )
    if key == "lm_head.weight":
        return config.draft_vocab_size is not None
    return not key.startswith((*_OF_THE_TARGET, *_UNUSED))


def rename(tensors: Mapping[str, Tensor], config: DiffusionConfig) -> dict[str, Tensor]:
    """The tensors under the names inside.

    Raises:
        DrafterMismatchError: fused and separate projections are both there, or a fused one has other
            rows than the config says.
    """
    named = {_inner_name(key): value for key, value in tensors.items()}
    if any(".qkv_proj." in key for key in named):
        named = _split(named, config)
    if "d2t" in named:
        offsets = named.pop("d2t").long()
        named["draft_ids"] = torch.arange(len(offsets)) + offsets.cpu()
    return named


def _inner_name(key: str) -> str:
    if key in _SERVING:
        return HEAD + _SERVING[key]
    for prefix in _PREFIXES:
        if key.startswith(prefix):
            return HEAD + key.removeprefix(prefix)
    return key


def _split(named: dict[str, Tensor], config: DiffusionConfig) -> dict[str, Tensor]:
    """Laguna's style: one projection for queries, keys and values; gates and norms that DFlash has not."""
    split: dict[str, Tensor] = {}
    dropped = []
    for key, value in named.items():
        if ".g_proj." in key or key.startswith("aux_hidden_norms."):
            dropped.append(key)
        elif ".qkv_proj." in key:
            for letter, part in zip("qkv", _parts(key, value, config.layers), strict=True):
                name = key.replace("qkv_proj", f"{letter}_proj")
                if name in named:
                    raise DrafterMismatchError(f"The checkpoint has both {key} and {name}.")
                split[name] = part
        elif key == "fc.weight":
            split[key] = value[:, : len(config.taps) * config.layers.hidden_size]
        else:
            split[key] = value
    if dropped:
        warnings.warn(
            f"{len(dropped)} tensors of the drafter have no place in DFlash ({dropped[0]}, ...) and were "
            "left out: outputs stay exact, but fewer drafts will be accepted than its makers report.",
            stacklevel=2,
        )
    return split


def _parts(key: str, value: Tensor, layers: Qwen3Config) -> tuple[Tensor, ...]:
    keys = layers.num_key_value_heads * layers.head_dim
    rows = [layers.num_attention_heads * layers.head_dim, keys, keys]
    if value.shape[0] != sum(rows):
        raise DrafterMismatchError(f"{key} has {value.shape[0]} rows; the config asks for {sum(rows)}.")
    return torch.split(value, rows)
