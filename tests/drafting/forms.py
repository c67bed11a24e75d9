"""The published checkpoint forms of one drafter: config.json and tensors, as their makers write them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from tests.drafting.tiny import D, V, diffusion_config, head_config, randomize
from xpress_struct.drafting.backbone import Backbone
from xpress_struct.drafting.checkpoints.layers import layer_fields
from xpress_struct.drafting.config import DiffusionConfig
from xpress_struct.drafting.heads import make_head
from xpress_struct.drafting.weights import DraftWeights

Form = tuple[dict[str, Any], dict[str, Tensor]]

SERVING = {
    "token_embed.weight": "w1.weight",
    "readout.weight": "w2.weight",
    "mix_l": "mix.L",
    "mlp_gate.weight": "mlp.gate_proj.weight",
    "mlp_up.weight": "mlp.up_proj.weight",
    "mlp_down.weight": "mlp.down_proj.weight",
}


def tiny_weights(*types: str, kind: str | None = None, draft_vocab_size: int | None = None, **fields: Any):
    """A random drafter; a reduced vocabulary is every other id, with an output head of its own."""
    config = diffusion_config(
        *(types or ("full_attention", "full_attention")),
        head=head_config(kind) if kind else None,
        draft_vocab_size=draft_vocab_size,
        **fields,
    )
    backbone, head = Backbone(config), make_head(config, V) if kind else None
    randomize(backbone)
    if head is not None:
        randomize(head, seed=1)
    if draft_vocab_size is None:
        return DraftWeights(config, backbone, head)
    lm_head = torch.randn(draft_vocab_size, D, generator=torch.Generator().manual_seed(2))
    return DraftWeights(config, backbone, head, 2 * torch.arange(draft_vocab_size), lm_head)


def write(folder: Path, form: Form) -> Path:
    """Saves a form."""
    fields, tensors = form
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(fields))
    save_file({key: value.contiguous() for key, value in tensors.items()}, folder / "model.safetensors")
    return folder


def z_lab(weights: DraftWeights) -> Form:
    """z-lab's, of Qwen3 targets: block_size at the top."""
    config = weights.config
    inner = {"mask_token_id": config.mask_token_id, "target_layer_ids": list(config.taps)}
    fields = _z_lab_fields(config) | {"block_size": config.block_size, "dflash_config": inner}
    return fields, dict(weights.backbone.state_dict())


def z_lab_inner(weights: DraftWeights) -> Form:
    """z-lab's, of Qwen3.5 targets: block_size inside."""
    fields, tensors = z_lab(weights)
    fields["dflash_config"]["block_size"] = fields.pop("block_size")
    return fields, tensors


def z_lab_flat(weights: DraftWeights) -> Form:
    """All fields at the top."""
    fields, tensors = z_lab(weights)
    return fields | fields.pop("dflash_config"), tensors


def fused(weights: DraftWeights) -> Form:
    """One projection for queries, keys and values; extra gates, norms and fc columns."""
    fields, tensors = z_lab(weights)
    for index in range(weights.config.layers.num_hidden_layers):
        start = f"layers.{index}.self_attn."
        parts = [tensors.pop(f"{start}{letter}_proj.weight") for letter in "qkv"]
        tensors[f"{start}qkv_proj.weight"] = torch.cat(parts)
        tensors[f"{start}g_proj.weight"] = torch.ones(4, D)
    tensors["aux_hidden_norms.0.weight"] = torch.ones(D)
    tensors["fc.weight"] = torch.cat([tensors["fc.weight"], torch.ones(D, D)], dim=1)
    return fields, tensors


def deep_spec(weights: DraftWeights) -> Form:
    """DeepSpec's: flat, with copies of the target's tables and a confidence head."""
    config, head = weights.config, weights.config.head
    fields = _z_lab_fields(config) | {
        "architectures": ["Qwen3DSparkModel"],
        "block_size": config.block_size,
        "mask_token_id": config.mask_token_id,
        "target_layer_ids": list(config.taps),
        "num_anchors": 512,
        "markov_rank": head.rank if head else 0,
        "enable_confidence_head": True,
        "confidence_head_with_markov": False,
    }
    if head:
        fields["markov_head_type"] = head.kind
    tensors = dict(weights.backbone.state_dict()) | _head(weights, "markov_head.") | tables()
    tensors |= {"confidence_head.proj.weight": torch.ones(1, D), "confidence_head.proj.bias": torch.ones(1)}
    return fields, tensors


def serving(weights: DraftWeights) -> Form:
    """xPress' published form."""
    head = weights.config.head
    fields, tensors = z_lab(weights)
    fields |= {
        "architectures": ["Qwen3XPressModel"],
        "xpress_rank": head.rank,
        "xpress_mlp_hidden": head.mlp_hidden,
        "xpress_block_size": weights.config.block_size,
        "xpress_num_passes": head.passes,
        "sample_from_anchor": False,
    }
    for key, value in weights.head.state_dict().items():
        tensors["xpress_head." + SERVING.get(key, key)] = value
    return fields, tensors


def speculators(weights: DraftWeights) -> Form:
    """speculators', of all three kinds."""
    config, head = weights.config, weights.config.head
    kind = "dflash" if head is None else "xpress" if head.kind == "xpress" else "dspark"
    fields = {
        "architectures": ["DFlashDraftModel"],
        "speculators_model_type": kind,
        "speculators_config": {"verifier": {"name_or_path": "some/target", "architectures": []}},
        "transformer_layer_config": {"model_type": "qwen3", **layer_fields(config.layers)},
        "aux_hidden_state_layer_ids": [index + 1 for index in config.taps],
        "block_size": config.block_size,
        "mask_token_id": config.mask_token_id,
        "draft_vocab_size": config.draft_vocab_size or V,
        "sample_from_anchor": config.predicts_next,
        "sliding_window_non_causal": not config.sliding_is_causal,
    }
    if head and kind == "xpress":
        fields |= {"xpress_rank": head.rank, "xpress_mlp_ratio": head.mlp_hidden // head.rank}
        fields["num_jacobi_passes"] = head.passes
    elif head:
        fields |= {"markov_rank": head.rank, "markov_head_type": head.kind}
    prefix = "refiner_head." if kind == "xpress" else "markov_head."
    tensors = dict(weights.backbone.state_dict()) | _head(weights, prefix) | tables()
    tensors |= {"verifier_lm_head.weight": torch.ones(3, D), "verifier_norm.weight": torch.ones(D)}
    if weights.draft_ids is not None:
        tensors["lm_head.weight"] = weights.lm_head
        tensors["d2t"] = weights.draft_ids - torch.arange(len(weights.draft_ids))
        tensors["t2d"] = torch.zeros(V, dtype=torch.bool)
    return fields, tensors


FORMS: dict[str, Callable[[DraftWeights], Form]] = {
    "z_lab": z_lab,
    "z_lab_inner": z_lab_inner,
    "z_lab_flat": z_lab_flat,
    "fused": fused,
    "deep_spec": deep_spec,
    "serving": serving,
    "speculators": speculators,
}


def tables() -> dict[str, Tensor]:
    """What a checkpoint may copy from its target."""
    return {"embed_tokens.weight": torch.ones(V, D), "lm_head.weight": torch.ones(V, D)}


def _z_lab_fields(config: DiffusionConfig) -> dict[str, Any]:
    layers = layer_fields(config.layers)
    theta = layers.pop("rope_parameters")["rope_theta"]
    rest = {"num_target_layers": 6, "rope_theta": theta, "model_type": "qwen3", "dtype": "float32"}
    return {"architectures": ["DFlashDraftModel"], **layers, **rest}


def _head(weights: DraftWeights, prefix: str) -> dict[str, Tensor]:
    if weights.head is None:
        return {}
    return {prefix + key: value for key, value in weights.head.state_dict().items()}
