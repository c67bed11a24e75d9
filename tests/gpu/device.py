"""Models on the GPU; every file here is marked `gpu` and skipped without one."""

from __future__ import annotations

import copy
from functools import cache

import pytest
import torch

from tests.drafting.random_drafters import random_drafter
from tests.stubs import byte_vocabulary
from tests.unit.models import tiny
from xpress_struct.drafting.diffusion import DiffusionDrafter
from xpress_struct.model import Model
from xpress_struct.target.target import TransformersTarget

__all__ = ["GPU", "marks", "model_on_gpu", "on_gpu"]

GPU = torch.device("cuda")
marks = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU"),
]


@cache
def model_on_gpu(name: str = "llama") -> Model:
    """A tiny random model over bytes, float32."""
    model = copy.deepcopy(tiny(name)).to(GPU)
    return Model(TransformersTarget(model), None, byte_vocabulary(), None)


def on_gpu(drafter: DiffusionDrafter | None = None) -> DiffusionDrafter:
    """A drafter moved to the GPU; a random one by default."""
    drafter = drafter or random_drafter()
    weights = drafter.weights
    weights.backbone.to(GPU)
    if weights.head is not None:
        weights.head.to(GPU)
    if weights.draft_ids is not None:
        weights.draft_ids = weights.draft_ids.to(GPU)
    return drafter
