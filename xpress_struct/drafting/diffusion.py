"""The block-diffusion drafter: a backbone fills a block in one pass, a head refines it under the mask.

DFlash (arXiv 2602.06036) and xPress (arXiv 2608.02438). The block stands behind the context whose hidden
states the target has shown: `[known run, MASK, MASK, ...]`. What the grammar forced since the last forward is
in the known run, in front of the slot that the head counts as 0.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.drafting.block import draft_block
from xpress_struct.drafting.context_cache import ContextCache
from xpress_struct.drafting.control import Refine
from xpress_struct.drafting.denoising import MASKED, denoise
from xpress_struct.drafting.drafter import Draft, DraftContext
from xpress_struct.drafting.heads import Head
from xpress_struct.drafting.passes import Gains, Passes
from xpress_struct.drafting.refinement import Plan
from xpress_struct.drafting.weights import DraftWeights
from xpress_struct.errors import ArgumentError, DrafterMismatchError
from xpress_struct.sampling import Noise
from xpress_struct.target.target import TappedTarget

__all__ = ["DiffusionDrafter"]

# Tokens whose states wait to be fused.
_WAITING = 1024


class DiffusionDrafter:
    """Guesses a block at a time.

    Args:
        weights: the drafter, on its device and in its dtype.
        context_length: it reads the latest tokens of the context only, this many; None reads all.

    Raises:
        ArgumentError: `context_length` is not positive.
    """

    resumes = False

    def __init__(self, weights: DraftWeights, *, context_length: int | None = None) -> None:
        if context_length is not None and context_length < 1:
            raise ArgumentError(f"context_length={context_length}: it must be 1 or more, or None.")
        self.weights, self.context_length = weights, context_length
        config = weights.config
        self.taps = config.taps
        self.longest = config.offers
        kinds = {"xpress": "xpress", None: "dflash"}
        self.name = kinds.get(config.head.kind if config.head else None, "dspark")
        refines = {"refine", "refine_passes"} if config.head else set()
        self.honours = frozenset({"denoising_steps", "draft_temperature", "draft_confidence", *refines})
        self.gains = Gains()
        self._heads: WeakKeyDictionary[TappedTarget, Callable[[Tensor], Tensor]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def begin(self, context: DraftContext) -> _Session:
        """Starts a request.

        Raises:
            DrafterMismatchError: the target shows no hidden states, or others than the drafter reads.
        """
        target, config = context.target, self.weights.config
        size = getattr(target, "hidden_size", None)
        if size is None:
            raise DrafterMismatchError(
                f"The drafter {self.name!r} reads hidden states, which {type(target).__name__} does not show."
            )
        if size != config.layers.hidden_size:
            raise DrafterMismatchError(
                f"The drafter reads hidden states of size {config.layers.hidden_size}; the target's are of "
                f"size {size}."
            )
        return _Session(self, cast(TappedTarget, target), context)

    def output_head(self, target: TappedTarget) -> Callable[[Tensor], Tensor]:
        """Hidden states [n, d] -> the drafter's logits [n, Vd], by the target's head where it has none."""
        weights = self.weights
        if (rows := weights.lm_head) is not None:
            return lambda hidden: nn.functional.linear(hidden, rows)
        if weights.draft_ids is None:
            return target.head
        with self._lock:
            if target not in self._heads:
                self._heads[target] = target.head_of(weights.draft_ids)
            return self._heads[target]


class _Session:
    def __init__(self, drafter: DiffusionDrafter, target: TappedTarget, context: DraftContext) -> None:
        weights = drafter.weights
        self._weights, self._config, self._target, self._context = weights, weights.config, target, context
        self._head = cast("Head | None", weights.head)
        self._logits = drafter.output_head(target)
        self._window = drafter.context_length
        self._cache = ContextCache(self._window)
        self._states: list[Tensor] = []
        self._features: list[Tensor] = []
        self._held = 0
        control, head = context.control, weights.config.head
        self._kind: Refine = (control.refine or "parallel") if head else "none"
        passes = control.refine_passes or (head.passes if head else 1)
        most = self._config.offers
        shared = drafter.gains if context.rule == "coupled" else Gains()
        self._passes = Passes(most, shared) if passes == "auto" else Passes(min(passes, most))
        self._drafted_at = 0
        weight = weights.backbone.fc.weight
        self._device, self._dtype = weight.device, weight.dtype

    @torch.inference_mode()
    def read(self, states: Tensor) -> None:
        """Takes the target's states of tokens that stay; see `TappedSession`."""
        if self._window is not None and not self._held:
            self._held = max(0, len(states) - self._window)
            states = states[self._held :]
        self._held += len(states)
        self._states.append(states)
        # Fused where a block is asked for, which may never be; many of them take less room when fused.
        if sum(map(len, self._states)) > _WAITING:
            self._fuse()

    def _fuse(self) -> None:
        if self._states:
            # A long prompt's states come in one piece, which need not be there twice.
            states = self._states[0] if len(self._states) == 1 else torch.cat(self._states)
            states = states.to(self._device, self._dtype)
            self._features.append(self._weights.backbone.fuse(states))
            self._states = []

    @torch.inference_mode()
    def propose(
        self, output: Sequence[int], room: int, matcher: Matcher, noise: Noise, drafted: int = 0
    ) -> Draft:
        """A block's worth of guesses; none where more tokens are known than the drafter was trained on."""
        ids = [*self._context.prompt, *output]
        self._passes.learn(output[self._drafted_at :])
        known = ids[self._held :]
        if not self._held or len(known) > self._config.max_known:
            return Draft([])
        hidden, base = self._denoise(known)
        draft, history = draft_block(
            self._context,
            base,
            self._bias(hidden, ids),
            matcher,
            noise,
            len(ids),
            room,
            Plan(self._kind, self._passes.ask()),
            self._weights.draft_ids,
        )
        self._passes.note(history)
        self._drafted_at = len(output)
        return draft

    def _denoise(self, known: list[int]) -> tuple[Tensor, Tensor]:
        """Hidden states [B, d] of the block, and base logits [K, Vd] of the tokens that it offers."""
        config = self._config
        slots = config.offers
        size = len(known) + config.block_size - 1
        # The slot whose logits are those of the first token offered.
        first = len(known) - config.predicts_next
        hidden: list[Tensor] = []

        def score(filled: Tensor) -> Tensor:
            # A token behind the last slot may be offered; it is never read.
            block = torch.full((size + 1,), config.mask_token_id, device=self._device)
            block[: len(known)] = _to_device(known, self._device)
            filled = filled.to(self._device, non_blocking=True)
            rest = block[len(known) : len(known) + slots]
            block[len(known) : len(known) + slots] = torch.where(filled == MASKED, rest, filled)
            hidden[:] = [self._forward(block[:size])]
            return self._weights.backbone.logits(self._logits(hidden[0][first : first + slots]))

        base = denoise(score, slots, self._context.control.denoising_steps or 1, self._target_ids)
        return hidden[0][len(known) - 1 :], base

    def _forward(self, block: Tensor) -> Tensor:
        """Hidden states [q, d] of a block of ids [q] behind the context."""
        backbone, target = self._weights.backbone, self._target
        embedded = target.embed(block.to(target.device)).to(self._device, self._dtype)
        if self._config.embedding_scale != 1.0:
            embedded = embedded * self._config.embedding_scale
        self._fuse()
        features = torch.cat([embedded[:0], *self._features])
        self._features = []
        hidden: Tensor = backbone(features, embedded, self._held, self._cache)
        return hidden

    def _bias(self, hidden: Tensor, ids: list[int]) -> Callable[[Tensor], Tensor] | None:
        """The head's bias on the tokens offered, as a function of these tokens."""
        head = self._head
        if head is None:
            return None
        prepared = head.prepare(hidden)
        # The head's slot 0 is the anchor's; where it offers nothing, its place still stands to the left.
        left = ids[-1:] if self._config.predicts_next else [ids[max(0, len(ids) - 2)], ids[-1]]
        lead = _to_device(left, hidden.device)
        slots = self._config.offers
        prepared = prepared[: len(left) + slots - 1]

        def bias(tokens: Tensor) -> Tensor:
            return head.bias(torch.cat([lead, tokens[:-1]]), prepared)[-slots:]

        return bias

    def _target_ids(self, columns: Tensor) -> Tensor:
        ids = self._weights.draft_ids
        return columns if ids is None else ids[columns]


def _to_device(ids: list[int], device: torch.device) -> Tensor:
    """int64 [n], sent without a wait: `torch.tensor(ids, device=...)` would wait for the device."""
    return torch.tensor(ids).to(device, non_blocking=True)
