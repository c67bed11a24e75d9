"""The backbone of a block-diffusion drafter (DFlash, arXiv 2602.06036).

A few decoder layers look at a block of known and masked tokens, and read hidden states that were tapped
from the target as further keys and values. Modules are named as in the published checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers.models.qwen3.modeling_qwen3 import (
    Qwen3MLP,
    Qwen3RMSNorm,
    Qwen3RotaryEmbedding,
    rotate_half,
)

from xpress_struct.drafting.config import DiffusionConfig
from xpress_struct.drafting.context_cache import ContextCache
from xpress_struct.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from transformers import Qwen3Config

__all__ = ["Backbone"]

_FULL, _SLIDING = "full_attention", "sliding_attention"

Rope = tuple[Tensor, Tensor]
"""Cosines and sines, [1, tokens, head_dim]."""

Write = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Keys and values of the new tokens -> those of all tokens; see `ContextCache.write`."""


class Backbone(nn.Module):
    """Hidden states of a block, from its input embeddings and the target's tapped states.

    Raises:
        UnsupportedFeatureError: a layer is neither full nor sliding attention.
    """

    def __init__(self, config: DiffusionConfig) -> None:
        super().__init__()
        layers = config.layers
        unknown = sorted(set(layers.layer_types) - {_FULL, _SLIDING})
        if unknown:
            raise UnsupportedFeatureError(
                f"The drafter has layers of the types {unknown}; known are {_FULL} and {_SLIDING}.",
                feature="layer_types",
            )
        self.config = config
        self.layers = nn.ModuleList(_Layer(layers) for _ in range(layers.num_hidden_layers))
        self.fc = nn.Linear(len(config.taps) * layers.hidden_size, layers.hidden_size, bias=False)
        self.hidden_norm = Qwen3RMSNorm(layers.hidden_size, eps=layers.rms_norm_eps)
        self.norm = Qwen3RMSNorm(layers.hidden_size, eps=layers.rms_norm_eps)
        self.rotary_emb = _rotary(layers, "cpu")

    def fuse(self, states: Tensor) -> Tensor:
        """Context features [n, d] of tapped states [n, taps * d]."""
        features: Tensor = self.hidden_norm(self.fc(states))
        return features

    def forward(
        self, features: Tensor, embedded: Tensor, start: int, cache: ContextCache | None = None
    ) -> Tensor:
        """Hidden states of a block, behind the final norm.

        Args:
            features: [n, d], context features that the cache does not hold yet, of the tokens at positions
                start - n .. start - 1; n may be 0.
            embedded: [q, d], the block's input embeddings, scaled, at positions start .. start + q - 1.
            start: absolute position of the block.
            cache: the context so far, which takes the features in. Without one the features are the whole
                context, and gradients reach them.

        Returns:
            [q, d].
        """
        block, device = embedded.shape[0], embedded.device
        context = features.shape[0]
        if cache is not None:
            kept = cache.extend(context, block, start, self._cache_shape, embedded)
            features, context = features[context - kept :], cache.length
        positions = torch.arange(start - features.shape[0], start + block, device=device)
        rope: Rope = self.rotary_emb(embedded[None], positions[None])
        types = self.config.layers.layer_types
        visible = {kind: self._visible(kind, block, context, device) for kind in set(types)}
        hidden = embedded[None]
        for index, layer in enumerate(self.layers):
            write = None if cache is None else partial(cache.write, index)
            hidden = layer(hidden, features[None], rope, visible[types[index]], write)
        normed: Tensor = self.norm(hidden)
        return normed[0]

    def logits(self, raw: Tensor) -> Tensor:
        """Scales and caps what the output head gives, [.., V]."""
        config = self.config
        if config.output_multiplier != 1.0:
            raw = raw * config.output_multiplier
        if config.logit_softcap is not None:
            raw = torch.tanh(raw / config.logit_softcap) * config.logit_softcap
        return raw

    @property
    def _cache_shape(self) -> tuple[int, int, int]:
        layers = self.config.layers
        return layers.num_hidden_layers, layers.num_key_value_heads, _head_dim(layers)

    def _visible(self, kind: str, block: int, context: int, device: torch.device) -> Tensor | None:
        """Which of the latest tokens a block's slots see.

        Returns:
            Booleans [block, tokens]; None when every slot sees everything.
        """
        window = self.config.layers.sliding_window if kind == _SLIDING else None
        causal = self.config.sliding_is_causal if kind == _SLIDING else self.config.full_is_causal
        tokens = context + block
        if window is not None and window < tokens:
            tokens = min(context, window - 1) + block
        elif not causal:
            return None
        slots = torch.arange(tokens - block, tokens, device=device)[:, None]
        ahead = torch.arange(tokens, device=device)[None, :] - slots
        visible = ahead <= 0 if causal else torch.ones_like(ahead, dtype=torch.bool)
        if window is not None:
            visible = visible & (ahead.abs() < window)
        return visible

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Backbone:
        """Moves and casts; the rotary frequencies stay float32, or far positions would blur."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.rotary_emb = _rotary(self.config.layers, self.norm.weight.device)
        return self


class _Layer(nn.Module):
    def __init__(self, config: Qwen3Config) -> None:
        super().__init__()
        self.self_attn = _Attention(config)
        self.mlp = Qwen3MLP(config)
        self.input_layernorm = Qwen3RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_attention_layernorm = Qwen3RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(
        self, hidden: Tensor, features: Tensor, rope: Rope, visible: Tensor | None, write: Write | None
    ) -> Tensor:
        hidden = hidden + self.self_attn(self.input_layernorm(hidden), features, rope, visible, write)
        hidden = hidden + self.mlp(self.post_attention_layernorm(hidden))
        return hidden


class _Attention(nn.Module):
    """Queries of the block only; keys and values of context features and block."""

    def __init__(self, config: Qwen3Config) -> None:
        super().__init__()
        self.head_dim = _head_dim(config)
        width, bias = config.hidden_size, config.attention_bias
        query_width = config.num_attention_heads * self.head_dim
        key_width = config.num_key_value_heads * self.head_dim
        self.q_proj = nn.Linear(width, query_width, bias=bias)
        self.k_proj = nn.Linear(width, key_width, bias=bias)
        self.v_proj = nn.Linear(width, key_width, bias=bias)
        self.o_proj = nn.Linear(query_width, width, bias=bias)
        self.q_norm = Qwen3RMSNorm(self.head_dim, eps=config.rms_norm_eps)
        self.k_norm = Qwen3RMSNorm(self.head_dim, eps=config.rms_norm_eps)

    def forward(
        self, hidden: Tensor, features: Tensor, rope: Rope, visible: Tensor | None, write: Write | None
    ) -> Tensor:
        slots = hidden.shape[1]
        read = torch.cat((features, hidden), dim=1)
        queries = self.q_norm(self._heads(self.q_proj(hidden))).transpose(1, 2)
        keys = self.k_norm(self._heads(self.k_proj(read))).transpose(1, 2)
        values = self._heads(self.v_proj(read)).transpose(1, 2)
        cosines, sines = rope
        queries = _rotate(queries, cosines[:, -slots:], sines[:, -slots:])
        keys = _rotate(keys, cosines, sines)
        if write is not None:
            keys, values = write(keys, values)
        if visible is not None:
            tokens = visible.shape[1]
            keys, values = keys[:, :, -tokens:], values[:, :, -tokens:]
        # Query heads that share a key head become rows of it: no kernel has to repeat the context.
        key_heads = keys.shape[1]
        group = queries.shape[1] // key_heads
        mask = None if visible is None else visible.repeat(group, 1)
        rows = queries.reshape(-1, key_heads, group * slots, self.head_dim)
        attended = scaled_dot_product_attention(rows, keys, values, attn_mask=mask)
        attended = attended.reshape(-1, key_heads * group, slots, self.head_dim).transpose(1, 2)
        mixed: Tensor = self.o_proj(attended.flatten(2))
        return mixed

    def _heads(self, projected: Tensor) -> Tensor:
        return projected.view(*projected.shape[:-1], -1, self.head_dim)


def _rotate(heads: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Rotary embedding of [1, heads, tokens, head_dim]."""
    rotated: Tensor = heads * cosines[:, None] + rotate_half(heads) * sines[:, None]
    return rotated


def _head_dim(config: Qwen3Config) -> int:
    head_dim: int | None = getattr(config, "head_dim", None)
    return head_dim or config.hidden_size // config.num_attention_heads


def _rotary(config: Qwen3Config, device: torch.device | str) -> Any:
    # The device is named so that a backbone built on "meta" still gets its frequencies.
    with torch.device(device):
        return Qwen3RotaryEmbedding(config)
