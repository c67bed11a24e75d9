"""Anchors: where in a response blocks begin, and how many tokens are known in front of them."""

from __future__ import annotations

import random
from typing import NamedTuple

from xpress_struct.training.shards import Document

__all__ = ["Anchor", "every_anchor", "random_anchors"]

_AS_DECODED = 0.8


class Anchor(NamedTuple):
    """A block.

    Attributes:
        place: of the first token that it offers, in the response.
        known: tokens in front of it whose hidden states the drafter does not have, 1 to `max_known`.
    """

    place: int
    known: int


def every_anchor(document: Document, max_known: int) -> list[Anchor]:
    """A block at each place where a round of decoding may begin, with the known run it would have there:
    the last chosen token and what the grammar forced behind it."""
    anchors = []
    known = 1
    for place, forced in enumerate(document.forced):
        # The first token of all comes from the forward over the prompt.
        if place and not forced and known <= max_known:
            anchors.append(Anchor(place, known))
        known = known + 1 if forced else 1
    first = next((place for place, forced in enumerate(document.forced) if not forced), 0)
    return [anchor for anchor in anchors if anchor.place > first]


def random_anchors(document: Document, count: int, max_known: int, rng: random.Random) -> list[Anchor]:
    """Up to `count` different places; four of five with the known run of decoding, the others with one of
    1 to `max_known` tokens."""
    anchors = every_anchor(document, max_known)
    chosen = rng.sample(anchors, min(count, len(anchors)))
    return [
        each
        if rng.random() < _AS_DECODED
        else Anchor(each.place, rng.randint(1, min(max_known, len(document.prompt) + each.place - 1)))
        for each in chosen
    ]
