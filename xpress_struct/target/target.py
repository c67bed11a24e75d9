"""Target: the model whose distribution counts. Scores tokens over a cache; knows no grammar."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from xpress_struct.errors import ModelError, TokenizerMismatchError
from xpress_struct.target.cache import TargetCache, why_not_croppable
from xpress_struct.target.packed import pack_linears
from xpress_struct.target.taps import Taps, stack_taps

__all__ = ["TappedTarget", "Target", "TransformersTarget"]


class Target(Protocol):
    """What the round asks of a model.

    Attributes:
        width: number of logits, V.
        device: where logits are.
        max_length: longest sequence in tokens, or None when unknown.
        no_speculation: why drafts cannot be scored (a cache that cannot go back), or None.
    """

    width: int
    device: torch.device
    max_length: int | None
    no_speculation: str | None

    def new_cache(self) -> TargetCache:
        """An empty cache of one row."""

    def score(self, cache: TargetCache, ids: Sequence[int], rows: int) -> Tensor:
        """Runs `ids` after what is cached, and caches them.

        Returns:
            Logits float32 [rows, V] that follow each of the last `rows` ids.
        """


class TappedTarget(Target, Protocol):
    """A target whose inside a drafter may use.

    Attributes:
        hidden_size: d.
        num_layers: decoder layers.
    """

    hidden_size: int
    num_layers: int

    def new_cache(self, taps: Sequence[int] = ()) -> TargetCache:
        """An empty cache of one row, which keeps the tapped states of the last forward."""

    def embed(self, ids: Tensor) -> Tensor:
        """Raw input embeddings [n, d] of ids [n]."""

    def head(self, hidden: Tensor) -> Tensor:
        """Logits [n, V] of final hidden states [n, d]."""

    def head_of(self, ids: Tensor) -> Callable[[Tensor], Tensor]:
        """The same head for some ids [m] only: hidden states [n, d] -> logits [n, m]."""


class TransformersTarget:
    """A causal language model of transformers (>= 5.15). Safe for threads: state is in the cache.

    Raises:
        ModelError: the model is not a decoder-only model with a key/value cache.
    """

    def __init__(self, model: Any) -> None:
        self.model = model.eval()
        config = model.config.get_text_config()
        if getattr(model.config, "is_encoder_decoder", False) or not hasattr(model, "forward"):
            raise ModelError(f"{type(model).__name__} is not a decoder-only language model.")
        self.device = torch.device(model.device)
        self.max_length: int | None = getattr(config, "max_position_embeddings", None)
        self.width = _width(model, config)
        accepted = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in accepted else "past_key_values"
        self._keeps_rows = "logits_to_keep" in accepted
        if self._cache_name not in accepted and "kwargs" not in accepted:
            raise ModelError(f"{type(model).__name__} takes no key/value cache.")
        self.no_speculation = self._why_no_speculation()
        self.hidden_size: int = config.hidden_size
        self.num_layers: int = config.num_hidden_layers
        self._taps: Taps | None = None

    def new_cache(self, taps: Sequence[int] = ()) -> TargetCache:
        from transformers import DynamicCache

        if taps and self._taps is None:
            self._taps = Taps(self.model)
        cache = DynamicCache(config=self.model.config.get_text_config())
        return TargetCache(cache, rollback=self.no_speculation is None, taps=taps)

    @torch.inference_mode()
    def embed(self, ids: Tensor) -> Tensor:
        return torch.nn.functional.embedding(ids, self.model.get_input_embeddings().weight)

    @torch.inference_mode()
    def head(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.model.get_output_embeddings()(hidden)
        return logits

    @torch.no_grad()  # not inference mode: a drafter is trained through it
    def head_of(self, ids: Tensor) -> Callable[[Tensor], Tensor]:
        head = self.model.get_output_embeddings()
        rows, bias = ids.to(head.weight.device), getattr(head, "bias", None)
        some = torch.nn.Linear(head.weight.shape[1], len(ids), bias is not None, device="meta")
        some.weight = torch.nn.Parameter(head.weight[rows], requires_grad=False)
        if bias is not None:
            some.bias = torch.nn.Parameter(bias[rows], requires_grad=False)
        pack_linears(some)
        return lambda hidden: some(hidden.to(some.weight.dtype))

    def score(self, cache: TargetCache, ids: Sequence[int], rows: int) -> Tensor:
        if self.no_speculation is None or cache.lengths[0] == 0:
            return self._forward(cache, ids, rows)
        # Several recurrent models continue a cached state by one token at a time only.
        kept = [self._forward(cache, [token], 1) for token in ids]
        return torch.cat(kept[-rows:])

    @torch.inference_mode()
    def _forward(self, cache: TargetCache, ids: Sequence[int], rows: int) -> Tensor:
        # Sent without a wait; `torch.tensor(..., device=...)` would wait for the device.
        inputs = torch.tensor([list(ids)]).to(self.device, non_blocking=True)
        options: dict[str, Any] = {self._cache_name: cache.cache, "use_cache": True}
        if self._keeps_rows:
            options["logits_to_keep"] = rows
        if cache.taps:
            assert self._taps is not None
            with self._taps.taken(cache.taps) as states:
                logits: Tensor = self.model(input_ids=inputs, **options).logits
            cache.tapped = stack_taps(states, cache.taps)
        else:
            logits = self.model(input_ids=inputs, **options).logits
        cache.extend(len(ids))
        return logits[0, -rows:].float()

    def _why_no_speculation(self) -> str | None:
        if getattr(self.model, "_is_stateful", False):
            return f"{type(self.model).__name__} keeps a recurrent state, which cannot go back"
        from transformers import DynamicCache

        return why_not_croppable(DynamicCache(config=self.model.config.get_text_config()))


def _width(model: Any, config: Any) -> int:
    head = model.get_output_embeddings()
    weight = getattr(head, "weight", None)
    width = config.vocab_size if weight is None else weight.shape[0]
    if width < 1:
        raise TokenizerMismatchError("The model has no output vocabulary.")
    return int(width)
