"""Token-level and block acceptance on a device: all slots are worked out there, and come down at once.

The rules are those of `acceptance`, which asks for one row after the other and waits for the device in
between. Here every slot's ratio, residual and redrawn token is computed before anything is decided; the host
then tosses the coins. In the same float64 steps, so that the outcome is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from xpress_struct.decoding.acceptance import Accepted

__all__ = ["accept_batched"]


def accept_batched(
    rule: Literal["token", "block"],
    draft: Sequence[int],
    q: Sequence[Tensor | None],
    p: Tensor,
    coin: Callable[[int], float],
    noise: Tensor,
    dead_end: Exception | None = None,
) -> Accepted:
    """What `accept_token_level` or `accept_block` says, after one transfer from the device.

    Args:
        draft: K token ids.
        q: K rows float64 [V] on the device of `p`; None where a slot is one-hot.
        p: float64 [n, V], rows 0 .. n - 1 of K + 1. They may end early behind a row that lets no draft pass:
            a dead end (all zero), or one in which the draft's token is impossible.
        coin: i -> uniform number in (0, 1), independent of the draft.
        noise: float64 [n, V], Gumbel, independent of the draft and the coins: what a slot is redrawn with.
        dead_end: raised where the row to be drawn from is all zero.

    Raises:
        Exception: `dead_end`.
    """
    slots = _slots(rule, draft, q, p, noise)
    count = (_token_level if rule == "token" else _block)(len(draft), slots, coin)
    if dead_end is not None and not slots[count].alive:
        raise dead_end
    return Accepted(count, int(slots[count].redrawn))


class _Slot(NamedTuple):
    """One row, as it comes down.

    Attributes:
        p, q: of the draft's token.
        spare: sum of the residual, Z of the block rule.
        alive: 0 at a dead end.
        redrawn: the token if the draft stops in front of this slot.
    """

    p: float
    q: float
    spare: float
    alive: float
    redrawn: float

    @property
    def ratio(self) -> float:
        return self.p / self.q


def _slots(
    rule: str, draft: Sequence[int], q: Sequence[Tensor | None], p: Tensor, noise: Tensor
) -> list[_Slot]:
    rows, offered = len(p), min(len(draft), len(p))
    facts = p.new_zeros(len(_Slot._fields), rows)
    residual = p
    if offered:
        tokens = torch.tensor(draft[:offered]).to(p.device, non_blocking=True).unsqueeze(-1)
        drawn_from = _matrix(tokens, q[:offered], p)
        facts[0, :offered] = p[:offered].gather(-1, tokens).squeeze(-1)
        facts[1, :offered] = drawn_from.gather(-1, tokens).squeeze(-1)
        above = p[:offered]
        if rule == "block":
            above = above * _carried(facts[0, :offered] / facts[1, :offered]).unsqueeze(-1)
        residual = (above - drawn_from).clamp_(min=0)
        facts[2, :offered] = residual.sum(-1)
        # The bonus row, if it is there, has nothing to subtract.
        residual = torch.cat([residual, p[offered:]])
    facts[3] = p.amax(-1) > 0
    # Rounding may leave nothing of a residual (p equals q); then the row itself is drawn from.
    weights = torch.where(residual.amax(-1, keepdim=True) > 0, residual, p)
    facts[4] = (weights.log_() + noise).argmax(-1)
    # The round's only wait for the device, but for those of the refinement.
    return [_Slot(*column) for column in zip(*facts.tolist(), strict=True)]


def _matrix(tokens: Tensor, q: Sequence[Tensor | None], p: Tensor) -> Tensor:
    """q as one matrix, one-hot at the tokens [k, 1] where a row is None."""
    one_hot = p.new_zeros(len(tokens), p.shape[-1]).scatter_(-1, tokens, 1.0)
    if all(row is None for row in q):
        return one_hot
    return torch.stack([one_hot[slot] if row is None else row for slot, row in enumerate(q)])


def _carried(ratios: Tensor) -> Tensor:
    """P_0 .. P_{k-1} of the ratios [k], one after the other: another order would round otherwise."""
    carried = [torch.ones_like(ratios[:1])]
    for slot in range(len(ratios) - 1):
        carried.append((carried[-1] * ratios[slot : slot + 1]).clamp_(max=1.0))
    return torch.cat(carried)


def _token_level(offered: int, slots: list[_Slot], coin: Callable[[int], float]) -> int:
    return next((slot for slot in range(offered) if coin(slot) >= slots[slot].ratio), offered)


def _block(offered: int, slots: list[_Slot], coin: Callable[[int], float]) -> int:
    kept, carried = 0, 1.0
    for slot in range(offered):
        carried = min(1.0, carried * slots[slot].ratio)
        if carried == 0:
            break
        if slot + 1 == offered:
            keep = carried
        elif carried == 1:
            keep = 1.0
        else:
            ahead = slots[slot + 1]
            # A dead end's mass lies outside of the vocabulary.
            spare = ahead.spare if ahead.alive else carried
            keep = spare / (spare + 1 - carried)
        if coin(slot) < keep:
            kept = slot + 1
    return kept
