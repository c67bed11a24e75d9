"""Whether asking a drafter is worth its time, where another one has something to offer for nothing."""

from __future__ import annotations

from collections.abc import Hashable

__all__ = ["Asking", "mixed"]

_KEEP = 0.8
# What a drafter is first believed to gain in a situation, as if it had done so once; rounds of a situation
# after which it is asked again.
_FIRST, _AGAIN = 1.0, 16
# Guesses that stood differ widely from round to round: a mean of some twenty tells whether asking pays.
_LATEST = 20


def mixed(old: float, new: float) -> float:
    """A decayed mean, moved on by a value."""
    return _KEEP * old + (1 - _KEEP) * new


class Asking:
    """What asking a drafter gained so far, by situation, and what it costs beside a forward of the target.

    Left out of the price: that the forward over its block is longer than one over a shorter offer.

    Serves all requests of a drafter under the coupled rule, where no choice can change a token: measured
    seconds may decide there.
    """

    def __init__(self) -> None:
        self._gains: dict[Hashable, tuple[float, int]] = {}  # means, and of how many rounds
        self._passed: dict[Hashable, int] = {}
        self._asked_s: float | None = None
        self._forward_s: float | None = None

    def pays(self, situation: Hashable, offered: float) -> bool:
        """Whether to ask: it should give more tokens by second than what is offered already.

        Args:
            offered: guesses of that that should stand.
        """
        if self._asked_s is None or not self._forward_s:
            return True
        if self._gain(situation)[0] > (1 + offered) * self._asked_s / self._forward_s:
            return True
        passed = self._passed.get(situation, 0) + 1
        self._passed[situation] = passed % _AGAIN
        return passed == _AGAIN

    def gained(self, situation: Hashable, guesses: int) -> None:
        """Notes how many guesses more stood than without asking; fewer are negative."""
        mean, rounds = self._gain(situation)
        rounds = min(rounds + 1, _LATEST)
        self._gains[situation] = mean + (guesses - mean) / rounds, rounds

    def took(self, asked: float, forward: float) -> None:
        """Notes seconds: of asking, and of the target's forward behind it."""
        self._asked_s, self._forward_s = _quick(self._asked_s, asked), _quick(self._forward_s, forward)

    def _gain(self, situation: Hashable) -> tuple[float, int]:
        return self._gains.get(situation, (_FIRST, 1))


def _quick(old: float | None, new: float) -> float:
    """A mean that falls at once: the first time of anything, a pause or a long forced run tells little."""
    return new if old is None or new < old else mixed(old, new)
