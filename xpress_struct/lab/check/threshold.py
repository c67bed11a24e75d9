"""The refiner that blog posts describe, to show that `check` finds it. LOSSY: never a way of decoding.

It keeps a drafted token when the target gives it at least tau, draws another from the target where it does
not, and goes on with the next drafted token. Kept tokens are the drafter's, not the target's, and what
follows a redrawn token was scored behind the one that it replaced. xPress (arXiv 2608.02438) does neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.matcher import FreeMatcher, Matcher
from xpress_struct.drafting.drafter import DraftContext, TappedSession
from xpress_struct.drafting.loading import as_drafter
from xpress_struct.errors import ArgumentError
from xpress_struct.lab.check.decoders import Ask
from xpress_struct.model import Model
from xpress_struct.sampling import Noise, NoiseKey, SamplingParams, draw, probabilities, process, unpack_mask

__all__ = ["LossyThresholdRefiner"]


class LossyThresholdRefiner:
    """A `Decode` for `check`, which must fail it. LOSSY.

    Args:
        drafter: whose tokens are kept.
        tau: the probability from which on they are, above 0 and at most 1.
        length: K, tokens of a draft.

    Raises:
        ArgumentError: there is no drafter, or tau is outside its range.
    """

    lossy = True

    def __init__(self, drafter: Any, tau: float = 0.3, length: int = 8) -> None:
        chosen = as_drafter(drafter)
        if chosen is None:
            raise ArgumentError("The threshold refiner keeps a drafter's tokens; give it a drafter.")
        if not 0 < tau <= 1:
            raise ArgumentError(f"tau={tau!r}: it must be above 0 and at most 1.")
        self._drafter, self._tau, self._length = chosen, tau, length

    def __call__(
        self, model: Model, prompt: Sequence[int], constraint: Constraint | None, ask: Ask
    ) -> Sequence[int]:
        """Output ids; the rule that is asked for plays no part."""
        vocabulary, target, params = model.vocabulary, model.target, SamplingParams(ask.temperature)
        matcher: Matcher = FreeMatcher(vocabulary)
        if constraint is not None:
            matcher, _ = constraint.matcher(vocabulary)
        session = self._drafter.begin(DraftContext(tuple(prompt), vocabulary, params, "token", target))
        taps = self._drafter.taps
        cache = target.new_cache(taps) if taps else target.new_cache()  # type: ignore[call-arg]
        key, output, pending = NoiseKey(ask.seed), list[int](), list(prompt)
        while not matcher.ended and len(output) < ask.max_new_tokens:
            left = ask.max_new_tokens - len(output)
            fresh = key.fresh(len(output))
            draft = session.propose(
                output, min(self._length, left), matcher.fork(), Noise(fresh, target.width)
            )
            tokens = draft.tokens[: left - 1]
            logits = target.score(cache, [*pending, *tokens], len(tokens) + 1)
            if taps:
                states: Tensor = cache.tapped  # type: ignore[assignment]
            cache.rollback_to([cache.lengths[0] - len(tokens)])
            if taps:
                tapped: TappedSession = session  # type: ignore[assignment]
                tapped.read(states[: len(states) - len(tokens)])
            pending = self._refine(logits, tokens, matcher, params, fresh, len(prompt) + len(output))
            output += pending
        return output

    def _refine(
        self,
        logits: Tensor,
        draft: Sequence[int],
        matcher: Matcher,
        params: SamplingParams,
        key: NoiseKey,
        place: int,
    ) -> list[int]:
        """The draft with its unlikely tokens drawn again, and one token more."""
        kept: list[int] = []
        for slot, row in enumerate(logits):
            if matcher.ended:
                break
            mask = unpack_mask(torch.from_numpy(matcher.mask()).to(row.device), len(row))
            p = probabilities(process(row, mask, SamplingParams(params.temperature or 1.0)))
            if slot < len(draft) and float(p[draft[slot]]) >= self._tau:
                token = draft[slot]
            else:
                token = int(p.argmax()) if params.greedy else draw(p, key, place + slot)
            matcher.commit([token])
            kept.append(token)
        return kept
