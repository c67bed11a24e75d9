"""What the target's forwards cost, by their size: measured while decoding, shared by a model's requests."""

from __future__ import annotations

import threading

__all__ = ["Costs"]

_KEEP = 0.9


class Costs:
    """Mean seconds of a forward by its number of tokens, in classes of doubling size. Safe for threads."""

    def __init__(self) -> None:
        self._means: dict[int, float] = {}
        self._lock = threading.Lock()

    def note(self, tokens: int, seconds: float) -> None:
        """Adds one forward."""
        size = tokens.bit_length()
        with self._lock:
            mean = self._means.get(size, seconds)
            self._means[size] = _KEEP * mean + (1 - _KEEP) * seconds

    def seconds(self, tokens: float) -> float | None:
        """Seconds of a forward of this size; None where no forward of its class was seen."""
        return self._means.get(round(tokens).bit_length())
