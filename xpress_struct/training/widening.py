"""A training that goes on with more documents takes in tokens that its draft vocabulary lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import torch
from torch import Tensor

from xpress_struct.drafting.heads import make_head
from xpress_struct.drafting.weights import DraftWeights
from xpress_struct.training.shards import Document

__all__ = ["spread", "widen"]


def widen(weights: DraftWeights, documents: Iterable[Document], size: int) -> DraftWeights:
    """The same drafter with a draft vocabulary of up to `size` tokens.

    The most frequent tokens of the responses that it lacks come in; the head adds nothing to them yet.
    A drafter with an output head of its own is left as it is: it has no row for them.
    """
    old = weights.draft_ids
    if old is None or weights.head is None or weights.lm_head is not None:
        return weights
    known = set(old.tolist())
    counts = Counter(token for each in documents for token in each.response if token not in known)
    new = [token for token, _ in counts.most_common(max(0, size - len(known)))]
    if not new:
        return weights
    ids = torch.tensor(sorted([*known, *new]))
    config = replace(weights.config, draft_vocab_size=len(ids))
    head = make_head(config, config.layers.vocab_size)
    state, place = weights.head.state_dict(), torch.searchsorted(ids, old)
    head.load_state_dict(
        {name: spread(state[name], tensor.shape, place) for name, tensor in head.state_dict().items()}
    )
    return replace(weights, config=config, head=head, draft_ids=ids)


def spread(values: Tensor, shape: torch.Size, place: Tensor) -> Tensor:
    """Rows of a tensor at their places in one of another shape, zeros elsewhere; as it is where that fits.

    Args:
        place: int64, of each row.
    """
    if values.shape == shape:
        return values
    wider = values.new_zeros(shape)
    wider[place.to(values.device)] = values
    return wider
