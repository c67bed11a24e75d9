"""Drafter: who guesses the tokens that the target will choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from torch import Tensor

    from xpress_struct.constraints.matcher import Matcher
    from xpress_struct.constraints.vocabulary import Vocabulary

__all__ = ["Draft", "DraftSession", "Drafter"]


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

    def propose(self, output: Sequence[int], room: int, matcher: Matcher) -> Draft:
        """Guesses what follows.

        Whether a slot is offered, and from which q, may depend only on the tokens and the noise
        before it: else the token-level and block rules are biased.

        Args:
            output: the committed output tokens, and in front of a later call of the same round the
                drafted ones.
            room: how many tokens may be offered.
            matcher: a matcher at that place, to read from; it is given back at the same place.
        """


class Drafter(Protocol):
    """Makes a session per request; shared by threads.

    Attributes:
        resumes: True when the draft is not random and cheap, so that the round may ask again after
            a forced run inside a block.
        name: for statistics and messages.
    """

    resumes: bool
    name: str

    def begin(self, prompt: Sequence[int], prefix: str, vocabulary: Vocabulary) -> DraftSession:
        """Starts a request whose prompt has these ids and whose answer begins with `prefix`."""
