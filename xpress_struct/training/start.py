"""A drafter before training: its sizes, and weights that begin as the target's own last layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from xpress_struct.drafting.backbone import Backbone
from xpress_struct.drafting.checkpoints.fits import template_fingerprint
from xpress_struct.drafting.config import DiffusionConfig, HeadConfig, TrainedOn
from xpress_struct.drafting.heads import make_head
from xpress_struct.drafting.weights import DraftWeights
from xpress_struct.errors import ArgumentError
from xpress_struct.model import Model
from xpress_struct.target.taps import decoder_layers
from xpress_struct.training.shards import Document

if TYPE_CHECKING:
    from transformers import Qwen3Config

__all__ = ["DrafterSizes", "draft_vocabulary", "new_weights", "tap_layers"]

_RESPONSE_COUNTS = 4
_COUNTED = 0.6
_MEASURED = 8


@dataclass(frozen=True, slots=True)
class DrafterSizes:
    """Sizes of a new drafter; width, heads and MLP are the target's.

    Attributes:
        layers, taps: how many.
        block_size: B, the anchor's slot included.
        draft_vocab_size: Vd.
        rank, mlp_hidden: of the xPress head.
        passes: parallel passes that the checkpoint recommends.
        max_known: longest known run that it is trained on.
    """

    layers: int = 2
    taps: int = 3
    block_size: int = 16
    draft_vocab_size: int = 10240
    rank: int = 128
    mlp_hidden: int = 256
    passes: int = 4
    max_known: int = 32


def tap_layers(num_layers: int, taps: int) -> tuple[int, ...]:
    """Layers to read, spread as in DFlash: from the second to the last but two."""
    deepest = max(num_layers - 3, 0)
    first = min(1, deepest)
    step = (deepest - first) / max(taps - 1, 1)
    return tuple(sorted({round(first + index * step) for index in range(taps)} | {deepest}))


def draft_vocabulary(documents: Sequence[Document], texts: Iterable[str], model: Model, size: int) -> Tensor:
    """The ids [Vd] a drafter knows: all single bytes of ASCII and the end, then the most frequent ones.

    Six of ten are counted, the others are the lowest ids: vocabularies made by merging have the most frequent
    tokens first, and structured texts know little of plain ones.

    Args:
        documents: those to train on; a token of a response counts four times one of a prompt.
        texts: more to count in, as prompts.
    """
    tokens = model.vocabulary.tokens
    kept = {i for i, spelled in enumerate(tokens) if len(spelled) == 1 and spelled[0] < 128}
    kept |= set(model.vocabulary.end_ids)
    counts: Counter[int] = Counter()
    for document in documents:
        counts.update(document.prompt)
        for token in document.response:
            counts[token] += _RESPONSE_COUNTS
    for text in texts:
        counts.update(model.vocabulary.encode(text))
    counted = [token for token, _ in counts.most_common(round(_COUNTED * size))]
    for token in (*counted, *range(model.target.width)):
        if len(kept) >= size:
            break
        kept.add(token)
    return torch.tensor(sorted(kept))


def new_weights(
    model: Model, documents: Sequence[Document], sizes: DrafterSizes, texts: Iterable[str] = ()
) -> DraftWeights:
    """A drafter that begins as the target's last layers, as far as they are of the same kind, and that
    speaks through the target's output head.

    Its layers normalise queries and keys. Where the target's do not, these norms start at the size that the
    target's queries and keys have on a few of the documents.

    Args:
        documents: those to train on.
        texts: more that the draft vocabulary is counted in.
    """
    target: Any = model.target
    draft_ids = draft_vocabulary(documents, texts, model, sizes.draft_vocab_size)
    config = DiffusionConfig(
        layers=_layers(target.model.config.get_text_config(), sizes.layers, target.width),
        block_size=sizes.block_size,
        mask_token_id=_mask_token(model),
        taps=tap_layers(target.num_layers, sizes.taps),
        draft_vocab_size=len(draft_ids),
        max_known=sizes.max_known,
        head=HeadConfig("xpress", sizes.rank, sizes.mlp_hidden, sizes.passes),
        trained_on=TrainedOn(
            target=_name(target.model),
            num_target_layers=target.num_layers,
            target_vocab_size=target.width,
            vocabulary=model.vocabulary.fingerprint,
            template=template_fingerprint(model.tokenizer) if model.tokenizer else None,
            enable_thinking=False,
        ),
    )
    backbone = Backbone(config)
    _copy_layers(backbone, target.model, documents[:_MEASURED])
    return DraftWeights(config, backbone, make_head(config, target.width), draft_ids)


def _name(model: Any) -> str | None:
    """The hub id of a model, or the last part of the path of its folder."""
    name = str(getattr(model.config, "name_or_path", "") or "")
    return (Path(name).name if Path(name).is_dir() else name) or None


def _layers(target: Any, count: int, width: int) -> Qwen3Config:
    from transformers import Qwen3Config

    heads = target.num_attention_heads
    return Qwen3Config(
        vocab_size=width,
        hidden_size=target.hidden_size,
        intermediate_size=target.intermediate_size,
        num_hidden_layers=count,
        num_attention_heads=heads,
        num_key_value_heads=getattr(target, "num_key_value_heads", heads),
        head_dim=getattr(target, "head_dim", None) or target.hidden_size // heads,
        rms_norm_eps=getattr(target, "rms_norm_eps", 1e-6),
        rope_parameters=getattr(target, "rope_parameters", None),
        max_position_embeddings=target.max_position_embeddings,
        layer_types=["full_attention"] * count,
    )


def _mask_token(model: Model) -> int:
    """A special token that neither prompts nor responses have."""
    tokenizer, ends = model.tokenizer, set(model.vocabulary.end_ids)
    template = str(getattr(tokenizer, "chat_template", None))
    added: dict[int, Any] = dict(getattr(tokenizer, "added_tokens_decoder", {}))
    free = [i for i, token in added.items() if token.special and str(token) not in template]
    unused = [i for i in free if i not in ends]
    if not unused:
        raise ArgumentError("The tokenizer has no special token that prompts leave free to stand for a mask.")
    return max(unused)


def _copy_layers(backbone: Backbone, model: Any, documents: Sequence[Document]) -> None:
    sources: list[Any] = list(decoder_layers(model))[-len(backbone.layers) :]
    sizes = _sizes_of_queries_and_keys(model, sources, documents)
    with torch.no_grad():
        layers: Iterable[Any] = backbone.layers
        for mine, source, (queries, keys) in zip(layers, sources, sizes, strict=True):
            attention = mine.self_attn
            attention.q_norm.weight.fill_(queries)
            attention.k_norm.weight.fill_(keys)
            _copy(mine, source)
        nn.init.normal_(backbone.fc.weight, std=0.01)
        width = backbone.fc.out_features
        # The deepest tap shows what the last layer but one of the target reads.
        backbone.fc.weight[:, -width:] += torch.eye(width)
        if hasattr(sources[0], "input_layernorm"):
            _copy(backbone.hidden_norm, sources[0].input_layernorm)
        if (norm := getattr(getattr(model, "model", None), "norm", None)) is not None:
            _copy(backbone.norm, norm)


def _copy(mine: nn.Module, source: nn.Module) -> None:
    theirs = source.state_dict()
    for name, value in mine.state_dict().items():
        if name in theirs and theirs[name].shape == value.shape:
            value.copy_(theirs[name])


def _sizes_of_queries_and_keys(
    model: Any, sources: Sequence[nn.Module], documents: Sequence[Document]
) -> list[tuple[float, float]]:
    """Root mean squares of each layer's queries and keys by head; 1 where it has norms of its own."""
    attentions = [getattr(source, "self_attn", None) for source in sources]
    with _watched(attentions) as seen:
        for document in documents:
            ids = torch.tensor([[*document.prompt, *document.response]], device=model.device)
            with torch.no_grad():
                model(input_ids=ids, use_cache=False)
    return [(_mean(seen.get((i, "q_proj"))), _mean(seen.get((i, "k_proj")))) for i in range(len(sources))]


@contextmanager
def _watched(attentions: Sequence[Any]) -> Iterator[dict[tuple[int, str], list[float]]]:
    seen: dict[tuple[int, str], list[float]] = {}
    hooks = []
    for index, attention in enumerate(attentions):
        for name in ("q_proj", "k_proj"):
            if hasattr(attention, name) and not hasattr(attention, "q_norm"):
                places = seen.setdefault((index, name), [])
                hooks.append(
                    getattr(attention, name).register_forward_hook(_noter(attention.head_dim, places))
                )
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _noter(head_dim: int, places: list[float]) -> Any:
    def note(module: nn.Module, inputs: Any, output: Tensor) -> None:
        heads = output.float().reshape(-1, head_dim)
        places.append(float(heads.pow(2).mean(-1).sqrt().mean()))

    return note


def _mean(values: list[float] | None) -> float:
    return sum(values) / len(values) if values else 1.0
