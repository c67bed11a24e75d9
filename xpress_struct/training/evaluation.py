"""Evaluation: rounds of decoding, counted along responses that the target wrote by itself.

A greedy response is what greedy decoding writes again, whatever the drafter. So the rounds that decoding
would take are known from the drafts at its places, and all of these come from one forward of the drafter.
Only one thing differs from real decoding: behind a slot where a pass differs from the response, the next
parallel pass is shown winners under the response's masks in place of masks along the draft's own path.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from xpress_struct.model import Model
from xpress_struct.sampling import unpack_mask
from xpress_struct.training.anchors import Anchor, every_anchor
from xpress_struct.training.blocks import Blocks, pack
from xpress_struct.training.drafter import Scored, TrainedDrafter
from xpress_struct.training.features import FeatureCache, masks_of
from xpress_struct.training.shards import Document

__all__ = ["WAYS", "Counts", "Evaluation", "summary"]

WAYS = ("base", "sequential", "parallel")
"""How the drafts are made: the base logits as they are; refined one by one; refined in parallel passes."""


@dataclass(slots=True)
class Counts:
    """Rounds of one way to draft.

    Attributes:
        tokens: of the responses.
        chosen: of these, those that the grammar did not force.
        rounds: forwards of the target, those over the prompts included.
        offered, stood: by slot, how many blocks offered a chosen token there with all slots in front of it
            right, and how often it was right too.
    """

    tokens: int = 0
    chosen: int = 0
    rounds: int = 0
    offered: list[int] = field(default_factory=list)
    stood: list[int] = field(default_factory=list)

    @property
    def per_round(self) -> float:
        """Chosen tokens by round: what drafting gives beside the tokens that the grammar forces."""
        return self.chosen / self.rounds if self.rounds else 0.0

    @property
    def all_per_round(self) -> float:
        """Tokens by round, forced ones included."""
        return self.tokens / self.rounds if self.rounds else 0.0

    def add(self, other: Counts) -> None:
        """Adds other responses' counts."""
        self.tokens += other.tokens
        self.chosen += other.chosen
        self.rounds += other.rounds
        for mine, theirs in ((self.offered, other.offered), (self.stood, other.stood)):
            mine.extend([0] * (len(theirs) - len(mine)))
            for slot, count in enumerate(theirs):
                mine[slot] += count


class Evaluation:
    """Counts rounds on held-out documents.

    Args:
        documents: held-out, greedy ones, with features from the cache.
    """

    def __init__(self, model: Model, documents: Sequence[Document], features: FeatureCache) -> None:
        self._features = features
        self._width = model.target.width
        self._cases = [(document, masks_of(model, document)) for document in documents]

    @torch.no_grad()
    def run(self, drafter: TrainedDrafter) -> dict[str, dict[str, Counts]]:
        """Counts by category, then by way; the category "all" has the sum."""
        # "all" is there without a document too: few prompts may have none that is held out.
        result: dict[str, dict[str, Counts]] = {"all": {way: Counts() for way in WAYS}}
        for document, masks in self._cases:
            anchors = every_anchor(document, drafter.config.max_known)
            ways = self._ways(drafter, document, masks, anchors)
            for name in (document.category, "all"):
                mine = result.setdefault(name, {way: Counts() for way in WAYS})
                for way, counts in ways.items():
                    mine[way].add(counts)
        return result

    def _ways(
        self, drafter: TrainedDrafter, document: Document, masks: np.ndarray, anchors: list[Anchor]
    ) -> dict[str, Counts]:
        if not anchors:
            return {way: _rounds(document, {}) for way in WAYS}
        config = drafter.config
        device = drafter.device
        blocks = pack(
            document, self._features.of(document), anchors, config.block_size, config.mask_token_id
        ).to(device)
        legal = unpack_mask(torch.from_numpy(masks), self._width).to(device)[:, drafter.draft_ids]
        scored, passes = drafter(blocks), config.head.passes if config.head else 0
        counts = {}
        for way in WAYS:
            right = _right(scored, blocks, legal[blocks.places], drafter.draft_ids, way, passes)
            lengths = right.long().cumprod(-1).sum(-1).tolist()
            places = [anchor.place for anchor in anchors]
            counts[way] = _rounds(document, dict(zip(places, lengths, strict=True)))
            counts[way].offered, counts[way].stood = _by_slot(right, blocks)
        return counts


def _right(scored: Scored, blocks: Blocks, legal: Tensor, draft_ids: Tensor, way: str, passes: int) -> Tensor:
    """Whether the draft has the response's token, [A, K]."""

    def winners(logits: Tensor) -> Tensor:
        scores = logits.float().masked_fill(~legal, -torch.inf)
        # A forced token is written also when the drafter does not know it.
        best = torch.where(legal.any(-1), draft_ids[scores.argmax(-1)], -1)
        return torch.where(blocks.chosen, best, blocks.tokens)

    if way == "base":
        return (winners(scored.base) == blocks.tokens) & blocks.inside
    if way == "sequential":
        # As long as all is right the head reads the response itself.
        return (winners(scored.base + scored.bias(blocks.tokens)) == blocks.tokens) & blocks.inside
    drafted = draft_ids[scored.base.argmax(-1)]
    for _ in range(passes):
        drafted = winners(scored.base + scored.bias(drafted.clamp(min=0)))
    return (drafted == blocks.tokens) & blocks.inside


def _rounds(document: Document, lengths: dict[int, int]) -> Counts:
    """Counts rounds: each takes what is forced, as much of the draft as is right, what is forced behind it,
    and one token more."""
    total, rounds = len(document.response), 0
    place = _behind_forced(document, 0)
    while place < total:
        rounds += 1
        place = _behind_forced(document, place + lengths.get(place, 0)) + 1
        place = _behind_forced(document, place)
    return Counts(total, total - sum(document.forced), rounds)


def _behind_forced(document: Document, place: int) -> int:
    while place < len(document.response) and document.forced[place]:
        place += 1
    return place


def _by_slot(right: Tensor, blocks: Blocks) -> tuple[list[int], list[int]]:
    before = torch.cat((torch.ones_like(right[:, :1]), right[:, :-1]), dim=1).long().cumprod(-1).bool()
    offered = before & blocks.chosen
    return offered.sum(0).tolist(), (offered & right).sum(0).tolist()


def summary(result: dict[str, dict[str, Counts]]) -> Iterable[str]:
    """A line for each category."""
    for name, ways in result.items():
        figures = "  ".join(f"{way} {ways[way].per_round:.2f}" for way in WAYS)
        free = ways["base"]
        forced = 1 - free.chosen / free.tokens if free.tokens else 0.0
        yield f"{name:<10} {figures}  (chosen tokens a round; {forced:.0%} of {free.tokens} forced)"
