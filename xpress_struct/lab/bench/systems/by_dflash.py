"""The loop of PyPI's `dflash` with our drafter's backbone, unconstrained.

It knows no head that refines: it drafts by argmax or draws of the base logits. It ends at an end token only:
an answer which a stop text would end runs on to the limit.
"""

from __future__ import annotations

import time
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from xpress_struct.drafting.weights import DraftWeights
from xpress_struct.errors import ArgumentError
from xpress_struct.lab.bench.meter import GREEDY, Answer, Draw
from xpress_struct.lab.bench.systems.ours import diffusion_of
from xpress_struct.lab.bench.systems.plain import Plain, Setting
from xpress_struct.lab.bench.tasks.task import Task, prompt_ids

__all__ = ["DFlash"]


class DFlash(Plain):
    """`DFlashDraftModel` of the package, with the weights of our drafter's backbone."""

    name = "dflash"
    label = "dflash loop, our drafter"

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        from dflash.model import DFlashDraftModel, dflash_generate

        trained = diffusion_of(setting.drafter)
        if trained is None:
            raise ArgumentError("It needs a trained block-diffusion drafter: pass --drafter.")
        weights = trained.weights
        if weights.config.predicts_next:
            raise ArgumentError("dflash has no drafters whose anchor predicts.")
        self.generate = dflash_generate
        self.draft = DFlashDraftModel(_config(weights.config)).eval()
        self.draft.load_state_dict(weights.backbone.state_dict())
        self.draft.to(weights.backbone.fc.weight)
        if weights.lm_head is not None:
            self.draft.compute_logits = partial(_own_logits, weights, self.model.target.width)
        self.spent, self._began = 0.0, 0.0
        self.draft.register_forward_pre_hook(self._before)
        self.draft.register_forward_hook(self._after)

    def run(self, task: Task, draw: Draw = GREEDY) -> Answer:
        prompt = prompt_ids(task, self.model)
        torch.manual_seed(draw.seed)
        self.spent = 0.0
        output = self.generate(
            self.draft,
            target=self.hf,
            input_ids=torch.tensor([prompt], device=self.hf.device),
            max_new_tokens=self.setting.limit,
            stop_token_ids=self.ends,
            temperature=draw.temperature,
        )
        ended_at = time.perf_counter()
        answer = self.answer(task, output[0, len(prompt) :].tolist(), ended_at)
        answer.draft_s = self.spent
        self.count(answer)
        return answer

    def count(self, answer: Answer) -> None:
        meter = self.setting.meter
        if meter is not None:
            answer.proposed = sum(length - 1 for length in meter.lengths[1:])
            answer.accepted = max(0, len(answer.ids) - meter.forwards)

    def _before(self, *_: Any) -> None:
        self._began = time.perf_counter()

    def _after(self, *_: Any) -> None:
        self.spent += time.perf_counter() - self._began


def _own_logits(weights: DraftWeights, width: int, hidden: Tensor, _: Any) -> Tensor:
    """Logits [.., V] of a drafter with an output of its own; what it does not know is never drafted."""
    assert weights.lm_head is not None
    logits = weights.backbone.logits(nn.functional.linear(hidden, weights.lm_head))
    if weights.draft_ids is None:
        return logits
    whole = logits.new_full((*logits.shape[:-1], width), -torch.inf)
    whole[..., weights.draft_ids] = logits
    return whole


def _config(ours: Any) -> Any:
    """Our config as the package reads it."""
    config = deepcopy(ours.layers)
    config.num_target_layers = 0  # read only where no taps are told
    config.block_size = ours.block_size
    config.dflash_config = {
        "target_layer_ids": list(ours.taps),
        "mask_token_id": ours.mask_token_id,
        "input_embedding_scale": ours.embedding_scale,
        "output_multiplier": ours.output_multiplier,
        "final_logit_softcapping": ours.logit_softcap,
    }
    if ours.sliding_is_causal == ours.full_is_causal:
        config.is_causal = ours.full_is_causal
    elif ours.full_is_causal:
        raise ArgumentError("dflash has no drafters whose full attention is causal and whose sliding is not.")
    return config
