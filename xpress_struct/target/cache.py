"""The target's key/value cache under speculation: per-row lengths, roll back, gather.

transformers keeps the tensors; what is kept here is how far each row goes, and the proof that taking
tokens back is exact. Full attention is cropped; sliding windows record what a draft pushes out
of the window and put it back; recurrent states cannot go back and are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from xpress_struct.errors import CacheRollbackError

__all__ = ["TargetCache", "why_not_croppable"]


def why_not_croppable(cache: Any) -> str | None:
    """The reason why a transformers cache cannot be rolled back exactly, or None if it can."""
    layers = getattr(cache, "layers", None)
    if layers is None:
        return f"{type(cache).__name__} has no layers that could be cropped"
    for index, layer in enumerate(layers):
        # transformers below 5.20 has no is_croppable; there the class name tells.
        name = type(layer).__name__
        if "Quantized" in name or "LinearAttention" in name or "Mamba" in name:
            return f"layer {index} is {name}: its state cannot go back"
        if not getattr(layer, "is_croppable", True):
            return f"layer {index} ({name}) cannot be cropped"
    if getattr(cache, "is_croppable", True) is False:
        return f"{type(cache).__name__} cannot be cropped"
    return None


class TargetCache:
    """A transformers cache with lengths of its own.

    Attributes:
        lengths: number of cached tokens of each row.
        taps: layers whose states a drafter reads, counted from 0.
        tapped: their states in the last forward, [tokens, taps * d].
    """

    def __init__(self, cache: Any, rows: int = 1, *, rollback: bool = True, taps: Sequence[int] = ()) -> None:
        self.cache = cache
        self.taps = tuple(taps)
        self.tapped: Tensor | None = None
        self.lengths = [0] * rows
        self._rollback = rollback
        if rollback:
            cache.activate_past_recording()

    def extend(self, count: int) -> None:
        """Notes that a forward added `count` tokens to every row."""
        self.lengths = [length + count for length in self.lengths]

    def rollback_to(self, lengths: Sequence[int]) -> None:
        """Takes tokens back until each row has the given length.

        Called after every forward, also when nothing is taken back: sliding windows trim what they
        recorded then.

        Raises:
            CacheRollbackError: the cache cannot go back, or rows would become ragged.
        """
        counts = {now - then for now, then in zip(self.lengths, lengths, strict=True)}
        if len(counts) != 1:
            raise CacheRollbackError("rows of one cache must be rolled back by the same count")
        (count,) = counts
        if count < 0:
            raise CacheRollbackError(f"cannot roll back to {lengths}: only {self.lengths} cached")
        if not self._rollback:
            if count:
                raise CacheRollbackError("this cache was made without rollback")
            return
        reason = why_not_croppable(self.cache) if count else None
        if reason is not None:
            raise CacheRollbackError(f"The key/value cache cannot be rolled back: {reason}.")
        self.cache.crop(-count)
        self.lengths = list(lengths)

    def gather(self, rows: Sequence[int]) -> None:
        """Keeps the given rows, in that order; a row may be taken several times."""
        device = next(
            (k.device for k in (getattr(x, "keys", None) for x in self.cache.layers) if k is not None),
            None,
        )
        self.cache.batch_select_indices(torch.tensor(list(rows), device=device))
        self.lengths = [self.lengths[row] for row in rows]
