"""Documents, features, losses and evaluation on a pretend GPU: nothing there is the CPU's."""

from __future__ import annotations

import copy

import pytest
import torch

from tests.pretend import AVAILABLE, PretendGPU, pretend_device
from tests.training.tiny import SIZES, tiny_model, tiny_prompts, tokenizer
from xpress_struct.model import Model
from xpress_struct.target.target import TransformersTarget
from xpress_struct.training.anchors import every_anchor
from xpress_struct.training.blocks import pack
from xpress_struct.training.collect import collect
from xpress_struct.training.drafter import TrainedDrafter
from xpress_struct.training.evaluation import Evaluation
from xpress_struct.training.features import FeatureCache
from xpress_struct.training.losses import LossSettings, block_loss, targets_of
from xpress_struct.training.shards import read_shards
from xpress_struct.training.start import new_weights, tap_layers

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="a real GPU is here, or torch cannot pretend one")


def on_device() -> Model:
    target = copy.deepcopy(tiny_model().target.model).requires_grad_(False).to(pretend_device())
    return Model(TransformersTarget(target), tokenizer(), tiny_model().vocabulary, None)


def collected(model, folder):
    """Greedy documents, and their features."""
    cache = FeatureCache(model, folder, tap_layers(model.target.num_layers, SIZES.taps))
    collect(model, tiny_prompts(20), folder, documents=3, features=cache)
    found = read_shards([folder], model.vocabulary.fingerprint)
    return [each for each in found if each.temperature == 0], cache


def losses(drafter, cache, documents):
    """The total losses of all blocks of each document, on the drafter's device."""
    ids, device = drafter.draft_ids.cpu(), drafter.device
    columns = torch.full((drafter.config.layers.vocab_size,), -1).scatter(0, ids, torch.arange(len(ids)))
    packed = []
    for document in documents:
        features, anchors = cache.of(document), every_anchor(document, 32)
        blocks = pack(document, features, anchors, drafter.config.block_size, drafter.config.mask_token_id)
        targets = [each.to(device, non_blocking=True) for each in targets_of(features, blocks, columns)]
        blocks = blocks.to(device)
        packed.append(block_loss(drafter(blocks), blocks, *targets, drafter.draft_ids, LossSettings()).total)
    return packed


def test_training_on_a_device(tmp_path):
    """Documents, features, losses and evaluated rounds are the CPU's, and the losses wait for nothing."""
    documents, cache = collected(tiny_model(), tmp_path / "here")
    weights = new_weights(tiny_model(), documents, SIZES)
    with torch.no_grad():
        drafter = TrainedDrafter(copy.deepcopy(weights), tiny_model().target)
        wanted = [float(loss) for loss in losses(drafter, cache, documents)]
        counted = Evaluation(tiny_model(), documents, cache).run(drafter)
        with PretendGPU() as gpu:
            model = on_device()
            others, there = collected(model, tmp_path / "there")
            assert [each.response for each in others] == [each.response for each in documents]
            for document in documents:
                for mine, theirs in zip(there.of(document), cache.of(document), strict=True):
                    torch.testing.assert_close(mine, theirs, rtol=1e-2, atol=1e-2)
            drafter = TrainedDrafter(weights, model.target).requires_grad_(False).to(pretend_device())
            before = len(gpu.waits)
            found = losses(drafter, there, documents)
            # The draft ids come down once, for the columns.
            assert gpu.waits[before:] == ["copy to the host"]
            assert [float(loss) for loss in found] == pytest.approx(wanted, rel=1e-3)
            assert Evaluation(model, documents, there).run(drafter) == counted
