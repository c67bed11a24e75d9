"""How many parallel passes a block is worth: fixed, or found while decoding."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Passes"]

# The last pass must lengthen what is accepted by this much.
_WORTH = 0.01
# Rounds at the start, and one in so many later, in which every pass is tried.
_TRIAL, _EVERY = 4, 16
_KEEP = 0.9


class Passes:
    """The number of passes per round.

    The drafts of the passes of earlier rounds, held against what came out, say what each pass gained.
    Only past rounds count, so no acceptance rule is biased.

    Args:
        most: passes of a trial.
        fixed: always this many instead.
    """

    def __init__(self, most: int, fixed: int | None = None) -> None:
        self._most = fixed if fixed is not None else most
        self._searches = fixed is None
        self._lengths: list[float] = []
        self._rounds = 0
        self._drafts: Sequence[Sequence[int]] = ()

    def ask(self) -> int:
        """Passes of the next round."""
        if not self._searches or self._rounds < _TRIAL or self._rounds % _EVERY == 0:
            return self._most
        gains = zip(self._lengths, self._lengths[1:], strict=False)
        # Entry 0 is the draft before any pass.
        return (
            next((p for p, (less, more) in enumerate(gains) if more < less * (1 + _WORTH)), self._most) or 1
        )

    def note(self, drafts: Sequence[Sequence[int]]) -> None:
        """Remembers a round's drafts, before any pass and after each; the passes left out changed nothing."""
        self._drafts = drafts

    def learn(self, output: Sequence[int]) -> None:
        """Holds the remembered drafts against the tokens that came out in their place."""
        if not self._searches or not self._drafts:
            return
        last = self._drafts[-1]
        drafts = [*self._drafts, *[last] * (self._most + 1 - len(self._drafts))]
        if len(drafts) > len(self._lengths):
            self._lengths += [1.0] * (len(drafts) - len(self._lengths))
        tried = self.ask() == self._most
        for index, draft in enumerate(drafts):
            if tried or index < len(self._drafts):
                length = 1 + _agreed(draft, output)
                keep = _KEEP if self._rounds else 0.0
                self._lengths[index] = keep * self._lengths[index] + (1 - keep) * length
        self._rounds += 1
        self._drafts = ()


def _agreed(draft: Sequence[int], output: Sequence[int]) -> int:
    pairs = enumerate(zip(draft, output, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(draft), len(output)))
