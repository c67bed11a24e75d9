"""Costs of a round, measured with a real model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

from xpress_struct.lab.simulate.costs import RoundCosts
from xpress_struct.model import Model

__all__ = ["measure_costs"]

_PROMPT = "one two three four five six seven eight nine ten " * 8
_TOKENS = 32


def measure_costs(model: Model, sizes: Sequence[int] = (1, 2, 4, 8, 16, 32), repeats: int = 3) -> RoundCosts:
    """Milliseconds of this model's forwards behind a prompt of some 80 words, and of its drafter's steps.

    Args:
        sizes: tokens of a forward.
        repeats: of each; the median counts.
    """
    target, prompt = model.target, model.vocabulary.encode(_PROMPT)
    score = {}
    for size in sizes:
        seconds = []
        for _ in range(repeats + 1):
            cache = target.new_cache()
            target.score(cache, prompt, 1)
            started = time.perf_counter()
            # The transfer waits for a device.
            target.score(cache, prompt[:size], size).argmax(-1).tolist()
            seconds.append(time.perf_counter() - started)
        score[size] = 1e3 * median(seconds[1:])
    draft = refine = 0.0
    if model.drafter is not None:
        # Once to warm up.
        for _ in range(2):
            stats = model.generate(list(prompt), guard=False, max_new_tokens=_TOKENS, temperature=0).stats
        draft = 1e3 * stats.draft_s / stats.forwards
        refine = 1e3 * stats.refine_s / max(1, stats.refine_passes)
    return RoundCosts("measured", score, draft, refine)
