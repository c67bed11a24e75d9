"""Drafter: who guesses the tokens that the target will choose."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from xpress_struct.drafting.control import DraftControl
from xpress_struct.errors import TokenizerMismatchError
from xpress_struct.origins import Origin
from xpress_struct.results import Stats
from xpress_struct.sampling import Noise, Rule, SamplingParams

if TYPE_CHECKING:
    from torch import Tensor

    from xpress_struct.constraints.matcher import Matcher
    from xpress_struct.constraints.vocabulary import Vocabulary
    from xpress_struct.target.target import Target

__all__ = [
    "Draft",
    "DraftContext",
    "DraftSession",
    "Drafter",
    "TappedSession",
    "draft_params",
    "same_vocabulary",
]


@dataclass(frozen=True, slots=True)
class DraftContext:
    """What a drafter knows of a request.

    Attributes:
        prompt: ids of the prompt, the answer's prefix included.
        vocabulary: of the target.
        params, rule: how the target's tokens are drawn and accepted.
        target: whose tokens are guessed.
        control: how to draft.
        stats: where the drafter counts its passes, repairs and seconds.
        timed: whether measured seconds may decide what is drafted: never but under the coupled rule.
    """

    prompt: tuple[int, ...]
    vocabulary: Vocabulary
    params: SamplingParams
    rule: Rule
    target: Target
    control: DraftControl = field(default_factory=DraftControl)
    stats: Stats = field(default_factory=Stats)
    timed: bool = False


def draft_params(context: DraftContext, *, independent: bool = False) -> SamplingParams:
    """How a draft's tokens are drawn: as the target's, but for the draft temperature.

    A greedy request has no noise to draw with, so its drafts are greedy too.

    Args:
        independent: slots do not know what is drawn to their left. Draws of their own would not fit together
            (some 1.2 tokens a round), so by default they are drafted by argmax; under the coupled rule
            they share the target's noise, and keep its temperature.
    """
    asked = context.control.draft_temperature
    if asked is None and independent and context.rule != "coupled":
        asked = 0.0
    if asked is None or context.params.greedy:
        return context.params
    return replace(context.params, temperature=asked)


def same_vocabulary(drafter: Vocabulary, target: Vocabulary) -> None:
    """Checks that every id of a drafter spells what it spells for the target.

    Raises:
        TokenizerMismatchError: it does not.
    """
    mine, theirs = drafter.tokens, target.tokens
    if mine != theirs:
        place = next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), None)
        where = f"{len(mine)} and {len(theirs)} ids" if place is None else f"first at id {place}"
        raise TokenizerMismatchError(
            f"Drafter and target do not share a vocabulary ({where}); take a smaller model of the "
            "same family."
        )


class Draft(NamedTuple):
    """A guess at the next K tokens.

    Attributes:
        tokens: K ids, possibly none.
        q: float64 [K, V], what each token was drawn from; None when the draft is not random.
        matched: bytes of context that a looked-up draft rests on.
        report: slots whose distribution the drafter told, and the sums [2] of its confidence and entropy over
            them; they are read once the round has waited for the device.
        expected: how many of its tokens that the grammar does not force should stand, by the drafter's own
            probabilities; None where nobody asked, or a device would have to be waited for.
        origin: where the tokens came from.
        repaired: places of those that a refinement changed; their origin is "repaired".
    """

    tokens: list[int]
    q: Tensor | None = None
    matched: int = 0
    report: tuple[int, Tensor] | None = None
    expected: float | None = None
    origin: Origin = "drafted"
    repaired: Collection[int] = ()

    def origin_of(self, place: int) -> Origin:
        """Where the token at a place of the draft came from."""
        return "repaired" if place in self.repaired else self.origin


class DraftSession(Protocol):
    """A drafter's state for one request."""

    def propose(
        self, output: Sequence[int], room: int, matcher: Matcher, noise: Noise, drafted: int = 0
    ) -> Draft:
        """Guesses what follows.

        Whether a slot is offered, and from which q, may depend only on the tokens and the noise
        before it, on drafts that are not random, and on past rounds: else the token-level and block
        rules are biased.

        Args:
            output: the committed output tokens, and in a later call of the same round the drafted ones
                behind them.
            room: how many guesses the round takes. A token that the grammar forces is none, so a drafter that
                fills a block at once offers all its slots up to where so many are open.
            matcher: a matcher at that place, to read from; it is given back at the same place.
            noise: the round's noise, for drafts that are random.
            drafted: how many tokens at the end of `output` are drafted ones.
        """


class TappedSession(DraftSession, Protocol):
    """The session of a drafter that has taps."""

    def read(self, states: Tensor) -> None:
        """Takes the target's hidden states of the tokens that a round has put into its cache to stay.

        Args:
            states: [tokens, taps * d], the tapped layers side by side.
        """


class Drafter(Protocol):
    """Makes a session per request; shared by threads.

    Attributes:
        resumes: True when a round may ask again after what was offered, so that the grammar's forced runs
            stand between guesses.
        name: for statistics and messages.
        taps: layers of the target whose outputs the session reads, counted from 0; often none.
        longest: most guesses that an adapted block asks it for.
        honours: names of the `DraftControl` fields that it follows.
    """

    resumes: bool
    name: str
    taps: tuple[int, ...]
    longest: int
    honours: frozenset[str]

    def begin(self, context: DraftContext) -> DraftSession:
        """Starts a request.

        Raises:
            DrafterMismatchError, TokenizerMismatchError: it does not fit the target.
        """
