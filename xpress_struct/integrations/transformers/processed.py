"""Logits processors of transformers on a target: they change the logits before the mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import (
    GenerationConfig,
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from xpress_struct.target.cache import TargetCache
from xpress_struct.target.target import TransformersTarget

__all__ = ["ProcessedTarget", "Processor", "is_outlines", "processors_before_mask"]

Processor = Callable[[Tensor, Tensor], Tensor]


def processors_before_mask(processors: Sequence[Processor], config: GenerationConfig) -> list[Processor]:
    """The processors of a `generate` call without those that `generate` made of the sampling arguments: these
    follow the mask, and are the decoder's."""
    made: list[type] = []
    if config.do_sample:
        made = [
            kind
            for kind, used in (
                (TemperatureLogitsWarper, config.temperature not in (None, 1.0)),
                (TopKLogitsWarper, bool(config.top_k)),
                (TopPLogitsWarper, config.top_p is not None and config.top_p < 1),
                (MinPLogitsWarper, config.min_p is not None),
            )
            if used
        ]
    kept: list[Processor] = []
    # They stand at the end; a caller's own of the same kind stand before them.
    for processor in reversed(processors):
        if type(processor) in made:
            made.remove(type(processor))
        else:
            kept.insert(0, processor)
    return kept


def is_outlines(processor: Any) -> bool:
    """Whether a processor is one of Outlines', which count their calls and so cannot go back."""
    return any(kind.__module__.partition(".")[0] == "outlines" for kind in type(processor).__mro__)


class ProcessedTarget(TransformersTarget):
    """A target whose logits pass through processors, for one request.

    A token that a processor bars keeps the least float32: the constraint comes first, so that a barred token
    is still taken where nothing else is legal.

    Args:
        target: the model as it is.
        processors: functions of ids [1, n] and scores [1, V].
        padding: what stands before the prompt in the caller's batch.
        device: where the processors expect ids and scores.
    """

    def __init__(
        self,
        target: TransformersTarget,
        processors: Sequence[Processor],
        padding: Sequence[int],
        device: torch.device,
    ) -> None:
        super().__init__(target.model)
        self._whole = target
        self._processors = LogitsProcessorList(_without_padding(each, len(padding)) for each in processors)
        self._padding, self._processors_device = list(padding), device
        self._ids: list[int] = []

    def new_cache(self, taps: Sequence[int] = ()) -> TargetCache:
        # One set of hooks for a model.
        cache = self._whole.new_cache(taps)
        self._taps = self._whole._taps
        return cache

    def score(self, cache: TargetCache, ids: Sequence[int], rows: int) -> Tensor:
        self._ids[cache.lengths[0] :] = ids
        logits = super().score(cache, ids, rows)
        read = torch.tensor([self._padding + self._ids], device=self._processors_device)
        first = read.shape[1] - rows + 1
        kept = [self._process(read[:, : first + row], logits[row : row + 1]) for row in range(rows)]
        return torch.cat(kept).to(logits.device)

    def _process(self, ids: Tensor, logits: Tensor) -> Tensor:
        # A copy may be changed in place, which a processor may do.
        scores = logits.to(self._processors_device, copy=True)
        most = torch.finfo(torch.float32).max
        processed: Tensor = self._processors(ids, scores).float().clamp(-most, most)
        return processed


def _without_padding(processor: Any, padding: int) -> Processor:
    """Padding is no repetition: a penalty of `generate` counts it, or knows of it for a whole batch only."""
    made_by_generate = isinstance(processor, RepetitionPenaltyLogitsProcessor) and not isinstance(
        getattr(processor, "prompt_ignore_length", None), int
    )
    if not made_by_generate:
        return processor  # type: ignore[no-any-return]
    alone: Processor = RepetitionPenaltyLogitsProcessor(processor.penalty)
    return lambda input_ids, scores: alone(input_ids[:, padding:], scores)
