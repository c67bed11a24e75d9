"""config.json of a drafter's checkpoint -> DiffusionConfig, for every format that is read.

The formats: z-lab's DFlash, xPress' serving form, DeepSpec's DSpark, speculators' dflash, xpress and dspark,
and our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xpress_struct.drafting.checkpoints.layers import lacks_window, read_layers
from xpress_struct.drafting.checkpoints.own_format import OWN_TYPE, read_own
from xpress_struct.drafting.config import DiffusionConfig, HeadConfig, TrainedOn
from xpress_struct.errors import ModelError, UnsupportedFeatureError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["is_diffusion_drafter", "read_config"]

Fields = Mapping[str, Any]

_FLAT = ("DFlashDraftModel", "Qwen3XPressModel", "Qwen3DSparkModel")
_SPECULATORS = ("dflash", "xpress", "dspark")
_READ = (
    f"Read are: architectures {', '.join(_FLAT)}; speculators_model_type {', '.join(_SPECULATORS)}; "
    f"model_type {OWN_TYPE}."
)


def is_diffusion_drafter(fields: Fields) -> bool:
    """Whether a config.json is that of a block-diffusion drafter, also of one that is not read."""
    name = (fields.get("architectures") or [""])[0]
    return (
        fields.get("model_type") == OWN_TYPE
        or "speculators_model_type" in fields
        or "dflash_config" in fields
        or name in _FLAT
        or name.startswith("DFlash")
    )


def read_config(fields: Fields, tokenizer: PreTrainedTokenizerBase | None = None) -> DiffusionConfig:
    """What a config.json says.

    Args:
        fields: of the file.
        tokenizer: the target's, for checkpoints that name the mask token by its text.

    Raises:
        UnsupportedFeatureError: an architecture that is not read.
        ModelError: a field is missing or malformed.
    """
    if fields.get("model_type") == OWN_TYPE:
        return read_own(fields)
    kind = fields.get("speculators_model_type")
    name = (fields.get("architectures") or ["none"])[0]
    if kind is not None:
        name = f"speculators_model_type {kind}"
    if "dflash2" in name.lower() or any(_flat(fields, key) for key in ("conv_kernel_size", "selector_rank")):
        raise _unread(name, "DFlash2", "DFlash2's convolutions and its selector are not implemented. ")
    try:
        if kind in _SPECULATORS:
            return _read_speculators(kind, fields)
        if kind is None and name in _FLAT:
            return _read_flat(name, fields, tokenizer)
    except (TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"The drafter's config.json is malformed: {error}") from error
    raise _unread(name, name)


def _read_flat(name: str, fields: Fields, tokenizer: PreTrainedTokenizerBase | None) -> DiffusionConfig:
    """z-lab's form and what was made of it: fields at the top or inside `dflash_config`."""
    layers = read_layers(fields)
    depth = _flat(fields, "num_target_layers")
    taps = _flat(fields, "target_layer_ids")
    if taps is None:
        taps = _default_taps(int(_needed(depth, "num_target_layers")), layers.num_hidden_layers)
    causal = _flat(fields, "is_causal")
    softcap = _flat(fields, "final_logit_softcapping")
    return DiffusionConfig(
        layers=layers,
        block_size=int(_flat(fields, "block_size", 16)),
        mask_token_id=_mask_token(fields, tokenizer),
        taps=_checked_taps(taps),
        predicts_next=bool(_flat(fields, "sample_from_anchor", name == "Qwen3DSparkModel")),
        sliding_is_causal=True if causal is None else bool(causal),
        full_is_causal=bool(causal),
        embedding_scale=float(_flat(fields, "input_embedding_scale", 1.0)),
        output_multiplier=float(_flat(fields, "output_multiplier", 1.0)),
        logit_softcap=float(softcap) if softcap else None,
        head=_flat_head(name, fields),
        trained_on=TrainedOn(num_target_layers=depth, target_vocab_size=layers.vocab_size),
    )


def _flat_head(name: str, fields: Fields) -> HeadConfig | None:
    if name == "Qwen3XPressModel":
        rank, hidden = _flat(fields, "xpress_rank", 256), _flat(fields, "xpress_mlp_hidden", 512)
        block, slots = _flat(fields, "xpress_block_size"), _flat(fields, "block_size", 16)
        if block not in (None, slots):
            raise ModelError(f"config.json: xpress_block_size is {block}, but block_size is {slots}.")
        return HeadConfig("xpress", int(rank), int(hidden), int(_flat(fields, "xpress_num_passes", 6)))
    return _markov_head(fields, 0) if name == "Qwen3DSparkModel" else None


def _read_speculators(kind: str, fields: Fields) -> DiffusionConfig:
    nested = _needed(fields.get("transformer_layer_config"), "transformer_layer_config")
    layers = read_layers(nested, foreign=True)
    ids = _needed(fields.get("aux_hidden_state_layer_ids"), "aux_hidden_state_layer_ids")
    width = fields.get("draft_vocab_size", 32000)
    head = None
    if kind == "xpress":
        rank = int(fields.get("xpress_rank", 256))
        hidden = rank * int(fields.get("xpress_mlp_ratio", 2))
        head = HeadConfig("xpress", rank, hidden, int(fields.get("num_jacobi_passes", 6)))
    elif kind == "dspark":
        head = _markov_head(fields, 256)
    verifier = (fields.get("speculators_config") or {}).get("verifier") or {}
    return DiffusionConfig(
        layers=layers,
        block_size=int(fields.get("block_size", 8)),
        mask_token_id=int(_needed(fields.get("mask_token_id"), "mask_token_id")),
        # Theirs count the states of transformers' `hidden_states`, whose first are the embeddings.
        taps=_checked_taps([int(index) - 1 for index in ids]),
        predicts_next=bool(fields.get("sample_from_anchor", kind == "dspark")),
        # Without a window their sliding layers get the mask of full ones.
        sliding_is_causal=not (fields.get("sliding_window_non_causal", False) or lacks_window(layers)),
        draft_vocab_size=None if width == layers.vocab_size else int(width),
        head=head,
        trained_on=TrainedOn(target=verifier.get("name_or_path"), target_vocab_size=layers.vocab_size),
    )


def _markov_head(fields: Fields, rank: int) -> HeadConfig | None:
    rank = int(_flat(fields, "markov_rank", rank))
    kind = _flat(fields, "markov_head_type", "vanilla")
    if kind not in ("vanilla", "gated", "rnn"):
        raise UnsupportedFeatureError(
            f"markov_head_type {kind!r}: read are vanilla, gated and rnn.", feature="markov_head_type"
        )
    return HeadConfig(kind, rank) if rank else None


def _flat(fields: Fields, name: str, default: Any = None) -> Any:
    inner = fields.get("dflash_config") or {}
    found = inner.get(name, fields.get(name))
    return default if found is None else found


def _needed(value: Any, name: str) -> Any:
    if value is None:
        raise ModelError(f"config.json does not say {name}; the checkpoint is incomplete.")
    return value


def _default_taps(depth: int, count: int) -> list[int]:
    """z-lab's layers when none are named: evenly from layer 1 to the third last."""
    if count == 1:
        return [depth // 2]
    return [round(1 + i * (depth - 4) / (count - 1)) for i in range(count)]


def _checked_taps(taps: Any) -> tuple[int, ...]:
    if any(index < 0 for index in taps):
        raise UnsupportedFeatureError(
            "The drafter reads the target's embeddings as one of its taps, which is not supported.",
            feature="tap on the embeddings",
        )
    if not taps:
        raise ModelError("config.json names no layer of the target to read from (taps).")
    return tuple(int(index) for index in taps)


def _mask_token(fields: Fields, tokenizer: PreTrainedTokenizerBase | None) -> int:
    index, text = _flat(fields, "mask_token_id"), _flat(fields, "mask_token")
    if index is not None or text is None:
        return int(_needed(index, "mask_token_id"))
    if tokenizer is None:
        raise ModelError(
            f"config.json names the mask token by its text, {text!r}. Pass the target's tokenizer: "
            "read_checkpoint(..., tokenizer=tokenizer)."
        )
    known = tokenizer.get_vocab().get(text)
    if known is None:
        raise ModelError(f"The mask token {text!r} is not a token of this tokenizer; pass the target's own.")
    return int(known)


def _unread(name: str, feature: str, why: str = "") -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"A drafter of {name} cannot be read. {why}{_READ}", feature=feature)
