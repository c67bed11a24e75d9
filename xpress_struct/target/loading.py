"""A hub id, a folder or loaded objects -> target, tokenizer and end ids."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from xpress_struct.errors import ArgumentError, ModelError
from xpress_struct.target import bundled
from xpress_struct.target.packed import pack_linears
from xpress_struct.target.target import TransformersTarget

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Loaded", "load_target", "read_tokenizer"]


class Loaded(NamedTuple):
    """A target with its tokenizer and the ids that end a text, the preferred one first."""

    target: TransformersTarget
    tokenizer: PreTrainedTokenizerBase
    end_ids: tuple[int, ...]


def load_target(
    model: Any = None,
    *,
    tokenizer: Any = None,
    device: Any = "auto",
    dtype: Any = "auto",
    revision: str | None = None,
) -> Loaded:
    """Loads what `xpress_struct.load` is given; see there for arguments and errors."""
    if model is None:
        model = bundled.pull()
    if isinstance(model, (str, Path)):
        tokenizer = tokenizer if tokenizer is not None else model
        model = _read_model(str(model), _device(device), dtype, revision)
    elif not hasattr(model, "config") or not hasattr(model, "forward"):
        raise ArgumentError(
            f"model is a {type(model).__name__}; pass a hub id, a folder or a transformers model."
        )
    elif tokenizer is None:
        raise ArgumentError("A loaded model needs its tokenizer: load(model, tokenizer=tokenizer).")
    if isinstance(tokenizer, (str, Path)):
        tokenizer = read_tokenizer(str(tokenizer), revision)
    return Loaded(TransformersTarget(model), tokenizer, _end_ids(model, tokenizer))


def _read_model(name: str, device: torch.device, dtype: Any, revision: str | None) -> Any:
    from transformers import AutoModelForCausalLM

    if dtype == "auto" and device.type == "cpu":
        # bfloat16 products are many times slower than float32 ones on most CPUs.
        dtype = torch.float32
    try:
        loaded = AutoModelForCausalLM.from_pretrained(name, dtype=dtype, revision=revision)
    except (OSError, ValueError, ImportError) as error:
        raise ModelError(f"The model {name!r} cannot be loaded: {error}") from error
    loaded = loaded.to(device)
    pack_linears(loaded)
    return loaded


def read_tokenizer(name: str, revision: str | None = None) -> PreTrainedTokenizerBase:
    """The tokenizer of a hub id or a folder.

    Raises:
        ModelError: it cannot be fetched or read.
    """
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(name, revision=revision)
    except (OSError, ValueError, ImportError) as error:
        raise ModelError(f"The tokenizer {name!r} cannot be loaded: {error}") from error


def _device(device: Any) -> torch.device:
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ArgumentError(f"device={device!r}: {error}") from None


def _end_ids(model: Any, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """End ids of the generation config, else of the model's config, else of the tokenizer."""
    for source in (getattr(model, "generation_config", None), model.config, tokenizer):
        found = getattr(source, "eos_token_id", None)
        if found is not None:
            return tuple(found) if isinstance(found, (list, tuple)) else (int(found),)
    return ()
