"""Guard: goes without a drafter where drafting costs more than it saves.

A drafter that guesses badly costs its own time and rows of the target that are scored in vain. The
guard steps down a ladder: the drafter, lookup, no draft at all; and looks again now and then, since a
text changes. Under the coupled rule no choice can change a token, so measured seconds decide. Under
the others the tokens drawn depend on what was offered, and a run must repeat itself: counts decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xpress_struct.results import Stats
from xpress_struct.sampling import Rule

__all__ = ["Guard"]

T = TypeVar("T")

# Rounds that a step is watched before it is judged, and rounds on a lower step before a new look.
_WATCHED, _SETTLED = 4, 32
# Guesses that must stand per round for a draft to be worth its rows, where seconds do not decide.
_WORTH = 0.3
# A forward without a draft costs at least this share of one with a draft: both read all weights. A step that
# beats even that needs no trial of the steps below it.
_CHEAPEST = 0.5
_KEEP = 0.8


class _Step:
    """What one step of the ladder gave: decayed means by round."""

    def __init__(self) -> None:
        self.rounds = 0
        self._means = (0.0, 0.0, 0.0, 0.0)

    def note(self, *values: float) -> None:
        keep = _KEEP if self.rounds else 0.0
        self.rounds += 1
        pairs = zip(self._means, values, strict=True)
        self._means = tuple(mean + (1 - keep) * (value - mean) for mean, value in pairs)  # type: ignore[assignment]

    @property
    def stood(self) -> float:
        return self._means[0]

    @property
    def rate(self) -> float:
        """Tokens per second."""
        return self._means[1] / max(self._means[2], 1e-9)

    @property
    def safe_rate(self) -> float:
        """Tokens per second that no draft at all cannot surpass."""
        return 1 / max(_CHEAPEST * self._means[3], 1e-9)


class Guard:
    """Chooses who guesses, round by round.

    Args:
        active: False always takes the drafter.
        rule: the acceptance rule, which says whether seconds may decide.
        stats: counts the rounds in which the drafter was held back.
    """

    def __init__(self, active: bool, rule: Rule, stats: Stats) -> None:
        self._active, self._timed, self._stats = active, rule == "coupled", stats
        self._steps: list[_Step] = []
        self._at = 0
        self._left = _WATCHED
        self._settled = False
        self._prefilled = False

    def choose(self, ladder: Sequence[T]) -> T | None:
        """The guesser of the next round; None drafts nothing."""
        if not ladder:
            return None
        if not self._steps:
            self._steps = [_Step() for _ in range(len(ladder) + 1)]
        self._stats.guarded += self._at > 0
        return ladder[self._at] if self._at < len(ladder) else None

    def learn(self, stood: int, emitted: int, seconds: float, scored: float) -> None:
        """Notes the round that was chosen for, and decides on the next.

        Args:
            stood: guesses that stood.
            emitted: tokens that the round gave.
            seconds, scored: of the whole round, and of the target's forward in it.
        """
        if not self._active or not self._steps:
            return
        if not self._prefilled:  # the first forward read the whole prompt
            self._prefilled = True
            return
        self._steps[self._at].note(stood, emitted, seconds, scored)
        self._left -= 1
        if self._left <= 0:
            self._decide()

    def _decide(self) -> None:
        if self._settled:
            self._go(0, _WATCHED)
            return
        here = self._steps[self._at]
        if not self._timed:
            if self._at == 0 and here.stood >= _WORTH:
                self._go(0, 1)
            elif here.stood >= _WORTH or self._at == len(self._steps) - 1:
                self._go(self._at, _SETTLED, settled=True)
            else:
                self._go(self._at + 1, _WATCHED)
            return
        if self._at == 0 and here.rate >= here.safe_rate:
            self._go(0, 1)
            return
        untried = next((i for i, step in enumerate(self._steps) if not step.rounds), None)
        if untried is not None:
            self._go(untried, _WATCHED)
            return
        best = max(range(len(self._steps)), key=lambda i: self._steps[i].rate)
        self._go(best, _SETTLED if best else 1, settled=best > 0)

    def _go(self, step: int, rounds: int, *, settled: bool = False) -> None:
        self._at, self._left, self._settled = step, rounds, settled
