"""A target that remembers what it was asked: thousands of short samples for the forwards of a few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from xpress_struct.target.target import Target

__all__ = ["RecallingTarget"]

Ids = tuple[int, ...]
# Logits that are kept: 512 MiB.
_MOST_NUMBERS = 1 << 27


class _Ids:
    """Stands for a cache: the ids, and the states of the last forward."""

    def __init__(self, taps: Sequence[int]) -> None:
        self.ids: list[int] = []
        self.taps = tuple(taps)
        self.tapped: Tensor | None = None

    @property
    def lengths(self) -> list[int]:
        return [len(self.ids)]

    def rollback_to(self, lengths: Sequence[int]) -> None:
        del self.ids[lengths[0] :]


class RecallingTarget:
    """Answers from memory what was scored before behind the same ids.

    What is not known is scored by the target itself, over a cache of its own that is rolled back to what the
    ids share with it. Everything else of a round is as without it.

    Args:
        target: whose logits these are.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._rows: dict[Ids, Tensor] = {}
        self._states: dict[tuple[Ids, Ids], Tensor] = {}
        self._caches: dict[Ids, tuple[Any, list[int]]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def new_cache(self, taps: Sequence[int] = ()) -> _Ids:
        """No cache: a list of ids."""
        return _Ids(taps)

    def score(self, cache: _Ids, ids: Sequence[int], rows: int) -> Tensor:
        """As `Target.score`."""
        known = len(cache.ids)
        cache.ids += ids
        taps = cache.taps
        ends = range(known + 1, len(cache.ids) + 1)
        prefixes = [tuple(cache.ids[:end]) for end in ends]
        asked, stated = prefixes[-rows:], prefixes if taps else []
        strange = [each for each in asked if each not in self._rows]
        strange += [each for each in stated if (taps, each) not in self._states]
        if strange:
            self._score(cache.ids, min(map(len, strange)) - 1, taps)
        if taps:
            cache.tapped = torch.stack([self._states[taps, each] for each in stated])
        return torch.stack([self._rows[each] for each in asked])

    def _score(self, ids: list[int], known: int, taps: Ids) -> None:
        """Scores what follows `known` ids, and remembers every row."""
        real, held = self._caches.get(taps) or (self._new(taps), [])
        shared = 0
        while shared < min(len(held), known) and held[shared] == ids[shared]:
            shared += 1
        if shared < len(held) and self._target.no_speculation is not None:
            real, shared = self._new(taps), 0
        else:
            real.rollback_to([shared])
        logits = self._target.score(real, ids[shared:], len(ids) - shared)
        if len(self._rows) * logits.shape[-1] > _MOST_NUMBERS:
            # Rows in front of these may be asked for in this very round, so the last ones stay.
            keep = {tuple(ids[:end]) for end in range(1, len(ids) + 1)}
            self._rows = {ids: row for ids, row in self._rows.items() if ids in keep}
            self._states = {key: state for key, state in self._states.items() if key[1] in keep}
        self._caches[taps] = real, list(ids)
        for place, row in enumerate(logits, shared + 1):
            self._rows[tuple(ids[:place])] = row.clone()
            if taps:
                self._states[taps, tuple(ids[:place])] = real.tapped[place - shared - 1].clone()

    def _new(self, taps: Ids) -> Any:
        return self._target.new_cache(taps) if taps else self._target.new_cache()  # type: ignore[call-arg]
