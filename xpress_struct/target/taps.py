"""Taps: hidden states of chosen layers, taken as a forward passes by them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from xpress_struct.errors import ModelError

__all__ = ["Taps", "decoder_layers", "stack_taps"]


class Taps:
    """Hooks on a model's decoder layers. They stay; what they take is the calling thread's own.

    `output_hidden_states` would keep the states of every layer instead of a few.
    """

    def __init__(self, model: Any) -> None:
        self._layers = decoder_layers(model)
        self._hooked: set[int] = set()
        self._lock = threading.Lock()
        self._local = threading.local()

    def __len__(self) -> int:
        return len(self._layers)

    @contextmanager
    def taken(self, layers: Sequence[int]) -> Iterator[dict[int, Tensor]]:
        """Collects the outputs [rows, tokens, d] of layers, counted from 0, during the block."""
        self._hook(layers)
        self._local.states = states = dict[int, Tensor]()
        try:
            yield states
        finally:
            del self._local.states

    def _hook(self, layers: Sequence[int]) -> None:
        with self._lock:
            for index in set(layers) - self._hooked:
                self._layers[index].register_forward_hook(self._taker(index))
                self._hooked.add(index)

    def _taker(self, index: int) -> Any:
        def take(module: nn.Module, inputs: Any, output: Any) -> None:
            states = getattr(self._local, "states", None)
            if states is not None:
                states[index] = output[0] if isinstance(output, tuple) else output

        return take


def stack_taps(states: dict[int, Tensor], layers: Sequence[int]) -> Tensor:
    """Tapped states of the one row, side by side: [tokens, layers * d]."""
    first = states[layers[0]]
    return torch.cat([states[index][0].to(first.device) for index in layers], dim=-1)


def decoder_layers(model: Any) -> nn.ModuleList:
    count = model.config.get_text_config().num_hidden_layers
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            return module
    raise ModelError(f"{type(model).__name__} has no list of {count} layers whose states could be read.")
