"""ConstraintLogitsProcessor: the mask of a constraint for every decoding method of `generate`."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from transformers import LogitsProcessor

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.errors import ArgumentError, TokenizerMismatchError, UnsupportedFeatureError
from xpress_struct.integrations.transformers.shared import (
    Constraints,
    constraint_list,
    ids_of,
    row_constraint,
    vocabulary_of,
)
from xpress_struct.sampling import unpack_mask

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["ConstraintLogitsProcessor"]

_KEPT_STATES = 128


class ConstraintLogitsProcessor(LogitsProcessor):  # type: ignore[misc]
    """Bars every token that a constraint does not allow, in any decoding method of `generate`.

        inputs = tokenizer(prompts, return_tensors="pt", padding=True)
        mask = ConstraintLogitsProcessor(constraint, tokenizer, inputs["input_ids"].shape[1])
        model.generate(**inputs, logits_processor=[mask], num_beams=4)

    What a row may say is a function of its ids behind the prompt, and of nothing else. So rows may be
    reordered (beam search), go back and come again (prompt lookup, an assistant model). Scores are never
    changed in place. A row that has left the constraint, as a rejected draft does, and one that has ended get
    the end token alone.

    It masks and does no more: a text cut by `max_new_tokens` is not whole. Make one for each `generate` call;
    that is cheap.

    Args:
        constraint: for every row, or a list with one for each prompt; None leaves a row free.
        tokenizer: of the model.
        prompt_length: tokens before the output, padding included: the width of `input_ids`.
        eos_token_id: id or ids at which `generate` stops, where they differ from the tokenizer's.

    Raises:
        ArgumentError: there is no end token, so that a finished text could not be ended.
        UnsupportedFeatureError: a constraint has checks that a mask cannot make.
        DeadEndError: when called: the vocabulary cannot spell what the constraint asks for.
    """

    supports_continuous_batching = False

    def __init__(
        self,
        constraint: Constraints,
        tokenizer: PreTrainedTokenizerBase,
        prompt_length: int,
        *,
        eos_token_id: Any = None,
    ) -> None:
        if isinstance(prompt_length, bool) or not isinstance(prompt_length, int) or prompt_length < 0:
            raise ArgumentError(f"prompt_length={prompt_length!r}: it is the width of input_ids.")
        self._constraints = constraint_list(constraint)
        for each in self._constraints:
            if each is not None and each.checked_after:
                names = ", ".join(sorted({item.keyword for item in each.checked_after}))
                raise UnsupportedFeatureError(
                    f"This constraint is partly checked after generation ({names}), which a mask cannot "
                    "do. Use XPressGenerate.",
                    feature="ConstraintLogitsProcessor",
                )
        self._vocabulary = vocabulary_of(tokenizer, None, ids_of(eos_token_id))
        if self._vocabulary.end_id is None:
            raise ArgumentError(
                "A finished text needs an end token: pass eos_token_id, the one that generate() stops at."
            )
        self._prompt_length = prompt_length
        self._states: OrderedDict[tuple[int, tuple[int, ...]], _State] = OrderedDict()

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Scores [rows, V] with minus infinity where a token is illegal, given the rows' ids [rows, n]."""
        rows, width = scores.shape[0], scores.shape[-1]
        if width < len(self._vocabulary.tokens):
            raise TokenizerMismatchError(
                f"The tokenizer has {len(self._vocabulary.tokens)} ids but the scores are for {width}: pass "
                "the tokenizer of the model. An assistant model must share it."
            )
        if input_ids.shape[-1] < self._prompt_length:
            raise ArgumentError(
                f"The rows have {input_ids.shape[-1]} tokens, fewer than prompt_length="
                f"{self._prompt_length}: make a processor for each generate() call."
            )
        masks, constrained = [], []
        for row, ids in enumerate(input_ids[:, self._prompt_length :].tolist()):
            index = row_constraint(len(self._constraints), row, rows)
            if self._constraints[index] is not None:
                masks.append(self._state(index, tuple(ids)).mask())
                constrained.append(row)
        barred = torch.zeros(scores.shape, dtype=torch.bool, device=scores.device)
        if constrained:
            packed = torch.from_numpy(np.stack(masks)).to(scores.device)
            barred[constrained] = ~unpack_mask(packed, width)
        return scores.masked_fill(barred, -math.inf)

    def _state(self, index: int, output: tuple[int, ...]) -> _State:
        """Where an output stands under a constraint: from the longest part of it that is still known."""
        for length in range(len(output), -1, -1):
            known = self._states.get((index, output[:length]))
            if known is not None:
                break
        else:
            constraint = self._constraints[index]
            assert constraint is not None
            length, known = 0, _State(constraint.matcher(self._vocabulary)[0], self._end_mask())
        if length < len(output):
            known = known.after(output[length:])
        self._states[index, output] = known
        self._states.move_to_end((index, output))
        if len(self._states) > _KEPT_STATES:
            self._states.popitem(last=False)
        return known

    def _end_mask(self) -> np.ndarray:
        bits = np.zeros(len(self._vocabulary.tokens), dtype=np.uint8)
        bits[self._vocabulary.end_id] = 1
        return np.packbits(bits, bitorder="little")


class _State:
    """A place in a constraint and its packed mask.

    Args:
        matcher: at the place; None where the output has left the constraint.
        end: packed mask of the end token alone.
    """

    def __init__(self, matcher: Matcher | None, end: np.ndarray) -> None:
        self._matcher, self._end = matcher, end
        self._mask: np.ndarray | None = None

    def mask(self) -> np.ndarray:
        if self._mask is None:
            ended = self._matcher is None or self._matcher.ended
            self._mask = self._end if ended else self._matcher.mask()  # type: ignore[union-attr]
        return self._mask

    def after(self, tokens: tuple[int, ...]) -> _State:
        """The state after more tokens."""
        matcher = None if self._matcher is None else self._matcher.fork()
        if matcher is not None and matcher.follow(tokens) < len(tokens):
            matcher = None
        return _State(matcher, self._end)
