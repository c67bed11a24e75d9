"""DraftWeights: a block-diffusion drafter as modules, without a target."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from xpress_struct.drafting.backbone import Backbone
from xpress_struct.drafting.config import DiffusionConfig

__all__ = ["DraftWeights"]


@dataclass(eq=False)
class DraftWeights:
    """A drafter's weights; read and written by `drafting.checkpoints`.

    Attributes:
        config: what they are.
        backbone: the layers.
        head: the refiner that `config.head` describes, or None.
        draft_ids: int64 [Vd], the target's id of each id of a reduced vocabulary; None: they are the
            target's own.
        lm_head: [Vd, d], the output head of a reduced vocabulary; None: the target's head serves.
    """

    config: DiffusionConfig
    backbone: Backbone
    head: nn.Module | None = None
    draft_ids: Tensor | None = None
    lm_head: Tensor | None = None
