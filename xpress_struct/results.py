"""What a generation gives back: the text, its value, and what it cost."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import zip_longest
from typing import Any, Literal, TextIO

from xpress_struct.display import as_html, as_terminal, is_notebook, show_html, takes_colours
from xpress_struct.errors import IncompleteOutputError
from xpress_struct.origins import Origin, Piece, counted, cut

__all__ = ["FinishReason", "Generation", "Stats", "TokenLogprobs", "timed"]

FinishReason = Literal["stop", "stop_string", "closed", "length", "timeout", "cancelled"]


@dataclass(slots=True)
class Stats:
    """Counts and seconds of one generation.

    Attributes:
        prompt_tokens: tokens of the prompt.
        output_tokens: tokens emitted, forced ones and the end token included.
        forwards: forward passes of the target, the one over the prompt included.
        forced: emitted tokens that were the only legal one, so that nothing was drawn.
        proposed: guesses of the drafter that the target checked; forced tokens do not count.
        accepted: of those, how many stood.
        drafter: name of the drafter, or "none" with the reason in `no_speculation`.
        acceptance: "coupled", "token" or "block".
        proposed_by_slot, accepted_by_slot: the same by place in the draft.
        rounds_by_accepted: i -> rounds in which exactly i draft tokens stood.
        guarded: rounds in which the guard held the drafter back: it cost more than it saved.
        refine_passes: passes of the refinement over all blocks.
        repairs_by_slot: illegal tokens that the refinement replaced, by place in the block.
        drafted: slots whose distribution the drafter told; the next two are sums over them.
        confidence_sum: probability that the drafter gave its likeliest token.
        entropy_sum: entropy of the drafter's distribution, in nats.
        retries: resampled generations after a failed final check; their work is in all counts.
        seed: the seed in use; with it a sampled result can be drawn again.
        draft_s, refine_s, walk_s, mask_s, score_s, accept_s, compile_s: seconds by step; none counts twice.
        first_token_s: seconds from the call to the first token that needed the target.
        total_s: seconds of the whole call.
        peak_memory_bytes: peak of the GPU's allocator, or of the process (resident set) on CPU.
    """

    prompt_tokens: int = 0
    output_tokens: int = 0
    forwards: int = 0
    forced: int = 0
    proposed: int = 0
    accepted: int = 0
    drafter: str = "none"
    no_speculation: str | None = None
    acceptance: str = "coupled"
    proposed_by_slot: list[int] = field(default_factory=list)
    accepted_by_slot: list[int] = field(default_factory=list)
    rounds_by_accepted: list[int] = field(default_factory=list)
    guarded: int = 0
    refine_passes: int = 0
    repairs_by_slot: list[int] = field(default_factory=list)
    drafted: int = 0
    confidence_sum: float = 0.0
    entropy_sum: float = 0.0
    retries: int = 0
    seed: int | None = None
    draft_s: float = 0.0
    refine_s: float = 0.0
    walk_s: float = 0.0
    mask_s: float = 0.0
    score_s: float = 0.0
    accept_s: float = 0.0
    compile_s: float = 0.0
    first_token_s: float | None = None
    total_s: float = 0.0
    peak_memory_bytes: int | None = None

    @property
    def tokens_per_forward(self) -> float:
        """Emitted tokens by forward pass of the target."""
        return self.output_tokens / self.forwards if self.forwards else float(self.output_tokens)

    @property
    def acceptance_length(self) -> float:
        """Mean tokens by round: accepted guesses and the one that the target adds (the bonus)."""
        return 1 + self.accepted / self.forwards if self.forwards else 0.0

    @property
    def acceptance_rate(self) -> float:
        """Accepted by proposed draft tokens; 0 when none was proposed."""
        return self.accepted / self.proposed if self.proposed else 0.0

    @property
    def guard_share(self) -> float:
        """Share of the rounds in which the guard held the drafter back."""
        return self.guarded / self.forwards if self.forwards else 0.0

    @property
    def draft_confidence(self) -> float:
        """Mean probability that the drafter gave its likeliest token; far above `acceptance_rate`, it is
        over-confident."""
        return self.confidence_sum / self.drafted if self.drafted else 0.0

    @property
    def draft_entropy(self) -> float:
        """Mean entropy of the drafter's distributions, in nats."""
        return self.entropy_sum / self.drafted if self.drafted else 0.0

    @property
    def tokens_per_s(self) -> float:
        """Emitted tokens by second of the whole call."""
        return self.output_tokens / self.total_s if self.total_s else 0.0

    @property
    def grammar_share(self) -> float:
        """Mask, walk and compile time as a share of the whole."""
        spent = self.mask_s + self.walk_s + self.compile_s
        return spent / self.total_s if self.total_s else 0.0

    def note_round(self, proposed: int, accepted: int) -> None:
        """Counts one round of the target."""
        self.forwards += 1
        self.proposed += proposed
        self.accepted += accepted
        _count(self.proposed_by_slot, range(proposed))
        _count(self.accepted_by_slot, range(accepted))
        _count(self.rounds_by_accepted, [accepted])

    def note_draft(
        self, passes: int, repairs: Iterable[int], slots: int, confidence: float, entropy: float
    ) -> None:
        """Counts one block's refinement: sums of confidence and entropy over its slots."""
        self.refine_passes += passes
        _count(self.repairs_by_slot, repairs)
        self.drafted += slots
        self.confidence_sum += confidence
        self.entropy_sum += entropy

    def add_discarded(self, earlier: Stats) -> None:
        """Counts the work of a discarded attempt into this one; only its output does not count."""
        self.retries = earlier.retries + 1
        for name in (*_COUNTS, *_SECONDS):
            setattr(self, name, getattr(self, name) + getattr(earlier, name))
        for name in _BY_PLACE:
            pairs = zip_longest(getattr(self, name), getattr(earlier, name), fillvalue=0)
            setattr(self, name, [mine + theirs for mine, theirs in pairs])
        self.first_token_s = earlier.first_token_s

    def as_dict(self) -> dict[str, Any]:
        """Every count, time and rate under its name, for a metrics system or JSON."""
        return asdict(self) | {name: getattr(self, name) for name in _RATES}


_COUNTS = (
    "forwards",
    "forced",
    "proposed",
    "accepted",
    "guarded",
    "refine_passes",
    "drafted",
    "confidence_sum",
    "entropy_sum",
)
_SECONDS = ("draft_s", "refine_s", "walk_s", "mask_s", "score_s", "accept_s", "compile_s", "total_s")
_BY_PLACE = ("proposed_by_slot", "accepted_by_slot", "rounds_by_accepted", "repairs_by_slot")
_RATES = (
    "tokens_per_forward",
    "acceptance_length",
    "acceptance_rate",
    "tokens_per_s",
    "grammar_share",
    "guard_share",
    "draft_confidence",
    "draft_entropy",
)


@contextmanager
def timed(stats: Stats, name: str) -> Iterator[None]:
    """Adds the seconds inside to a field of the statistics."""
    started = time.perf_counter()
    try:
        yield
    finally:
        setattr(stats, name, getattr(stats, name) + time.perf_counter() - started)


def _count(counts: list[int], places: Iterable[int]) -> None:
    """Adds one at each place; the list grows as needed."""
    for place in places:
        counts.extend([0] * (place + 1 - len(counts)))
        counts[place] += 1


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """Log-probability of an emitted token: log-softmax of the masked logits, before temperature.

    Attributes:
        token_id: the emitted token.
        logprob: its log-probability; 0.0 for a forced one.
        top: the likeliest tokens and their log-probabilities, best first.
    """

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Generation:
    """A finished generation.

    Attributes:
        text: the answer, `prefix` included, without the end token.
        token_ids: the emitted tokens, without prompt and prefix; an end token is the last.
        finish_reason: "stop" (end token, or nothing can follow), "stop_string", "closed" (whole, but the
            budget ended it: `on_limit="close"`), or why it was cut: "length", "timeout", "cancelled".
        stats: what it cost.
        logprobs: one entry per emitted token, when asked for.
        thinking: the text of the thinking block; None where none was asked for.
        origins: where each emitted token came from; see `Origin`. Those looked up, drafted and repaired are
            `stats.accepted`, but for guesses that stood behind a stop string; the forced ones are
            `stats.forced`. The stats also count what discarded attempts did.
    """

    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    stats: Stats
    logprobs: tuple[TokenLogprobs, ...] | None = None
    thinking: str | None = None
    origins: tuple[Origin, ...] = field(default=(), repr=False)
    _parse: Callable[[str], Any] = field(default=str, repr=False)
    _ends: tuple[int, ...] = field(default=(), repr=False)

    @property
    def complete(self) -> bool:
        """False when the output was cut: by the token budget, a timeout or a cancellation."""
        return self.finish_reason in ("stop", "stop_string", "closed")

    @cached_property
    def value(self) -> Any:
        """The parsed and validated value; the text itself without a constraint.

        Raises:
            IncompleteOutputError: the output was cut, so there is no value.
            OutputValidationError: the complete text failed its final check.
        """
        if not self.complete:
            raise IncompleteOutputError(
                f"The output was cut ({self.finish_reason}) after {len(self.token_ids)} tokens: "
                f"...{self.text[-60:]!r}. Raise max_new_tokens or timeout; the partial text is in "
                "`.text`.",
                text=self.text,
                token_ids=self.token_ids,
                finish_reason=self.finish_reason,
            )
        return self._parse(self.text)

    def pieces(self) -> list[Piece]:
        """The text cut by token, each piece with its origin; together they are exactly `text`.

        The text that the answer began with is a piece of origin "prefix". A character that several tokens
        spell belongs to the last of them; a token that adds no text, like the end token, has no piece.
        """
        return cut(self.text, self._ends or (len(self.text),), self.origins)

    def show(self, file: TextIO | None = None) -> None:
        """Shows the text coloured by where each token came from, with counts that explain the colours.

        In a notebook as HTML, else with the colours of a terminal. Without colours where the output is no
        terminal, or where the variable NO_COLOR is set.

        Args:
            file: where to print; None takes the notebook's cell or stdout.
        """
        if file is None and is_notebook():
            show_html(self._repr_html_())
            return
        file = file or sys.stdout
        print(as_terminal(self.pieces(), counted(self.origins), colours=takes_colours(file)), file=file)

    def _repr_html_(self) -> str:
        return as_html(self.pieces(), counted(self.origins))
