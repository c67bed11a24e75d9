"""What a caller of `generate` may ask of XPressGenerate: each argument is honoured, or refused by name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, GenerationMixin

from xpress_struct.errors import ArgumentError, UnsupportedFeatureError

__all__ = ["check_arguments", "passed_to_generate", "prompt_rows", "sampling_of"]

# Fields of the generation config that are honoured: by the options, by processors and criteria that
# `generate` makes of them, or because they ask for nothing (the last line).
_HONOURED = (
    *("max_length", "max_new_tokens", "min_length", "min_new_tokens", "max_time"),
    *("do_sample", "temperature", "top_k", "top_p", "min_p", "num_return_sequences"),
    *("repetition_penalty", "no_repeat_ngram_size", "bad_words_ids", "sequence_bias", "suppress_tokens"),
    *("begin_suppress_tokens", "exponential_decay_length_penalty"),
    *("remove_invalid_values", "renormalize_logits", "return_dict_in_generate"),
    *("eos_token_id", "pad_token_id", "bos_token_id"),
    *("disable_compile", "decoder_start_token_id", "transformers_version"),
)

_PROCESSOR = "use ConstraintLogitsProcessor, which works with every decoding method of generate()"
_DRAFTER = "name who guesses in XPressGenerate(drafter=...)"
_CACHE = "leave it out: a key/value cache of its own is used, since drafts are taken back from it"
_LIMIT = "the constraint says what comes; XPressGenerate(on_limit='close') closes the text at its limit"
_INSTEAD: dict[str, str] = {
    **dict.fromkeys(("use_cache", "cache_implementation", "cache_config", "max_cache_len"), _CACHE),
    **dict.fromkeys(("cache", "past_key_values", "cache_params"), _CACHE),
    **dict.fromkeys(("forced_bos_token_id", "forced_eos_token_id"), _LIMIT),
    **dict.fromkeys(("assistant_model", "prompt_lookup_num_tokens", "max_matching_ngram_size"), _DRAFTER),
    **dict.fromkeys(("use_mtp", "assistant_early_exit", "speculation_type"), _DRAFTER),
    "stop_strings": "XPressGenerate(stop_strings=...) takes them",
    "num_assistant_tokens": "XPressGenerate(block_length=...) bounds the guesses of a round",
    "prefix_allowed_tokens_fn": "say it in the constraint, or " + _PROCESSOR,
    "inputs_embeds": "pass input_ids",
    "synced_gpus": "leave it out: each process decodes for itself",
}

# What `generate` adds to the model's arguments by itself.
_PREPARED = ("attention_mask", "position_ids", "cache_position", "logits_to_keep", "use_cache")
_CACHES = ("cache", "past_key_values", "cache_params")
_NOT_HANDED_ON = (
    *("assistant_model", "synced_gpus", "prefix_allowed_tokens_fn"),
    *("negative_prompt_ids", "negative_prompt_attention_mask"),
)


def passed_to_generate(model: Any) -> dict[str, Any]:
    """The arguments of the `generate` call that is under way; empty outside one.

    transformers drops some arguments (`streamer`, `assistant_model`) before it calls a `custom_generate`, so
    only its frame still knows that they were given.
    """
    code = inspect.unwrap(GenerationMixin.generate).__code__
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code is code and frame.f_locals.get("self") is model:
            return {**frame.f_locals.get("kwargs", {}), **frame.f_locals}
        frame = frame.f_back
    return {}


def check_arguments(
    config: GenerationConfig, model_kwargs: Mapping[str, Any], passed: Mapping[str, Any]
) -> None:
    """Refuses what is not honoured.

    Args:
        config: as prepared by `generate`.
        model_kwargs: what `generate` would pass to the model's forward.
        passed: the arguments of `generate`.

    Raises:
        UnsupportedFeatureError: names the first such argument, and what to do instead.
    """
    usual = GenerationConfig._get_default_generation_params()
    for name, value in vars(config).items():
        if name.startswith("_") or name in _HONOURED or value is None or value == usual.get(name, False):
            continue
        if (name, value) != ("cache_implementation", "dynamic"):
            _refuse(name, value)
    # A cache that the caller did not pass is an empty one of generate().
    for name in (*_NOT_HANDED_ON, *_CACHES):
        given = passed.get(name)
        if given is not None and given is not False:
            _refuse(name, given)
    for name, value in model_kwargs.items():
        if value is not None and name not in (*_PREPARED, *_CACHES):
            _refuse(name, value)


def prompt_rows(input_ids: Tensor, model_kwargs: Mapping[str, Any]) -> list[tuple[list[int], list[int]]]:
    """The padding and the prompt of each row of a batch [rows, n].

    Raises:
        UnsupportedFeatureError: positions are asked for that the prompts would not have alone.
    """
    mask = model_kwargs.get("attention_mask")
    mask = torch.ones_like(input_ids) if mask is None else mask.to(input_ids.device)
    if mask.shape != input_ids.shape:
        _refuse("attention_mask", f"a mask of shape {list(mask.shape)}")
    places = model_kwargs.get("position_ids")
    if places is not None:
        usual = mask.long().cumsum(-1) - 1
        same = places.shape == usual.shape and bool(((places.to(usual.device) == usual) | (mask == 0)).all())
        if not same:
            _refuse("position_ids", f"positions of shape {list(places.shape)}")
    rows = zip(input_ids, mask != 0, strict=True)
    return [(ids[~kept].tolist(), ids[kept].tolist()) for ids, kept in rows]


def sampling_of(config: GenerationConfig) -> dict[str, Any]:
    """Our sampling options of a generation config."""
    if not config.do_sample:
        return {"temperature": 0.0}
    if not config.temperature or config.temperature < 0:
        raise ArgumentError(f"temperature={config.temperature!r}: sampling needs one above 0.")
    return {
        "temperature": float(config.temperature),
        "top_k": config.top_k or 0,
        "top_p": 1.0 if config.top_p is None else config.top_p,
        "min_p": config.min_p or 0.0,
    }


def _refuse(name: str, value: Any) -> None:
    shown = repr(value) if isinstance(value, (bool, int, float, str, list, tuple)) else type(value).__name__
    raise UnsupportedFeatureError(
        f"XPressGenerate cannot honour {name}={shown}: {_INSTEAD.get(name, _PROCESSOR)}.", feature=name
    )
