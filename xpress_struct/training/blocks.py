"""Blocks: anchors of a document packed into one forward of the drafter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from xpress_struct.training.anchors import Anchor
from xpress_struct.training.features import Features
from xpress_struct.training.shards import Document

__all__ = ["Blocks", "pack"]


class Blocks(NamedTuple):
    """A blocks of B slots (the anchor's included) over a context of n tokens, packed into S slots.

    Attributes:
        states: float16 [n, taps * d], of the context.
        context: int64 [n], positions of the context.
        ids: int64 [S], known tokens and masks.
        positions: int64 [S].
        visible: bool [S, n + S], what each slot sees: the context in front of its block, and its block.
        slots: int64 [A, B], where the slots from the anchor on stand in the pack.
        lead: int64 [A, 2], the two tokens in front of the first that is offered.
        tokens: int64 [A, K], what the response has at the K = B - 1 places offered; 0 behind its end.
        chosen: bool [A, K], places of the response that the grammar left open.
        inside: bool [A, K], places of the response.
        places: int64 [A, K], these places in the document's distributions; the last one behind the end.
    """

    states: Tensor
    context: Tensor
    ids: Tensor
    positions: Tensor
    visible: Tensor
    slots: Tensor
    lead: Tensor
    tokens: Tensor
    chosen: Tensor
    inside: Tensor
    places: Tensor

    def to(self, device: torch.device) -> Blocks:
        """The same on a device."""
        return Blocks(*(tensor.to(device, non_blocking=True) for tensor in self))


def pack(
    document: Document, features: Features, anchors: Sequence[Anchor], block_size: int, mask_token_id: int
) -> Blocks:
    """Packs blocks of one document."""
    text = torch.tensor([*document.prompt, *document.response])
    start_of_response, length = len(document.prompt), len(document.response)
    first = start_of_response + torch.tensor([each.place for each in anchors])
    known = torch.tensor([each.known for each in anchors])
    starts, sizes = first - known, known + block_size - 1
    offset = torch.cumsum(sizes, 0) - sizes
    block = torch.repeat_interleave(torch.arange(len(anchors)), sizes)
    inner = torch.arange(int(sizes.sum())) - offset[block]
    positions = starts[block] + inner
    is_known = inner < known[block]
    ids = torch.where(is_known, text[positions.clamp(max=len(text) - 1)], mask_token_id)
    context = torch.arange(int(starts.max()))
    visible = torch.cat((context[None] < starts[block][:, None], block[:, None] == block[None]), dim=1)

    offered = torch.arange(block_size - 1)
    places = (first - start_of_response)[:, None] + offered
    inside = places < length
    places = places.clamp(max=length - 1)
    chosen = inside & ~torch.tensor(document.forced)[places]
    return Blocks(
        states=features.states[: len(context)],
        context=context,
        ids=ids,
        positions=positions,
        visible=visible,
        slots=(offset + known - 1)[:, None] + torch.arange(block_size),
        lead=torch.stack((text[(first - 2).clamp(min=0)], text[first - 1]), dim=1),
        tokens=torch.where(inside, text[start_of_response + places], 0),
        chosen=chosen,
        inside=inside,
        places=places,
    )
