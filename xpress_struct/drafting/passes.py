"""How many parallel passes a block is worth: fixed, or found while decoding."""

from __future__ import annotations

import threading
from collections.abc import Sequence

__all__ = ["Gains", "Passes"]

# The last pass must lengthen what is accepted by this much.
_WORTH = 0.01
# Rounds at the start, and one in so many later, in which every pass is tried.
_TRIAL, _EVERY = 4, 16
_KEEP = 0.9


class Gains:
    """What each pass is worth: acceptance lengths by number of passes, from rounds that tried them all.

    Safe for threads: under the coupled rule, where no choice can change a token, a drafter's requests
    share it. Under the others each request has its own, so that a seed repeats itself.
    """

    def __init__(self) -> None:
        self._lengths: list[float] = []
        self._rounds = 0
        self._lock = threading.Lock()

    def ask(self, most: int) -> int:
        """Passes of the next round: all that are possible, or as many as gained something."""
        with self._lock:
            self._rounds += 1
            if self._rounds <= _TRIAL or self._rounds % _EVERY == 0:
                return most
            # Entry 0 is the draft before any pass; the last one's passes were the most that changed anything.
            pairs = enumerate(zip(self._lengths, self._lengths[1:], strict=False))
            all_gain = len(self._lengths) - 1 if self._lengths else most
            worth = next((p for p, (less, more) in pairs if more < less * (1 + _WORTH)), all_gain)
        return max(1, min(worth, most))

    def learn(self, lengths: Sequence[float]) -> None:
        """Notes the acceptance length after no pass, one pass, ... of one round."""
        with self._lock:
            last = self._lengths[-1] if self._lengths else lengths[0]
            known = [*self._lengths, *[last] * (len(lengths) - len(self._lengths))]
            keep = _KEEP if self._lengths else 0.0
            found = [*lengths, *[lengths[-1]] * (len(known) - len(lengths))]
            self._lengths = [keep * old + (1 - keep) * new for old, new in zip(known, found, strict=True)]


class Passes:
    """The number of passes per round of one request.

    The drafts of the passes of an earlier round, held against what came out, say what each pass gained.
    Only past rounds count, so no acceptance rule is biased.

    Args:
        most: passes at most.
        gains: where their worth is kept; None always runs `most`.
    """

    def __init__(self, most: int, gains: Gains | None = None) -> None:
        self._most, self._gains = most, gains
        self._asked = most
        self._drafts: Sequence[Sequence[int]] = ()

    def ask(self) -> int:
        """Passes of the next round."""
        if self._gains is not None:
            self._asked = self._gains.ask(self._most)
        return self._asked

    def note(self, drafts: Sequence[Sequence[int]]) -> None:
        """Remembers a round's drafts, before any pass and after each; passes left out changed nothing."""
        self._drafts = drafts if self._asked == self._most else ()

    def learn(self, output: Sequence[int]) -> None:
        """Holds the remembered drafts against the tokens that came out in their place."""
        if self._gains is not None and self._drafts:
            self._gains.learn([1.0 + _agreed(draft, output) for draft in self._drafts])
        self._drafts = ()


def _agreed(draft: Sequence[int], output: Sequence[int]) -> int:
    pairs = enumerate(zip(draft, output, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(draft), len(output)))
