"""Masked-language-model drafter: a bidirectional model fills masked slots behind the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.drafting.block import draft_block
from xpress_struct.drafting.denoising import MASKED, denoise
from xpress_struct.drafting.drafter import Draft, DraftContext, same_vocabulary
from xpress_struct.drafting.refinement import Plan
from xpress_struct.errors import ArgumentError
from xpress_struct.sampling import Noise

__all__ = ["MaskedDrafter"]

_LONGEST_CONTEXT = 512


class MaskedDrafter:
    """Guesses with a masked language model, or a diffusion language model of that interface.

    It has no cache: each round runs the latest part of the text again.

    Args:
        model: `input_ids` -> `logits`, each slot's own; of transformers.
        vocabulary: its vocabulary; it must spell every id as the target's does.
        mask_token_id: id of the mask.
        context_length: tokens of the text that it reads; by default what its positions allow, at most 512.

    Raises:
        ArgumentError: the mask is no id of the model, or no context is left to read.
    """

    resumes = False
    name = "masked"
    taps: tuple[int, ...] = ()
    longest = 16
    honours = frozenset({"denoising_steps", "draft_temperature", "draft_confidence"})

    def __init__(
        self, model: Any, vocabulary: Vocabulary, mask_token_id: int, *, context_length: int | None = None
    ) -> None:
        self.model, self.vocabulary, self.mask_token_id = model.eval(), vocabulary, mask_token_id
        rows = model.get_input_embeddings().weight.shape[0]
        if not 0 <= mask_token_id < rows:
            raise ArgumentError(f"mask_token_id={mask_token_id}: the model has the ids 0 to {rows - 1}.")
        positions: int = getattr(model.config, "max_position_embeddings", None) or 1 << 30
        self.positions = positions
        if context_length is None:
            context_length = min(_LONGEST_CONTEXT, positions - self.longest)
        if not 1 <= context_length < positions:
            raise ArgumentError(
                f"context_length={context_length}: it must be between 1 and {positions - 1} for this model."
            )
        self.context_length = context_length

    def begin(self, context: DraftContext) -> _Session:
        """Starts a request.

        Raises:
            TokenizerMismatchError: the target has other tokens.
        """
        same_vocabulary(self.vocabulary, context.vocabulary)
        return _Session(self, context)


class _Session:
    def __init__(self, drafter: MaskedDrafter, context: DraftContext) -> None:
        self._drafter, self._context = drafter, context

    @torch.inference_mode()
    def propose(
        self, output: Sequence[int], room: int, matcher: Matcher, noise: Noise, drafted: int = 0
    ) -> Draft:
        """A block's worth of guesses."""
        drafter, context = self._drafter, self._context
        ids = [*context.prompt, *output]
        slots = min(max(room, drafter.longest), drafter.positions - 1)
        text = torch.tensor(ids[-min(drafter.context_length, drafter.positions - slots) :])
        device = drafter.model.device

        def score(filled: Tensor) -> Tensor:
            block = filled.masked_fill(filled == MASKED, drafter.mask_token_id)
            block = torch.cat([text.to(device, non_blocking=True), block.to(device, non_blocking=True)])
            logits: Tensor = drafter.model(input_ids=block[None]).logits[0, -slots:]
            return logits

        base = denoise(score, slots, context.control.denoising_steps or 1, lambda columns: columns)
        plan = Plan("none", passes=0)
        return draft_block(context, base, None, matcher, noise, len(ids), room, plan)[0]
