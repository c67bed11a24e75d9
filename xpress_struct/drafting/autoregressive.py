"""Autoregressive drafter: a smaller model of the same vocabulary guesses token by token.

The baseline of speculative decoding (arXiv 2211.17192), under the grammar's mask. With the coupled rule it
draws with the target's own noise, so its guess is right whenever both models would draw the same token.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.drafting.drafter import Draft, DraftContext, draft_params, same_vocabulary
from xpress_struct.errors import CacheRollbackError, DeadEndError
from xpress_struct.sampling import Noise, probabilities, process, unpack_mask
from xpress_struct.target.target import Target

__all__ = ["AutoregressiveDrafter"]


class AutoregressiveDrafter:
    """Guesses with a smaller causal language model.

    Args:
        target: the smaller model.
        vocabulary: its vocabulary; it must spell every id as the target's does.

    Raises:
        CacheRollbackError: the smaller model keeps a recurrent state, which cannot go back.
    """

    resumes = True
    name = "autoregressive"
    taps: tuple[int, ...] = ()
    longest = 16
    honours = frozenset({"draft_temperature", "draft_confidence"})

    def __init__(self, target: Target, vocabulary: Vocabulary) -> None:
        if target.no_speculation is not None:
            raise CacheRollbackError(f"The drafter cannot take guesses back: {target.no_speculation}.")
        self.target, self.vocabulary = target, vocabulary

    def begin(self, context: DraftContext) -> _Session:
        """Starts a request.

        Raises:
            TokenizerMismatchError: the target has other tokens.
        """
        same_vocabulary(self.vocabulary, context.vocabulary)
        return _Session(self.target, context)


class _Session:
    def __init__(self, target: Target, context: DraftContext) -> None:
        self._target, self._context = target, context
        self._params = draft_params(context)
        self._cache = target.new_cache()
        self._seen: list[int] = []

    def propose(
        self, output: Sequence[int], room: int, matcher: Matcher, noise: Noise, drafted: int = 0
    ) -> Draft:
        """One guess; the round asks again behind it."""
        ids = [*self._context.prompt, *output]
        if self._target.max_length is not None and len(ids) >= self._target.max_length:
            return Draft([])
        try:
            packed = matcher.mask()
        except DeadEndError:
            return Draft([])
        logits = self._read(ids)
        width = self._context.vocabulary.width
        mask = unpack_mask(torch.from_numpy(packed).to(logits.device), logits.shape[-1])
        scores = _fit(process(logits, mask, self._params), width)
        weights = probabilities(scores)
        confidence = float(weights.max())
        self._context.stats.note_draft(0, (), 1, confidence, float(torch.special.entr(weights).sum()))
        if confidence < (self._context.control.draft_confidence or 0.0):
            return Draft([])
        if self._params.greedy:
            return Draft([int(scores.argmax())])
        token = int((scores + noise.rows(len(ids), 1)[0].to(scores.device)).argmax())
        return Draft([token], None if self._context.rule == "coupled" else weights.unsqueeze(0))

    def _read(self, ids: list[int]) -> Tensor:
        """Logits behind the ids; only what the cache does not hold is run."""
        same = next(
            (i for i, (a, b) in enumerate(zip(self._seen, ids, strict=False)) if a != b),
            min(len(self._seen), len(ids)),
        )
        same = min(same, len(ids) - 1)
        if same < len(self._seen):
            self._cache.rollback_to([same])
        # Between rollbacks a sliding window keeps all it recorded, so that several guesses can be taken back.
        logits = self._target.score(self._cache, ids[same:], 1)[0]
        self._seen = ids
        return logits


def _fit(scores: Tensor, width: int) -> Tensor:
    """Scores of as many ids as the target has; padding ids cannot be drawn."""
    if scores.shape[-1] >= width:
        return scores[..., :width]
    return torch.nn.functional.pad(scores, (0, width - scores.shape[-1]), value=-torch.inf)
