"""What a round costs: milliseconds of a draft, of a refinement pass and of a forward by its size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from xpress_struct.errors import ArgumentError
from xpress_struct.lab.simulate.rounds import Measured

__all__ = ["CPU", "GPU", "RoundCosts", "read_costs", "replaced"]


@dataclass(frozen=True, slots=True)
class RoundCosts:
    """Milliseconds, or any unit.

    Attributes:
        name: for the table.
        score: of a target forward, by its number of tokens; other numbers lie on the line through the two
            nearest. One number alone holds for all.
        draft: of the drafter's forward over a block.
        refine: of one refinement pass.

    Raises:
        ArgumentError: there is no cost of a forward, or a cost is negative.
    """

    name: str
    score: Mapping[int, float]
    draft: float = 0.0
    refine: float = 0.0

    def __post_init__(self) -> None:
        if not self.score or min(self.score) < 1 or min(self.score.values()) <= 0:
            raise ArgumentError("score: give the cost of a forward over 1 token or more, above 0.")
        if min(self.draft, self.refine) < 0:
            raise ArgumentError(f"draft={self.draft}, refine={self.refine}: a cost is 0 or more.")

    def forward(self, tokens: int) -> float:
        """Cost of a forward over so many tokens."""
        sizes = sorted(self.score)
        if len(sizes) == 1:
            return self.score[sizes[0]]
        small, large = next((pair for pair in pairwise(sizes) if tokens <= pair[1]), tuple(sizes[-2:]))
        slope = (self.score[large] - self.score[small]) / (large - small)
        return self.score[small] + slope * (tokens - small)

    def round(self, length: int, passes: float) -> float:
        """Cost of a round of K guesses; of one without any when K = 0."""
        if length == 0:
            return self.forward(1)
        return self.draft + passes * self.refine + self.forward(length + 1)

    def per_token(self, measured: Measured) -> float:
        """Cost of a token over the rounds that were run."""
        scored = sum(self.forward(size) * count for size, count in measured.sizes.items())
        return (scored + measured.rounds * self.draft + measured.passes * self.refine) / measured.tokens

    def plain_per_token(self, measured: Measured) -> float:
        """Cost of a token of the same text without a drafter: what a grammar forces costs no forward
        there either."""
        return self.forward(1) * (1 - measured.only / measured.tokens)


CPU = RoundCosts("cpu", {1: 120.0, 8: 270.0, 16: 290.0}, draft=0.0, refine=0.0)
"""Forwards of the embedded model on two CPU threads, measured; what a drafter costs is left to be given."""

GPU = RoundCosts("gpu", {1: 1.0}, draft=5 / 36, refine=0.01)
"""What if forwards cost the same whatever their size, in target forwards: a drafter of 5 layers for a target
of 36 (Qwen3-8B-DFlash-b16), and a pass of a hundredth, both by assumption. Nothing of it was measured."""


def read_costs(named: str) -> RoundCosts:
    """Costs by name ("cpu", "gpu"), or from a JSON file: `{"score": {"1": 12.0}, "draft": 3, "refine": 1}`.

    Raises:
        ArgumentError: the file cannot be read, or is of another form.
    """
    return {"cpu": CPU, "gpu": GPU}.get(named) or _read(named)


def replaced(costs: RoundCosts, draft: float | None, refine: float | None) -> RoundCosts:
    """The same with another cost of the draft, of the pass, or both."""
    return replace(
        costs,
        draft=costs.draft if draft is None else draft,
        refine=costs.refine if refine is None else refine,
    )


def _read(path: str) -> RoundCosts:
    try:
        given: Any = json.loads(Path(path).read_text(encoding="utf-8"))
        score = {int(size): float(cost) for size, cost in given["score"].items()}
        return RoundCosts(Path(path).stem, score, float(given.get("draft", 0)), float(given.get("refine", 0)))
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArgumentError(
            f'The costs {path!r} are not "cpu", "gpu" or a file of {{"score": {{"1": ms, "8": ms}}, '
            f'"draft": ms, "refine": ms}}: {error}'
        ) from None
