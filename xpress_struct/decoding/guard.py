"""Guard: goes without a drafter where drafting costs more than it saves.

A drafter that guesses badly costs its own time and rows of the target that are scored in vain. The
guard steps down a ladder: the drafter, lookup, no draft at all; and looks again now and then, since a
text changes. Under the coupled rule no choice can change a token, so measured seconds decide, and a
request starts with what others have shown. Under the other rules the tokens drawn depend on what was
offered, and a run must repeat itself: counts decide, those of the request.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Protocol, TypeVar

from xpress_struct.decoding.costs import Costs
from xpress_struct.results import Stats
from xpress_struct.sampling import Rule

__all__ = ["Guard", "History"]


class _Named(Protocol):
    name: str


T = TypeVar("T", bound=_Named)

# Rounds that a step is watched before it is judged; rounds on a lower step before a new look, at first and
# at most: a drafter that fails again is left alone for longer.
_WATCHED, _SOON, _LATE = 4, 8, 32
# Guesses that must stand per round for a draft to be worth its rows, where seconds do not decide.
_WORTH = 0.3
# A drafter goes on when it is slower by no more than what measuring may be wrong by.
_TOLERANCE = 0.95
# Weight of what was, in the means of a request and in those of all requests.
_KEEP, _KEEP_LONG = 0.8, 0.95


class _Step:
    """Decayed means by round of one step of the ladder."""

    def __init__(self, keep: float) -> None:
        self.keep, self._rounds = keep, 0
        self.stood = self.pending = self.sent = self.overhead = 0.0

    def note(self, stood: int, pending: int, sent: int, overhead: float) -> None:
        new = 1 - self.keep if self._rounds else 1.0
        self._rounds += 1
        self.stood += new * (stood - self.stood)
        self.pending += new * (pending - self.pending)
        self.sent += new * (sent - self.sent)
        self.overhead += new * (overhead - self.overhead)

    def pays(self, costs: Costs | None) -> bool:
        """Whether guesses give more tokens per second than a round without them would.

        Tokens that the grammar forces come free either way: a round gives what stood and one more.
        """
        drafted = costs and costs.seconds(self.pending + self.sent)
        plain = costs and costs.seconds(self.pending)
        if not drafted or not plain:  # no seconds to go by, or none of forwards of this size
            return self.stood >= _WORTH
        return (1 + self.stood) / (drafted + self.overhead) >= _TOLERANCE / plain


class History:
    """Means by round of each drafter, over all requests of a model."""

    def __init__(self) -> None:
        self._of: dict[str, _Step] = {}

    def begin(self, name: str) -> _Step:
        """A request's means, as far as others have shown."""
        step = copy.copy(self._of.get(name, _Step(_KEEP)))
        step.keep = _KEEP
        return step

    def note(self, name: str, stood: int, pending: int, sent: int, overhead: float) -> None:
        """Adds a round."""
        self._of.setdefault(name, _Step(_KEEP_LONG)).note(stood, pending, sent, overhead)


class Guard:
    """Chooses who guesses, round by round.

    Args:
        active: False always takes the drafter.
        rule: the acceptance rule, which says whether seconds may decide.
        costs: of the target's forwards.
        stats: counts the rounds in which the drafter was held back.
        history: of the model's requests.
    """

    def __init__(self, active: bool, rule: Rule, costs: Costs, stats: Stats, history: History) -> None:
        self._active, self._costs, self._stats = active, costs, stats
        self._timed = rule == "coupled"
        self._history = history if self._timed else History()
        self._names: list[str] = []
        self._steps: list[_Step] = []
        self._at = 0
        self._left, self._pause, self._settled = _WATCHED, _SOON, False
        self._prefilled = False

    def choose(self, ladder: Sequence[T]) -> T | None:
        """The guesser of the next round; None drafts nothing."""
        if not ladder:
            return None
        if not self._steps:
            self._names = [*(each.name for each in ladder), ""]
            self._steps = [self._history.begin(name) for name in self._names]
        self._stats.guarded += self._at > 0
        return ladder[self._at] if self._at < len(ladder) else None

    def learn(self, stood: int, pending: int, sent: int, scored: float, overhead: float) -> None:
        """Notes the round that was chosen for, and decides on the next.

        Args:
            stood: guesses that stood.
            pending, sent: tokens of the target's forward, those committed before and those drafted.
            scored, overhead: seconds of that forward, and of drafting.
        """
        if not self._prefilled:  # the first forward read the whole prompt
            self._prefilled = True
            return
        self._costs.note(pending + sent, scored)
        if not self._active or not self._steps:
            return
        self._steps[self._at].note(stood, pending, sent, overhead)
        self._history.note(self._names[self._at], stood, pending, sent, overhead)
        self._left -= 1
        if self._left <= 0:
            self._decide()

    def _decide(self) -> None:
        last = len(self._steps) - 1
        if self._settled:
            self._go(0, _WATCHED)
        elif self._steps[self._at].pays(self._costs if self._timed else None):
            if self._at == 0:
                self._left, self._pause = 1, _SOON
            else:
                self._settle(self._at)
        elif self._at + 1 < last:
            self._go(self._at + 1, _WATCHED)
        else:
            self._settle(last)

    def _settle(self, step: int) -> None:
        self._go(step, self._pause, settled=True)
        self._pause = min(2 * self._pause, _LATE)

    def _go(self, step: int, rounds: int, *, settled: bool = False) -> None:
        self._at, self._left, self._settled = step, rounds, settled
