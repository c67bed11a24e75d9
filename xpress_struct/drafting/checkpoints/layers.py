"""The decoder layers' part of a checkpoint's config, as the Qwen3 config that every format builds on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xpress_struct.errors import ModelError

if TYPE_CHECKING:
    from transformers import Qwen3Config

__all__ = ["lacks_window", "layer_fields", "read_layers"]

_FIELDS = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "hidden_act",
    "max_position_embeddings",
    "rms_norm_eps",
    "rope_parameters",
    "attention_bias",
    "attention_dropout",
    "use_sliding_window",
    "sliding_window",
    "max_window_layers",
    "layer_types",
)
_OLD_FIELDS = ("rope_theta", "rope_scaling")


def read_layers(fields: Mapping[str, Any], *, foreign: bool = False) -> Qwen3Config:
    """The layers that a config describes.

    Args:
        foreign: what is left out has the default of the named `model_type`, not of Qwen3; speculators
            builds Qwen3 layers from the config of any model.

    Raises:
        ModelError: it is no such config.
    """
    from transformers import AutoConfig, Qwen3Config

    try:
        kind = fields.get("model_type", "qwen3")
        if foreign and kind != "qwen3":
            rest = {name: value for name, value in fields.items() if name != "model_type"}
            fields = AutoConfig.for_model(kind, **rest).to_dict()
        given = {name: fields[name] for name in (*_FIELDS, *_OLD_FIELDS) if name in fields}
        return Qwen3Config(**given)
    except Exception as error:  # transformers checks with several kinds of error
        raise ModelError(f"config.json does not describe decoder layers: {error}") from error


def layer_fields(layers: Qwen3Config) -> dict[str, Any]:
    """What `read_layers` reads the same layers from."""
    return {name: getattr(layers, name) for name in _FIELDS}


def lacks_window(layers: Qwen3Config) -> bool:
    """Whether there are sliding layers, but no window for them."""
    return layers.sliding_window is None and "sliding_attention" in (layers.layer_types or ())
