"""Training on the GPU: from prompts to a checkpoint that drafts there."""

from __future__ import annotations

import copy
import json

from tests.gpu.device import GPU, marks
from tests.training.tiny import SIZES, tiny_model, tiny_prompts, tokenizer
from xpress_struct.api import load
from xpress_struct.training.prompts import constraint_of
from xpress_struct.training.shards import read_shards
from xpress_struct.training.train import train
from xpress_struct.training.trainer import TrainSettings

pytestmark = marks


def test_a_drafter_is_trained(tmp_path):
    """More tokens stand by round than untrained, the training resumes, and the checkpoint drafts."""
    target = copy.deepcopy(tiny_model().target.model).to(GPU)
    model = load(target, tokenizer=tokenizer(), drafter=None)
    settings = TrainSettings(steps=60, documents=4, anchors=10, learning_rate=8e-3)
    options = {"documents": 30, "sizes": SIZES, "max_shard_size": "20KB"}
    train(model, tiny_prompts(40), tmp_path, settings=settings, **options)
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    first, last = (entry["held_out"]["all"]["parallel"] for entry in (log[0], log[-1]))
    assert last["chosen"] / last["rounds"] > 1.1 * first["chosen"] / first["rounds"]

    drafting = load(target, tokenizer=tokenizer(), drafter=str(tmp_path / "drafter"))
    documents = read_shards([tmp_path / "shards"], model.vocabulary.fingerprint)
    each = next(each for each in documents if each.held_out)
    result = drafting.generate(list(each.prompt), constraint_of(each.grammar), guard=False)
    assert result.token_ids == each.response and result.stats.accepted > 0

    more = TrainSettings(steps=61)
    assert train(model, [], tmp_path, settings=more, resume=True, **options)["step"] == 61
