"""The optimizers of a drafter: AdamW, and Adam on touched rows alone for the head's table of tokens."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from xpress_struct.training.widening import spread

__all__ = ["Optimizers"]

_BETAS = (0.9, 0.95)


class Optimizers:
    """Steps the parameters of a drafter.

    The head's table has a row for each token of the target, of which a step touches a few hundred. Dense
    gradients of it would cost as much as the layers do on a CPU.

    Args:
        weight_decay: of all but the table.
        clip: largest norm of the gradients of all but the table.
    """

    def __init__(self, drafter: nn.Module, learning_rate: float, weight_decay: float, clip: float) -> None:
        tables = [module for module in drafter.modules() if isinstance(module, nn.Embedding)]
        for table in tables:
            table.sparse = True
        rows = [table.weight for table in tables]
        self._dense = [each for each in drafter.parameters() if all(each is not row for row in rows)]
        self._clip = clip
        # The dense one is first in a state.
        self._all: list[torch.optim.Optimizer] = [
            torch.optim.AdamW(
                self._dense, lr=learning_rate, betas=_BETAS, weight_decay=weight_decay, fused=True
            )
        ]
        if rows:
            self._all.append(torch.optim.SparseAdam(rows, lr=learning_rate, betas=_BETAS))

    def zero_grad(self) -> None:
        """Forgets the gradients."""
        for optimizer in self._all:
            optimizer.zero_grad(set_to_none=True)

    def step(self, learning_rate: float) -> None:
        """Clips, and steps at a learning rate."""
        nn.utils.clip_grad_norm_(self._dense, self._clip)
        for optimizer in self._all:
            for group in optimizer.param_groups:
                group["lr"] = learning_rate
            optimizer.step()

    def state(self) -> list[dict[str, Any]]:
        """To resume from."""
        return [optimizer.state_dict() for optimizer in self._all]

    def spread(self, state: list[dict[str, Any]], place: Tensor) -> None:
        """Fits a state, in place, to parameters that have more rows; see `widening.spread`."""
        for number, means in state[0]["state"].items():
            for name in ("exp_avg", "exp_avg_sq"):
                means[name] = spread(means[name], self._dense[number].shape, place)

    def resume(self, state: list[dict[str, Any]]) -> None:
        """Goes on from a state.

        Raises:
            ValueError: it belongs to other parameters.
        """
        for optimizer, each in zip(self._all, state, strict=True):
            optimizer.load_state_dict(each)
