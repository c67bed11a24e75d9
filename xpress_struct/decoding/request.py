"""What one generation was asked to do, and a draft as it goes to the target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

from xpress_struct.origins import Origin
from xpress_struct.sampling import NoiseKey, Rule, SamplingParams

__all__ = ["Block", "Request"]


@dataclass(frozen=True, slots=True)
class Request:
    """What one generation was asked to do.

    Attributes:
        prompt: ids of the prompt, the answer's prefix included.
        end_ids: ids that end the text.
        deadline: `time.perf_counter` value after which no round starts.
        cancelled: asked before each round.
        logprobs: number of likeliest tokens to report per place; None reports nothing.
        closes: close the text when the budget ends, rather than cut it.
    """

    prompt: tuple[int, ...]
    end_ids: tuple[int, ...]
    params: SamplingParams
    key: NoiseKey
    rule: Rule = "coupled"
    max_new_tokens: int = 1024
    deadline: float | None = None
    cancelled: Callable[[], bool] = lambda: False
    logprobs: int | None = None
    closes: bool = False


@dataclass(slots=True)
class Block:
    """A draft as it goes to the target: guesses with the forced runs between them."""

    tokens: list[int] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)  # per token
    legal: int = 0  # how many are legal in a row; one more is offered where a drawn one is illegal
    guessed: list[int] = field(default_factory=list)  # slots that are guesses
    q: list[Tensor | None] = field(default_factory=list)  # per token; None where it was not drawn
    ends: bool = False  # the last legal one is an end token
    sent: int = 0  # how many the target must see: no illegal one, no end token
