"""A pretend GPU: tensors that say they are on another device, and a count of what would wait for it.

They compute on the CPU. What torch's sync debug mode tells on a real GPU is counted here: values read by the
host, copies that are not `non_blocking`, shapes that depend on values. An operation on tensors of both
devices is refused as a GPU would refuse it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

__all__ = ["AVAILABLE", "PretendGPU", "pretend_device"]

_NAME = "pretend"
# Experimental in torch, and not in older ones.
_register = getattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend", None)
AVAILABLE = _register is not None and not torch.cuda.is_available()

_READS = ("_local_scalar_dense", "equal", "nonzero", "masked_select", "_unique2", "unique_dim", "bincount")
# Composite operations that would be slower, or round otherwise, in parts.
_WHOLE = (
    "linear",
    "matmul",
    "einsum",
    "scaled_dot_product_attention",
    "embedding",
    "softmax",
    "log_softmax",
    "to",
)
_INDEXED = ("index", "index_put", "index_put_", "_index_put_impl_")


def pretend_device() -> torch.device:
    """The device; registered on the first call."""
    if torch._C._get_privateuse1_backend_name() != _NAME:
        _register(_NAME)
    return torch.device(_NAME, 0)


class _OnDevice(torch.Tensor):
    """A tensor of the pretend device; `held` is what it is on the CPU."""

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> _OnDevice:
        return torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=pretend_device(),
        )

    def __init__(self, held: torch.Tensor) -> None:
        self.held = held

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"{func} outside of the pretend GPU")

    def tolist(self) -> Any:
        mode = PretendGPU.running
        mode.note("tolist")
        return self.held.tolist()


class PretendGPU(TorchDispatchMode):
    """While it is entered, the pretend device works.

    Attributes:
        waits: what waited for the device, and in which function of ours.
    """

    running: PretendGPU

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []
        self._entered = 0

    def __enter__(self) -> PretendGPU:
        pretend_device()
        # torch.tensor(..., device=...) makes a tensor of the CPU and copies it, as on a GPU.
        torch._C._set_only_lift_cpu_tensors(True)
        PretendGPU.running = self
        self._entered += 1
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._entered -= 1
        torch._C._set_only_lift_cpu_tensors(self._entered > 0)

    def note(self, what: str) -> None:
        """Counts a wait."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and "/xpress_struct/" not in frame.f_code.co_filename:
            frame = frame.f_back
        code = frame and frame.f_code
        self.waits.append(f"{Path(code.co_filename).stem}.{code.co_name}: {what}" if code else what)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.removeprefix("aten::")
        if name not in _WHOLE:
            with self:
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        return self._run(func, name, args, kwargs)

    def _run(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        flat, _ = tree_flatten((args, kwargs))
        tensors = [x for x in flat if isinstance(x, torch.Tensor)]
        held = [x for x in tensors if isinstance(x, _OnDevice)]
        asked = next((x for x in flat if isinstance(x, torch.device)), None)
        on_device = bool(held) if asked is None else asked.type == _NAME
        if name in ("to", "_to_copy", "copy_"):
            named = dict(zip((a.name for a in func._schema.arguments), args, strict=False)) | kwargs
            source = named["src" if name == "copy_" else "self"]
            on_device = isinstance(args[0], _OnDevice) if name == "copy_" else on_device
            if source.numel() and not named.get("non_blocking"):
                self._copied(isinstance(source, _OnDevice), on_device)
        elif held:
            self._check(name, args, tensors)
        result = func(*tree_map(_held, args), **tree_map(_held, kwargs))
        if func._schema.is_mutable and isinstance(args[0], torch.Tensor):
            return args[0]
        if not on_device:
            return result
        return tree_map(lambda x: _OnDevice(x) if isinstance(x, torch.Tensor) else x, result)

    def _copied(self, was: bool, will_be: bool) -> None:
        if was != will_be:
            self.note("copy to the device" if will_be else "copy to the host")

    def _check(self, name: str, args: Any, tensors: list[torch.Tensor]) -> None:
        if name in _READS or name.startswith("unique"):
            self.note(name)
        strangers = [x for x in tensors if not isinstance(x, _OnDevice) and x.dim()]
        if name in _INDEXED:
            indices = [x for x in args[1] if x is not None]
            if any(x.dtype in (torch.bool, torch.uint8) for x in indices):
                self.note("an index of booleans")
            if any(not isinstance(x, _OnDevice) for x in indices):
                self.note("an index on the host")
            strangers = [x for x in strangers if not any(x is index for index in indices)]
        if strangers:
            raise RuntimeError(f"{name}: tensors of two devices")


def _held(x: Any) -> Any:
    if isinstance(x, _OnDevice):
        return x.held
    return torch.device("cpu") if isinstance(x, torch.device) else x
