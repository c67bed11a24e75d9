"""Linear layers whose weights are held a second time, in the order in which oneDNN reads them.

A product of few rows costs about what reading the weights costs. torch hands float32 products to a BLAS that
brings the weights into its own order each time: on a CPU, scoring a draft of eight tokens took 1.8 times as
long as one token. From packed weights it takes 1.2 times as long (`python -m benchmarks.forwards`).
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

__all__ = ["MOST_BYTES", "PackedLinear", "pack_linears"]

MOST_BYTES = 4 << 30
"""A module whose copies would take more memory than this is left as it is."""

_SAMPLED = 64


class PackedLinear(nn.Linear):
    """A linear layer that multiplies with a packed copy of its weight, where no gradient is asked for.

    The weight stays what it is, for everyone who reads or changes it: a copy that is out of date is made
    again. Torch counts changes, but not those through `.data`, which merging an adapter makes: those are
    seen by a sample of the weight, so that one of a few entries may be missed. Pickles and deep copies are
    without the copy.
    """

    def forward(self, input: Tensor) -> Tensor:
        weight = self.weight
        plain = torch.is_grad_enabled() or torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu")
        if plain or input.dtype != torch.float32 or not input.numel() or not packs(weight):
            return super().forward(input)
        packed = self.pack()
        product: Tensor = torch.ops.mkldnn._linear_pointwise(input, packed, self.bias, "none", [], "")
        return product

    def pack(self) -> Tensor:
        """The packed weight, made again where the weight has changed."""
        packed: _Packed | None = self.__dict__.get("_packed")
        if packed is None or not packed.is_of(self.weight):
            packed = self.__dict__["_packed"] = _Packed(self.weight.detach())
        return packed.weight

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_packed", None)
        return state


class _Packed:
    def __init__(self, weight: Tensor) -> None:
        self.weight: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight)
        self._place, self._version = weight.data_ptr(), weight._version
        self._sample = weight.flatten()[:: max(1, weight.numel() // _SAMPLED)]
        self._seen = self._sample.clone()

    def is_of(self, weight: Tensor) -> bool:
        same = weight.data_ptr() == self._place and weight._version == self._version
        return same and torch.equal(self._sample, self._seen)


def pack_linears(module: nn.Module) -> None:
    """Makes the linear layers of a module packed ones, in place; nothing, where that is of no use.

    Of use are float32 weights on a CPU, under a torch that has the products (checked here: torch does
    not promise them), within `MOST_BYTES`.
    """
    layers = [each for each in module.modules() if type(each) is nn.Linear and packs(each.weight)]
    if layers and sum(each.weight.nbytes for each in layers) <= MOST_BYTES and _works():
        for layer in layers:
            layer.__class__ = PackedLinear
            cast(PackedLinear, layer).pack()


def packs(weight: Tensor) -> bool:
    """Whether a weight can be packed, and its changes seen."""
    return weight.dtype == torch.float32 and weight.device.type == "cpu" and not weight.is_inference()


def _works() -> bool:
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    layer = PackedLinear(64, 32)
    inputs = torch.linspace(-1, 1, 192).view(1, 3, 64)
    with torch.no_grad():
        try:
            return torch.allclose(
                layer(inputs), nn.functional.linear(inputs, layer.weight, layer.bias), atol=1e-5
            )
        except (AttributeError, RuntimeError, TypeError):
            return False
