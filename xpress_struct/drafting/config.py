"""What a block-diffusion drafter's weights are: sizes, conventions, and the target they belong to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from transformers import Qwen3Config

__all__ = ["DiffusionConfig", "HeadConfig", "TrainedOn"]


@dataclass(frozen=True, slots=True)
class HeadConfig:
    """A head that refines a block.

    Attributes:
        kind: "xpress" (arXiv 2608.02438), or a Markov head (DSpark, arXiv 2607.05147): "vanilla",
            "gated", "rnn".
        rank: r.
        mlp_hidden: hidden width of the xPress head's MLP.
        passes: parallel passes that the checkpoint recommends.
    """

    kind: Literal["xpress", "vanilla", "gated", "rnn"]
    rank: int
    mlp_hidden: int = 0
    passes: int = 6


@dataclass(frozen=True, slots=True)
class TrainedOn:
    """What a drafter was trained for, where its checkpoint says so; None where it does not.

    Attributes:
        target: name or path of the target.
        num_target_layers, target_vocab_size: of that target.
        vocabulary: hash of its tokens (`Vocabulary.fingerprint`).
        template: hash of its chat template.
        enable_thinking: whether prompts asked for thinking.
    """

    target: str | None = None
    num_target_layers: int | None = None
    target_vocab_size: int | None = None
    vocabulary: str | None = None
    template: str | None = None
    enable_thinking: bool | None = None


@dataclass(frozen=True)
class DiffusionConfig:
    """A DFlash drafter (arXiv 2602.06036), with the variants that are published.

    Attributes:
        layers: the decoder layers, as the Qwen3 config that checkpoints carry; `hidden_size` is the target's,
            `layer_types` may name sliding layers.
        block_size: B, slots of a block, the anchor's included.
        mask_token_id: id that stands in the slots to be filled.
        taps: layers of the target whose outputs are read, counted from 0 (z-lab's numbers).
        predicts_next: False: slot k holds the logits of the token at slot k, so a block offers B - 1
            tokens (DFlash, xPress). True: of the token at slot k + 1, so it offers B (DeepSpec;
            `sample_from_anchor`).
        sliding_is_causal, full_is_causal: whether slots of such a layer see only slots to their left.
        embedding_scale: factor on the target's raw input embeddings.
        output_multiplier, logit_softcap: what is done to the logits; 1 and None do nothing.
        draft_vocab_size: Vd, width of the drafter's own logits; None when they are the target's.
        max_known: longest run of known tokens in front of a block that it was trained on.
        head: the refiner, or None.
        trained_on: what it belongs to.
    """

    layers: Qwen3Config
    block_size: int
    mask_token_id: int
    taps: tuple[int, ...]
    predicts_next: bool = False
    sliding_is_causal: bool = True
    full_is_causal: bool = False
    embedding_scale: float = 1.0
    output_multiplier: float = 1.0
    logit_softcap: float | None = None
    draft_vocab_size: int | None = None
    max_known: int = 1
    head: HeadConfig | None = None
    trained_on: TrainedOn = field(default_factory=TrainedOn)

    @property
    def offers(self) -> int:
        """Tokens that a block offers."""
        return self.block_size if self.predicts_next else self.block_size - 1
