"""Responses without a grammar, many at once: a forward of the target over many texts reads its weights once,
so that a token comes cheaper than from one text after another."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from xpress_struct.errors import ArgumentError
from xpress_struct.model import Model
from xpress_struct.target.target import TransformersTarget

__all__ = ["BATCH", "write_free"]

BATCH = 32
"""Texts that are written at once."""


def write_free(
    model: Model, prompts: Sequence[Sequence[int]], *, temperature: float, longest: int, seed: int
) -> list[tuple[int, ...]]:
    """The target's responses to several prompts, by the plain `generate` of transformers.

    Args:
        prompts: ids, of any lengths.
        temperature: 0 is greedy: but for rounding, which is another in a batch, what the target writes alone.
        longest: most tokens of a response.

    Returns:
        The ids of each response, the end token included where it ended.

    Raises:
        ArgumentError: the target is none of transformers.
    """
    from transformers import GenerationConfig

    if not isinstance(model.target, TransformersTarget):
        raise ArgumentError(
            f"Texts without a grammar (code, chat) are written by a model of transformers; the target is a "
            f"{type(model.target).__name__}. Leave these prompts out, or pass documents as shards."
        )
    width, ends = max(map(len, prompts)), model.vocabulary.end_ids
    fill = ends[0] if ends else 0
    ids = torch.tensor([[fill] * (width - len(prompt)) + list(prompt) for prompt in prompts])
    there = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    drawn = (
        {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
    )
    config = GenerationConfig(
        **drawn,
        max_new_tokens=longest,
        eos_token_id=list(ends) or None,
        pad_token_id=fill,
    )
    device = model.target.device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        written = model.target.model.generate(
            ids.to(device), attention_mask=there.to(device), generation_config=config
        )
    return [_ended(row, ends) for row in written[:, width:].tolist()]


def _ended(response: list[int], ends: Sequence[int]) -> tuple[int, ...]:
    stop = next((place for place, token in enumerate(response) if token in ends), len(response))
    return tuple(response[: stop + 1])
