"""What is under test: a way of decoding, as a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.model import Model
from xpress_struct.sampling import Rule

__all__ = ["Ask", "Decode", "plain", "speculative"]


@dataclass(frozen=True, slots=True)
class Ask:
    """One output that is asked for: how it is to be accepted and drawn, how long, from which seed."""

    rule: Rule
    temperature: float
    max_new_tokens: int
    seed: int


Decode = Callable[[Model, Sequence[int], "Constraint | None", Ask], Sequence[int]]
"""Model, prompt ids, constraint, what is asked -> output ids, the end token included."""


def speculative(drafter: Any) -> Decode:
    """The library's own decoding with a drafter; the guard is off, so that it always drafts."""

    def decode(model: Model, prompt: Sequence[int], constraint: Constraint | None, ask: Ask) -> Sequence[int]:
        return model.generate(
            list(prompt),
            constraint,
            drafter=drafter,
            guard=False,
            acceptance=ask.rule,
            temperature=ask.temperature,
            max_new_tokens=ask.max_new_tokens,
            seed=ask.seed,
            max_retries=0,
        ).token_ids

    return decode


plain: Decode = speculative(None)
"""The library's own decoding without a drafter."""
