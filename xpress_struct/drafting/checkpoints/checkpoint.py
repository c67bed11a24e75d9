"""Checkpoints of block-diffusion drafters: reads the published formats and ours, writes two of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn

from xpress_struct.drafting.backbone import Backbone
from xpress_struct.drafting.checkpoints.files import MAX_SHARD_SIZE, fetch, read_json, read_tensors, save
from xpress_struct.drafting.checkpoints.formats import read_config
from xpress_struct.drafting.checkpoints.keys import HEAD, is_wanted, rename
from xpress_struct.drafting.checkpoints.own_format import own_fields
from xpress_struct.drafting.checkpoints.speculators_format import speculators_fields, speculators_tensors
from xpress_struct.drafting.config import DiffusionConfig
from xpress_struct.drafting.heads import make_head
from xpress_struct.drafting.weights import DraftWeights
from xpress_struct.errors import ArgumentError, DrafterMismatchError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["read_checkpoint", "write_checkpoint"]


def read_checkpoint(
    source: str | Path,
    *,
    revision: str | None = None,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
    tokenizer: PreTrainedTokenizerBase | None = None,
) -> DraftWeights:
    """Reads a drafter.

    The formats: z-lab's DFlash, xPress' serving form, DeepSpec's DSpark, speculators' dflash, xpress and
    dspark, and our own. Copies of the target's embeddings and heads are not loaded, nor are confidence
    heads: `DraftControl.draft_confidence` goes by the drafter's own probabilities.

    Args:
        source: a folder, or a hub id, of which config.json and the safetensors are downloaded.
        device: the CPU by default.
        dtype: of all floating-point weights; that of the checkpoint's `fc.weight` by default.
        tokenizer: the target's, for checkpoints that name the mask token by its text.

    Raises:
        ModelError: it cannot be fetched, or a file is missing or damaged.
        UnsupportedFeatureError: a format that is not read: DFlash2, pickled weights, others.
        DrafterMismatchError: tensors and config.json do not belong together.
    """
    folder = fetch(source, revision)
    config = read_config(read_json(folder), tokenizer)
    place = torch.device(device or "cpu")
    tensors = rename(read_tensors(folder, partial(is_wanted, config=config), str(place)), config)
    return _assemble(config, tensors, place, dtype)


def write_checkpoint(
    weights: DraftWeights,
    folder: str | Path,
    *,
    format: Literal["xpress_struct", "speculators"] = "xpress_struct",
    target_name: str | None = None,
    max_shard_size: int | str = MAX_SHARD_SIZE,
) -> None:
    """Writes a drafter to a folder as config.json and model.safetensors, in the weights' dtype.

    Weights that an earlier call wrote there are removed.

    Args:
        format: "xpress_struct" holds everything. "speculators" is what speculators reads and vLLM serves
            (dflash, xpress or dspark, by the head); `max_known` and all of `trained_on` but the target's
            name are not in it, so a drafter read back is used with known runs of one token.
        target_name: hub id or path of the target, for "speculators", which loads the target's weights from
            there; by default `trained_on.target`.
        max_shard_size: bytes of tensors in a file, a number or text like "16MB"; above it the weights take
            several files with an index, as in transformers. A larger tensor has a file of its own.

    Raises:
        ArgumentError: an unknown format, or a `max_shard_size` that is no size.
        UnsupportedFeatureError: the format cannot hold what the drafter does.
        ModelError: the folder cannot be written.
    """
    if format == "xpress_struct":
        save(folder, own_fields(weights.config), _own_tensors(weights), max_shard_size)
    elif format == "speculators":
        fields, tensors = speculators_fields(weights, target_name), speculators_tensors(weights)
        save(folder, fields, tensors, max_shard_size)
    else:
        raise ArgumentError(f"format={format!r}: it must be 'xpress_struct' or 'speculators'.")


def _own_tensors(weights: DraftWeights) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = dict(weights.backbone.state_dict())
    if weights.head is not None:
        tensors |= {HEAD + key: value for key, value in weights.head.state_dict().items()}
    if weights.lm_head is not None:
        tensors["lm_head.weight"] = weights.lm_head
    if weights.draft_ids is not None:
        tensors["draft_ids"] = weights.draft_ids
    return tensors


def _assemble(
    config: DiffusionConfig, tensors: dict[str, Tensor], device: torch.device, dtype: torch.dtype | None
) -> DraftWeights:
    # On "meta" parameters take no memory; the checkpoint's take their place.
    with torch.device("meta"):
        backbone = Backbone(config)
        head = make_head(config, config.layers.vocab_size) if config.head else None
    expected = _shapes(backbone)
    if head is not None:
        expected |= {HEAD + key: shape for key, shape in _shapes(head).items()}
    width = config.draft_vocab_size
    optional: dict[str, tuple[int, ...]] = {}
    if width is not None:
        expected["draft_ids"] = (width,)
        optional["lm_head.weight"] = (width, config.layers.hidden_size)
    _check_shapes(tensors, expected, optional)

    dtype = dtype or tensors["fc.weight"].dtype
    tensors = {key: _cast(value, dtype, device) for key, value in tensors.items()}
    lm_head, draft_ids = tensors.pop("lm_head.weight", None), tensors.pop("draft_ids", None)
    _check_ids(draft_ids, config.layers.vocab_size)
    of_head = {key.removeprefix(HEAD): tensors.pop(key) for key in list(tensors) if key.startswith(HEAD)}
    _fill(backbone, tensors, device)
    if head is not None:
        _fill(head, of_head, device)
    return DraftWeights(config, backbone, head, draft_ids, lm_head)


def _shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {key: tuple(value.shape) for key, value in module.state_dict().items()}


def _check_shapes(
    tensors: Mapping[str, Tensor],
    expected: Mapping[str, tuple[int, ...]],
    optional: Mapping[str, tuple[int, ...]],
) -> None:
    missing = sorted(expected.keys() - tensors.keys())
    if missing:
        raise DrafterMismatchError(
            f"The checkpoint lacks {missing[0]} of shape {list(expected[missing[0]])}{_more(missing)}."
        )
    known = {**expected, **optional}
    unexpected = sorted(tensors.keys() - known.keys())
    if unexpected:
        shape = list(tensors[unexpected[0]].shape)
        raise DrafterMismatchError(
            f"The checkpoint has {unexpected[0]} of shape {shape}{_more(unexpected)}, for which the drafter "
            "that its config.json describes has no use."
        )
    for key, value in tensors.items():
        if tuple(value.shape) != known[key]:
            raise DrafterMismatchError(
                f"{key} has the shape {list(value.shape)}; config.json asks for {list(known[key])}."
            )


def _more(keys: list[str]) -> str:
    return f" and {len(keys) - 1} others" if len(keys) > 1 else ""


def _cast(value: Tensor, dtype: torch.dtype, device: torch.device) -> Tensor:
    return value.to(device, dtype if value.is_floating_point() else value.dtype)


def _check_ids(draft_ids: Tensor | None, vocab_size: int) -> None:
    if draft_ids is None:
        return
    low, high = int(draft_ids.min()), int(draft_ids.max())
    if low < 0 or high >= vocab_size:
        raise DrafterMismatchError(
            f"The draft ids stand for the target's ids {low} to {high}; the target has {vocab_size} "
            f"(0 to {vocab_size - 1})."
        )


def _fill(module: nn.Module, tensors: Mapping[str, Tensor], device: torch.device) -> None:
    module.load_state_dict(tensors, assign=True)
    module.to(device)
    module.eval()
