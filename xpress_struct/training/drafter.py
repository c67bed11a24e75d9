"""TrainedDrafter: a drafter's weights as one module, run over packed blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from xpress_struct.drafting.heads import Head
from xpress_struct.drafting.weights import DraftWeights
from xpress_struct.errors import ArgumentError
from xpress_struct.target.target import TappedTarget
from xpress_struct.training.blocks import Blocks

__all__ = ["Scored", "TrainedDrafter"]


class Scored(NamedTuple):
    """What a drafter says of blocks.

    Attributes:
        base: [A, K, Vd], base logits of the places offered.
        bias: ids [A, K] drafted there -> the head's bias [A, K, Vd].
    """

    base: Tensor
    bias: Callable[[Tensor], Tensor]


class TrainedDrafter(nn.Module):
    """Runs the layers of `DraftWeights` over many blocks at once, with gradients.

    Args:
        weights: with a reduced vocabulary, a head, and layers of full attention that see both ways, where
            slot k predicts the token at slot k.
        target: whose embeddings are used, frozen, and its output head where the weights have none.
        dropout: share of the fused features, the embeddings and the last states that is dropped in training.
    """

    def __init__(self, weights: DraftWeights, target: TappedTarget, dropout: float = 0.0) -> None:
        super().__init__()
        config = weights.config
        if weights.head is None or weights.draft_ids is None:
            raise ArgumentError("A drafter is trained with a head and a reduced vocabulary.")
        plain = set(config.layers.layer_types) == {"full_attention"} and not config.full_is_causal
        if not plain or config.predicts_next:
            raise ArgumentError("Layers that slide or look back only, and predicts_next, are not trained.")
        self.config = config
        self.backbone, self.head = weights.backbone, weights.head
        self.lm_head = None if weights.lm_head is None else nn.Parameter(weights.lm_head.clone())
        self.draft_ids: Tensor
        self.register_buffer("draft_ids", weights.draft_ids.clone())
        self._target, self._dropout = target, dropout
        self._rows = target.head_of(weights.draft_ids)

    @property
    def weights(self) -> DraftWeights:
        """The weights as they are now."""
        lm_head = None if self.lm_head is None else self.lm_head.detach()
        return DraftWeights(self.config, self.backbone, self.head, self.draft_ids, lm_head)

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self.draft_ids.device

    def forward(self, blocks: Blocks) -> Scored:
        """Base logits, and the bias as a function of what is drafted."""
        backbone = self.backbone
        features = self._drop(backbone.fuse(blocks.states.to(backbone.fc.weight.dtype)))
        # Made outside of inference mode, or gradients could not pass by it.
        hidden = self._target.embed(blocks.ids).to(features.dtype).clone()
        if self.config.embedding_scale != 1.0:
            hidden = hidden * self.config.embedding_scale
        hidden = self._drop(hidden)[None]
        rope = backbone.rotary_emb(hidden, torch.cat((blocks.context, blocks.positions))[None])
        for layer in backbone.layers:
            hidden = layer(hidden, features[None], rope, blocks.visible, None)
        normed = self._drop(backbone.norm(hidden)[0][blocks.slots])
        base = backbone.logits(self._output(normed[:, 1:]))
        head = cast(Head, self.head)
        prepared = head.prepare(normed)

        def bias(drafted: Tensor) -> Tensor:
            return head.bias(torch.cat((blocks.lead, drafted[:, :-1]), dim=1), prepared)[:, 1:]

        return Scored(base, bias)

    def _output(self, hidden: Tensor) -> Tensor:
        if self.lm_head is not None:
            return nn.functional.linear(hidden, self.lm_head)
        return self._rows(hidden).to(hidden.dtype)

    def _drop(self, values: Tensor) -> Tensor:
        return nn.functional.dropout(values, self._dropout, self.training)
