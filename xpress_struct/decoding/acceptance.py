"""Which draft tokens stand: coupled, token-level and block acceptance, as pure functions.

`p` is always the target's masked and processed distribution; row i is the distribution of slot i
given the draft tokens before it, and row K is the bonus row. `q` is what the drafter drew slot i
from; None stands for one-hot (a token that is not random), for one slot or for all.

All three give tokens distributed as autoregressive draws from `p`. The coupled rule also gives the
same tokens as no speculation at all for the same noise (drafter invariance, arXiv 2408.07978).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Accepted", "accept_block", "accept_coupled", "accept_token_level"]

Row = Callable[[int], "Tensor"]
"""i -> p_i, float64 [V], summing to 1; all zero at a dead end, from which `draw` then raises. Asked for
when needed, and for the first time in increasing order."""

QRows = Sequence["Tensor | None"] | None
"""What each slot was drawn from, float64 [V]; None for one-hot."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The outcome of one round.

    Attributes:
        count: how many draft tokens stand, from the left.
        token: the token after them, drawn from the target (correction or bonus).
    """

    count: int
    token: int


def accept_coupled(draft: Sequence[int], choice: Callable[[int], int]) -> Accepted:
    """Accepts while the draft says what the target chooses with the noise of that place.

    Args:
        draft: K token ids.
        choice: i -> the target's token at slot i; asked for slots 0, 1, ... up to the first
            difference, or up to K, the bonus slot.
    """
    for slot, token in enumerate(draft):
        chosen = choice(slot)
        if chosen != token:
            return Accepted(slot, chosen)
    return Accepted(len(draft), choice(len(draft)))


def accept_token_level(
    draft: Sequence[int],
    q: QRows,
    p: Row,
    coin: Callable[[int], float],
    draw: Callable[[Tensor, int], int],
) -> Accepted:
    """Accepts x_i with probability min(1, p_i(x_i) / q_i(x_i)); the first refused slot is redrawn
    from max(p_i - q_i, 0), normalised (arXiv 2211.17192).

    Args:
        draft: K token ids. One that is illegal (p = 0) is refused, not cut off beforehand.
        q: K rows float64 [V] or None where a slot is one-hot; None when the whole draft is.
        p: rows 0 .. K, asked for up to the first refused slot.
        coin: i -> uniform number in (0, 1), independent of the draft.
        draw: (weights [V], i) -> an index with probability proportional to its weight.
    """
    for slot, token in enumerate(draft):
        row = p(slot)
        if coin(slot) >= _ratio(row, q, slot, token):
            return Accepted(slot, draw(_or_row(_residual(row, q, slot, token), row), slot))
    return Accepted(len(draft), draw(p(len(draft)), len(draft)))


def accept_block(
    draft: Sequence[int],
    q: QRows,
    p: Row,
    coin: Callable[[int], float],
    draw: Callable[[Tensor, int], int],
) -> Accepted:
    """Block verification (arXiv 2403.10444): accepts at least as many tokens as token-level.

    With P_0 = 1 and P_i = min(1, P_{i-1} p_i(x_i) / q_i(x_i)), the longest prefix i is kept whose
    coin falls under h_i; what follows is drawn from max(P_i p_{i+1} - q_{i+1}, 0), normalised.
    Arguments as in `accept_token_level`; rows of `p` are asked for while P_i > 0.
    """
    kept, carried, kept_weight = 0, 1.0, 1.0
    for slot, token in enumerate(draft):
        row = p(slot)
        carried = min(1.0, carried * _ratio(row, q, slot, token))
        if carried == 0:
            break
        if slot + 1 == len(draft):
            keep = carried
        elif carried == 1:
            keep = 1.0
        else:
            ahead = p(slot + 1)
            spare = float(_residual(ahead * carried, q, slot + 1, draft[slot + 1]).sum())
            if not bool(ahead.any()):
                spare = carried  # a dead end: all its mass lies outside of the vocabulary
            keep = spare / (spare + 1 - carried)
        if coin(slot) < keep:
            kept, kept_weight = slot + 1, carried
    if kept == len(draft):
        return Accepted(kept, draw(p(kept), kept))
    row = p(kept)
    residual = _residual(row * kept_weight, q, kept, draft[kept])
    return Accepted(kept, draw(_or_row(residual, row), kept))


def _ratio(row: Tensor, q: QRows, slot: int, token: int) -> float:
    """p(token) / q(token)."""
    drawn_from = None if q is None else q[slot]
    return float(row[token]) / (1.0 if drawn_from is None else float(drawn_from[token]))


def _residual(row: Tensor, q: QRows, slot: int, token: int) -> Tensor:
    """max(row - q, 0), not normalised; q is one-hot at `token` when None."""
    drawn_from = None if q is None else q[slot]
    if drawn_from is not None:
        return (row - drawn_from).clamp_(min=0)
    rest = row.clone()
    rest[token] = 0.0
    return rest


def _or_row(residual: Tensor, row: Tensor) -> Tensor:
    """The residual, or the row where rounding left nothing of it (p equals q)."""
    return residual if bool(residual.any()) else row
