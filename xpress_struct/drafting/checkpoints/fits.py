"""Whether a drafter belongs to a target: sizes, taps, ids, tokens, and the prompts it was trained on."""

from __future__ import annotations

import hashlib
import warnings
from typing import TYPE_CHECKING

from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.drafting.config import DiffusionConfig
from xpress_struct.errors import DrafterMismatchError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from xpress_struct.target.target import TappedTarget

__all__ = ["PromptMismatchWarning", "check_fits", "template_fingerprint"]


class PromptMismatchWarning(UserWarning):
    """A drafter was trained on prompts of another form, so fewer of its drafts will be accepted."""


def check_fits(
    config: DiffusionConfig,
    target: TappedTarget,
    vocabulary: Vocabulary,
    tokenizer: PreTrainedTokenizerBase | None = None,
) -> None:
    """Checks what a checkpoint states against the target it is to draft for.

    Outputs stay exact with any drafter; one that does not fit would fail inside, or draft in vain.

    Args:
        vocabulary, tokenizer: of the target. Without a tokenizer the prompts are not compared.

    Raises:
        DrafterMismatchError: it does not fit.

    Warns:
        PromptMismatchWarning: it was trained with another chat template, or with thinking.
    """
    _check_sizes(config, target)
    _check_ids(config, target, vocabulary)
    if tokenizer is not None:
        _compare_prompts(config, tokenizer)


def template_fingerprint(tokenizer: PreTrainedTokenizerBase) -> str | None:
    """sha256 of the chat template, as `TrainedOn.template` states it; None without a template."""
    template = tokenizer.chat_template
    return hashlib.sha256(str(template).encode()).hexdigest() if template else None


def _check_sizes(config: DiffusionConfig, target: TappedTarget) -> None:
    mine, theirs = config.layers.hidden_size, target.hidden_size
    _require(mine == theirs, f"its hidden size is {mine}, the target's {theirs}")
    stated, last = config.trained_on.num_target_layers, target.num_layers - 1
    _require(
        stated in (None, target.num_layers),
        f"it was made for a target of {stated} layers, this one has {target.num_layers}",
    )
    deepest = max(config.taps)
    _require(
        deepest <= last,
        f"it reads layer {deepest} of the target, whose layers are 0 to {last}",
    )
    _require(
        deepest < last,
        f"it reads the target's last layer ({deepest}), which its makers take after the target's final norm; "
        "that is not supported",
    )


def _check_ids(config: DiffusionConfig, target: TappedTarget, vocabulary: Vocabulary) -> None:
    rows, mask = _embedding_rows(target), config.mask_token_id
    _require(
        0 <= mask < rows,
        f"its mask token is {mask}, the target's embedding has {rows} rows",
    )
    stated, width = config.trained_on.target_vocab_size, target.width
    _require(
        stated in (None, width),
        f"it was made for a target with logits for {stated} ids, this one has {width}",
    )
    reduced = config.draft_vocab_size
    _require(
        (reduced or 0) <= width,
        f"it drafts from {reduced} ids, the target has {width}",
    )
    # The tables of a head, and the ids of a reduced vocabulary, are those of `layers.vocab_size` tokens.
    mine = config.layers.vocab_size
    _require(
        mine == width or (config.head is None and reduced is None),
        f"its tables are made for {mine} ids, the target has {width}",
    )
    tokens = config.trained_on.vocabulary
    _require(
        tokens in (None, vocabulary.fingerprint),
        f"it was trained on other tokens (fingerprint {str(tokens)[:12]}, the target's "
        f"{vocabulary.fingerprint[:12]})",
    )


def _embedding_rows(target: TappedTarget) -> int:
    model = getattr(target, "model", None)  # of a TransformersTarget
    return target.width if model is None else int(model.get_input_embeddings().weight.shape[0])


def _require(fits: bool, otherwise: str) -> None:
    if not fits:
        raise DrafterMismatchError(
            f"The drafter does not fit the target: {otherwise}. "
            "Take the drafter that was made for this target."
        )


def _compare_prompts(config: DiffusionConfig, tokenizer: PreTrainedTokenizerBase) -> None:
    trained_on, template = config.trained_on, template_fingerprint(tokenizer)
    differs = []
    if trained_on.template not in (None, template):
        differs.append("another chat template")
    # Prompts are made with enable_thinking=False where the template knows it.
    if trained_on.enable_thinking and "enable_thinking" in str(tokenizer.chat_template):
        differs.append("enable_thinking=True, which is False here")
    if differs:
        warnings.warn(
            f"The drafter was trained on prompts with {' and '.join(differs)}: fewer drafts will be "
            "accepted. Outputs stay exact.",
            PromptMismatchWarning,
            stacklevel=3,
        )
