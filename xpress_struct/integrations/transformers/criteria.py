"""Stopping criteria of a `generate` call: which of them must be asked token by token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformers import GenerationConfig, MaxLengthCriteria, StoppingCriteriaList
from transformers.generation import EosTokenCriteria

__all__ = ["watched_criteria"]


def watched_criteria(
    criteria: Sequence[Any], config: GenerationConfig, end_ids: Sequence[int]
) -> StoppingCriteriaList:
    """The criteria without those that the decoder follows by itself: its limit and end tokens."""
    return StoppingCriteriaList(each for each in criteria if not _followed(each, config, end_ids))


def _followed(criterion: Any, config: GenerationConfig, end_ids: Sequence[int]) -> bool:
    if type(criterion) is MaxLengthCriteria:
        return bool(criterion.max_length == config.max_length)
    if type(criterion) is EosTokenCriteria:
        return {*criterion.eos_token_id.tolist()} == {*end_ids}
    return False
