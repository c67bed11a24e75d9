"""What theory says of speculative decoding: tokens per round, speed, and where it stops to pay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import mul

import torch
from torch import Tensor

__all__ = [
    "best_length",
    "break_even_acceptance",
    "coupled_bound",
    "coupled_match",
    "expected_tokens",
    "mean_acceptance",
    "tokens_from_curve",
]


def expected_tokens(acceptance: float, length: int) -> float:
    """Tokens of a round of K guesses, each of which stands with the same probability a:
    (1 - a^(K+1)) / (1 - a) (Leviathan et al. 2023, arXiv 2211.17192)."""
    return sum(float(acceptance**slot) for slot in range(length + 1))


def tokens_from_curve(curve: Sequence[float]) -> float:
    """Tokens of a round whose slot k stands with probability curve[k] once those before it stand."""
    standing: list[float] = list(accumulate(curve, mul))
    return 1.0 + sum(standing)


def mean_acceptance(curve: Sequence[float]) -> float:
    """The one probability that stands for a curve: guesses that stand, by guesses that are reached."""
    standing: list[float] = list(accumulate(curve, mul))
    reached = sum([1.0, *standing[:-1]])
    return sum(standing) / reached


def coupled_bound(distance: float) -> float:
    """The least probability that two draws with shared Gumbel noise agree, for distributions of this total
    variation: (1 - TV) / (1 + TV) (arXiv 2408.07978)."""
    return (1 - distance) / (1 + distance)


def coupled_match(p: Tensor, q: Tensor) -> float:
    """The probability that they agree, for distributions [V]: sum over v of 1 / sum_w max(p_w/p_v, q_w/q_v).

    Both draws are v exactly when v comes first in a race with the larger of the two rates of every other.
    """
    both = (p > 0) & (q > 0)
    larger = torch.maximum(p / p[both].unsqueeze(-1), q / q[both].unsqueeze(-1))
    return float((1 / larger.sum(-1)).sum())


def break_even_acceptance(length: int, tokens: float) -> float | None:
    """The acceptance at which K guesses give this many tokens a round; None when none does.

    Args:
        tokens: what a round costs, in rounds without a guess.
    """
    if tokens > length + 1:
        return None
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if expected_tokens(middle, length) < tokens else (low, middle)
    return high


def best_length(curve: Sequence[float], round_cost: Callable[[int], float]) -> tuple[int, int]:
    """The block length of the best speed on a curve, and the largest that pays.

    Args:
        curve: by slot; a shorter block sees its beginning.
        round_cost: K -> what a round costs; K = 0 is a round without a guess.

    Returns:
        Two lengths up to len(curve); 0 where no length pays.
    """
    speeds = [
        tokens_from_curve(curve[:length]) / round_cost(length) * round_cost(0)
        for length in range(1, len(curve) + 1)
    ]
    paying = [length for length, speed in enumerate(speeds, 1) if speed > 1]
    if not paying:
        return 0, 0
    return max(paying, key=lambda length: speeds[length - 1]), paying[-1]
