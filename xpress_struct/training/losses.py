"""Losses: distillation toward the target's masked distribution (xPress, arXiv 2608.02438)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from xpress_struct.training.blocks import Blocks
from xpress_struct.training.drafter import Scored
from xpress_struct.training.features import Features

__all__ = ["LossSettings", "Losses", "block_loss", "distance", "slot_weights", "targets_of"]


@dataclass(frozen=True, slots=True)
class LossSettings:
    """Weights of the parts of the loss.

    Attributes:
        cross_entropy: share of the cross entropy in the distance; the rest is the total variation. The
            trainer comes down to it from 1.
        free_running: weight of the rounds in which the head reads its own tokens.
        rounds: how many such rounds.
        base: weight of the base logits; without it they decay, and with them the first pass.
        gamma: a chosen token counts exp(-j / gamma), j the chosen ones in front of it in the block.
    """

    cross_entropy: float = 0.1
    free_running: float = 0.3
    rounds: int = 2
    base: float = 0.6
    gamma: float = 4.0


@dataclass(frozen=True, slots=True)
class Losses:
    """The loss of some blocks, and the mean distances of base, teacher-forced and free-running logits."""

    total: Tensor
    base: Tensor
    forced: Tensor
    free: Tensor


def targets_of(features: Features, blocks: Blocks, columns: Tensor) -> tuple[Tensor, Tensor]:
    """The target's distributions at the places offered, on the columns of a reduced vocabulary.

    Args:
        columns: int64 [V], the column of each id, -1 where it has none.

    Returns:
        Columns int64 and probabilities [A, K, k]; tokens without a column have probability 0.
    """
    found = columns[features.ids[blocks.places]]
    known = found >= 0
    return found.clamp(min=0), features.probabilities[blocks.places] * known


def slot_weights(blocks: Blocks, gamma: float) -> Tensor:
    """Weights [A, K]: 0 where the grammar forces the token and behind the response's end."""
    before = blocks.chosen.long().cumsum(-1) - 1
    return torch.exp(-before / gamma) * blocks.chosen


def distance(logits: Tensor, columns: Tensor, p: Tensor, cross_entropy: float) -> Tensor:
    """c * cross entropy + (1 - c) * total variation to the target's likeliest tokens, [A, K].

    Args:
        logits: [A, K, Vd].
        columns, p: [A, K, k], see `targets_of`. What p lacks to 1 can never be met.
        cross_entropy: c.
    """
    log_q = logits.float().log_softmax(-1).gather(-1, columns)
    entropy = -(p * log_q).sum(-1)
    variation = 1 - torch.minimum(p, log_q.exp()).sum(-1)
    return cross_entropy * entropy + (1 - cross_entropy) * variation


def block_loss(
    scored: Scored,
    blocks: Blocks,
    columns: Tensor,
    p: Tensor,
    draft_ids: Tensor,
    settings: LossSettings,
) -> Losses:
    """The loss of some blocks.

    In a free-running round the head reads the winners of the round before (of the base logits at first), and
    the response's own tokens where the grammar forces them, as the refinement would write them there.
    """
    weights = slot_weights(blocks, settings.gamma)
    scale = 1 / weights.sum().clamp(min=1e-6)

    def mean(logits: Tensor) -> Tensor:
        return (distance(logits, columns, p, settings.cross_entropy) * weights).sum() * scale

    base = mean(scored.base)
    forced = mean(scored.base + scored.bias(blocks.tokens))
    free = torch.zeros_like(base)
    logits = scored.base
    for _ in range(settings.rounds):
        drafted = torch.where(blocks.chosen, draft_ids[logits.detach().argmax(-1)], blocks.tokens)
        logits = scored.base + scored.bias(drafted)
        free = free + mean(logits) / settings.rounds
    total = forced + settings.free_running * free + settings.base * base
    return Losses(total, base.detach(), forced.detach(), free.detach())
