"""Denoising: a block filled in several steps, the likeliest slots first."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["MASKED", "denoise"]

MASKED = -1
"""Stands for a slot that is not filled."""


def denoise(
    score: Callable[[Tensor], Tensor], room: int, steps: int, target_ids: Callable[[Tensor], Tensor]
) -> Tensor:
    """Base logits of a block's slots after several steps.

    Each step fills the likeliest of the slots that are still masked with their argmax, and keeps their
    logits. Nothing here is random, as the token-level and block rules need it: the noise is drawn once,
    on what comes out.

    Args:
        score: int64 [room], ids of the filled slots and `MASKED` -> logits [room, Vd].
        room: slots.
        steps: forwards, at most one per slot.
        target_ids: columns of the logits -> ids.

    Returns:
        [room, Vd].
    """
    steps = min(steps, room)
    base = score(filled := torch.full((room,), MASKED))
    filled = filled.to(base.device, non_blocking=True)
    done = torch.zeros(room, dtype=torch.bool, device=base.device)
    for step in range(1, steps):
        sure = base.float().softmax(-1).amax(-1).masked_fill(done, -1.0)
        picked = sure.topk(room * step // steps - room * (step - 1) // steps).indices
        done.index_fill_(0, picked, True)
        filled[picked] = target_ids(base[picked].argmax(-1))
        base = torch.where(done[:, None], base, score(filled))
    return base
