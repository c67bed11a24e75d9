"""Drafter: who guesses the tokens that the target will choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from xpress_struct.sampling import NoiseKey, Rule, SamplingParams

if TYPE_CHECKING:
    from torch import Tensor

    from xpress_struct.constraints.matcher import Matcher
    from xpress_struct.constraints.vocabulary import Vocabulary

__all__ = ["Draft", "DraftContext", "DraftSession", "Drafter"]


@dataclass(frozen=True, slots=True)
class DraftContext:
    """What a drafter knows of a request.

    Attributes:
        prompt: ids of the prompt, the answer's prefix included.
        vocabulary: of the target.
        params, rule: how the target's tokens are drawn and accepted.
    """

    prompt: tuple[int, ...]
    vocabulary: Vocabulary
    params: SamplingParams
    rule: Rule


class Draft(NamedTuple):
    """A guess at the next K tokens.

    Attributes:
        tokens: K ids, possibly none.
        q: float64 [K, V], what each token was drawn from; None when the draft is not random.
    """

    tokens: list[int]
    q: Tensor | None = None


class DraftSession(Protocol):
    """A drafter's state for one request."""

    def propose(self, output: Sequence[int], room: int, matcher: Matcher, key: NoiseKey) -> Draft:
        """Guesses what follows.

        Whether a slot is offered, and from which q, may depend only on the tokens and the noise
        before it: else the token-level and block rules are biased.

        Args:
            output: the committed output tokens, and in a later call of the same round the drafted ones
                behind them.
            room: how many tokens may be offered.
            matcher: a matcher at that place, to read from; it is given back at the same place.
            key: the round's noise, for drafts that are random.
        """


class Drafter(Protocol):
    """Makes a session per request; shared by threads.

    Attributes:
        resumes: True when a round may ask again after what was offered, so that the grammar's forced runs
            stand between guesses.
        name: for statistics and messages.
    """

    resumes: bool
    name: str

    def begin(self, context: DraftContext) -> DraftSession:
        """Starts a request."""
