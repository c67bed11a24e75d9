"""The exact distribution of short outputs: the masked target, enumerated from the likeliest branch on."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Sequence

import torch

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.sampling import SamplingParams, probabilities, process, unpack_mask
from xpress_struct.target.target import Target

__all__ = ["Tree"]

Ids = tuple[int, ...]

# Branches of a place that are told apart; the rest of its tokens is one outcome.
_BRANCHES = 32


class Tree:
    """Outputs of at most `horizon` tokens and their probabilities under autoregressive masked sampling.

    What is not expanded is one outcome: all outputs that begin so. The probabilities are exact whatever the
    budget; a larger one tells more outcomes apart.

    Args:
        matcher: at the start of the output; it is not moved.
        nodes: places whose distribution is asked for, each by a forward.

    Attributes:
        outcomes: probability of each, summing to 1.
    """

    def __init__(
        self,
        target: Target,
        prompt: Sequence[int],
        matcher: Matcher,
        params: SamplingParams,
        horizon: int,
        nodes: int,
    ) -> None:
        self._target, self._prompt, self._matcher = target, list(prompt), matcher
        self._params, self._horizon = params, horizon
        self._branches: dict[Ids, set[int]] = {}
        self.outcomes: dict[Hashable, float] = {}
        waiting: list[tuple[float, Ids]] = [(-1.0, ())]
        while waiting:
            weight, ids = heapq.heappop(waiting)
            if len(self._branches) == nodes:
                self.outcomes[ids] = -weight
                continue
            for token, share in self._expand(ids, -weight):
                heapq.heappush(waiting, (-share, (*ids, token)))

    def outcome(self, output: Sequence[int]) -> Hashable:
        """The outcome that an output belongs to."""
        ids: Ids = ()
        for token in output[: self._horizon]:
            if ids not in self._branches:
                break
            if token not in self._branches[ids]:
                return (ids, "another")
            ids = (*ids, token)
        return ids

    def _expand(self, ids: Ids, weight: float) -> list[tuple[int, float]]:
        """Branches behind an output with their probabilities; [] when it is whole."""
        matcher = self._matcher.fork()
        matcher.commit(ids)
        if matcher.ended or len(ids) == self._horizon:
            self.outcomes[ids] = weight
            return []
        forced = matcher.forced()
        if forced:
            self._branches[ids] = {forced[0]}
            return [(forced[0], weight)]
        row = self._row(ids, matcher)
        best = row.topk(min(_BRANCHES, len(row)))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        branches = [(token, weight * share) for token, share in pairs if share > 0]
        self._branches[ids] = {token for token, _ in branches}
        rest = float(row.index_fill(0, best.indices, 0.0).sum())
        if rest > 0:
            self.outcomes[ids, "another"] = weight * rest
        return branches

    def _row(self, ids: Ids, matcher: Matcher) -> torch.Tensor:
        logits = self._target.score(self._target.new_cache(), [*self._prompt, *ids], 1)[0]
        mask = unpack_mask(torch.from_numpy(matcher.mask()).to(logits.device), len(logits))
        return probabilities(process(logits, mask, self._params)).cpu()
