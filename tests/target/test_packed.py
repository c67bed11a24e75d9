"""Packed linear layers: the same numbers, the same module, no stale weights."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from xpress_struct.target import packed
from xpress_struct.target.packed import PackedLinear, pack_linears

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch without oneDNN")


@pytest.fixture
def layer() -> nn.Linear:
    torch.manual_seed(0)
    made = nn.Linear(48, 80)
    pack_linears(made)
    assert isinstance(made, PackedLinear)
    return made


def plain(layer: nn.Linear, x: Tensor) -> Tensor:
    return nn.functional.linear(x, layer.weight, layer.bias)


@pytest.mark.parametrize("shape", [(48,), (1, 48), (2, 48), (1, 3, 48), (1, 17, 48), (2, 5, 48), (0, 48)])
def test_product_is_that_of_a_linear_layer(layer: nn.Linear, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    with torch.inference_mode():
        assert torch.allclose(layer(x), plain(layer, x), atol=1e-5)
        assert layer(x).shape == (*shape[:-1], 80)


@pytest.mark.parametrize(
    "change",
    [
        lambda layer: layer.weight.data.mul_(2),
        lambda layer: nn.init.zeros_(layer.weight),
        lambda layer: setattr(layer, "weight", nn.Parameter(torch.randn(80, 48))),
        lambda layer: setattr(layer.weight, "data", torch.randn(80, 48)),
        lambda layer: layer.load_state_dict({"weight": torch.ones(80, 48), "bias": torch.ones(80)}),
    ],
)
def test_changed_weights_count(layer: nn.Linear, change: Callable[[nn.Linear], object]) -> None:
    x = torch.randn(4, 48)
    with torch.no_grad():
        before = layer(x)
        change(layer)
        assert torch.allclose(layer(x), plain(layer, x), atol=1e-5)
        assert not torch.allclose(layer(x), before)


def test_weights_are_packed_once(layer: nn.Linear) -> None:
    with torch.inference_mode():
        layer(torch.randn(2, 48))
        first = layer.__dict__["_packed"]
        layer(torch.randn(9, 48))
    assert layer.__dict__["_packed"] is first


def test_gradients_and_other_dtypes_go_the_plain_way(layer: nn.Linear) -> None:
    x = torch.randn(4, 48, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad is not None and layer.weight.grad is not None
    with torch.no_grad():
        assert layer.double()(x.double()).dtype == torch.float64
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert layer.float()(x).dtype == torch.bfloat16


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_copies_are_layers_of_their_own(layer: nn.Linear, copied: Callable[[nn.Linear], nn.Linear]) -> None:
    x = torch.randn(4, 48)
    with torch.no_grad():
        before = layer(x)
        other = copied(layer)
        other.weight.zero_()
        other.bias.zero_()
        assert not other(x).any()
        assert torch.equal(layer(x), before)
    assert other.state_dict().keys() == layer.state_dict().keys() == {"weight", "bias"}


def test_what_is_not_of_use_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(nn.Linear):
        pass

    module = nn.ModuleList([nn.Linear(8, 8).bfloat16(), Own(8, 8), nn.Linear(8, 8)])
    pack_linears(module)
    assert [type(each) for each in module] == [nn.Linear, Own, PackedLinear]
    monkeypatch.setattr(packed, "MOST_BYTES", 8 * 8 * 4 - 1)
    too_much = nn.Linear(8, 8)
    pack_linears(too_much)
    assert type(too_much) is nn.Linear


def test_torch_without_these_products_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", lambda *given: torch.zeros(1, 3, 32))
    layer = nn.Linear(8, 8)
    pack_linears(layer)
    assert type(layer) is nn.Linear
