"""A drafter in the formats dflash, xpress and dspark of speculators (0.9), which vLLM serves."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from xpress_struct.drafting.checkpoints.layers import lacks_window, layer_fields
from xpress_struct.drafting.weights import DraftWeights
from xpress_struct.errors import UnsupportedFeatureError

__all__ = ["speculators_fields", "speculators_tensors"]

_VERSION = "0.9.0"


def speculators_fields(weights: DraftWeights, target_name: str | None) -> dict[str, Any]:
    """The content of config.json.

    Raises:
        UnsupportedFeatureError: the format cannot hold what the drafter does.
    """
    config, head = weights.config, weights.config.head
    _refuse_what_is_lost(weights)
    kind = "dflash" if head is None else "xpress" if head.kind == "xpress" else "dspark"
    fields: dict[str, Any] = {
        "architectures": [{"dflash": "DFlash", "xpress": "XPress", "dspark": "DSpark"}[kind] + "DraftModel"],
        "speculators_model_type": kind,
        "speculators_version": _VERSION,
        "speculators_config": {
            "algorithm": kind,
            "default_proposal_method": "greedy",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": config.offers}],
            "verifier": {"name_or_path": target_name or config.trained_on.target, "architectures": []},
        },
        "transformer_layer_config": {"model_type": "qwen3", **layer_fields(config.layers)},
        "aux_hidden_state_layer_ids": [index + 1 for index in config.taps],
        "block_size": config.block_size,
        "mask_token_id": config.mask_token_id,
        "draft_vocab_size": config.draft_vocab_size or config.layers.vocab_size,
        "sample_from_anchor": config.predicts_next,
        "sliding_window_non_causal": not config.sliding_is_causal,
        "tie_word_embeddings": False,
        "dtype": str(weights.backbone.fc.weight.dtype).removeprefix("torch."),
    }
    if head is not None and kind == "xpress":
        ratio = head.mlp_hidden // head.rank
        fields |= {"xpress_rank": head.rank, "xpress_mlp_ratio": ratio, "num_jacobi_passes": head.passes}
    elif head is not None:
        fields |= {"markov_rank": head.rank, "markov_head_type": head.kind}
        fields |= {"enable_confidence_head": False, "confidence_head_with_markov": False}
    return fields


def speculators_tensors(weights: DraftWeights) -> dict[str, Tensor]:
    """The tensors by speculators' keys."""
    tensors: dict[str, Tensor] = dict(weights.backbone.state_dict())
    if weights.head is not None and weights.config.head is not None:
        prefix = "refiner_head." if weights.config.head.kind == "xpress" else "markov_head."
        tensors |= {prefix + key: value for key, value in weights.head.state_dict().items()}
    if weights.draft_ids is not None and weights.lm_head is not None:
        ids = weights.draft_ids.cpu()
        is_drafted = torch.zeros(weights.config.layers.vocab_size, dtype=torch.bool)
        is_drafted[ids] = True
        offsets = ids - torch.arange(len(ids))
        tensors |= {"lm_head.weight": weights.lm_head, "d2t": offsets, "t2d": is_drafted}
    return tensors


def _refuse_what_is_lost(weights: DraftWeights) -> None:
    config, head, ids = weights.config, weights.config.head, weights.draft_ids
    lost = {
        "embedding_scale": config.embedding_scale != 1,
        "output_multiplier": config.output_multiplier != 1,
        "logit_softcap": config.logit_softcap is not None,
        "full_is_causal": config.full_is_causal,
        "sliding_is_causal without a window": config.sliding_is_causal and lacks_window(config.layers),
        "mlp_hidden that is no multiple of the rank": head is not None and head.mlp_hidden % head.rank != 0,
        "a reduced vocabulary without an output head of its own": ids is not None and weights.lm_head is None,
        "draft_ids that do not ascend": ids is not None and bool((ids.diff() <= 0).any()),
    }
    for what, is_lost in lost.items():
        if is_lost:
            raise UnsupportedFeatureError(
                f"The speculators format cannot hold {what}. Write format='xpress_struct'.", feature=what
            )
