"""A masked language model as drafter."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

import xpress_struct as xs
from tests.exactness.test_models import prompts
from tests.stubs import byte_vocabulary, stub_model
from tests.unit.models import tiny_model
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.drafting.masked import MaskedDrafter
from xpress_struct.errors import ArgumentError, TokenizerMismatchError

MASK = 257


@cache
def bert(positions: int = 40):
    """A random BERT over bytes, with a row for the mask."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=MASK + 1,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=positions,
        initializer_range=0.5,
    )
    return BertForMaskedLM(config)


class Watched(torch.nn.Module):
    """Notes what the model was given."""

    def __init__(self, model):
        super().__init__()
        self.model, self.config, self.seen = model, model.config, []

    @property
    def device(self):
        return self.model.device

    def get_input_embeddings(self):
        return self.model.get_input_embeddings()

    def forward(self, input_ids):
        self.seen.append(input_ids[0].tolist())
        return self.model(input_ids=input_ids)


@pytest.mark.parametrize("steps", [1, 3])
def test_ids_stay(steps):
    """Ids are those without speculation, some guesses stand, and the mask's id is never offered."""
    drafter, model, stood = MaskedDrafter(bert(), byte_vocabulary(), MASK), tiny_model("llama"), 0
    constraint = xs.regex("[ab]x[cd]{2,9}")
    for index, prompt in enumerate(prompts(12)):
        asked = {"seed": index, "temperature": (0.0, 0.9)[index % 2]}
        plain = model.generate(prompt, constraint, drafter=None, **asked)
        out = model.generate(prompt, constraint, drafter=drafter, denoising_steps=steps, **asked)
        assert out.token_ids == plain.token_ids
        assert out.stats.drafter == "masked"
        stood += out.stats.accepted
    assert stood > 0


def test_steps_fill_slots():
    """Each step shows the model what the steps before filled in, behind the text."""
    model = Watched(bert())
    drafter = MaskedDrafter(model, byte_vocabulary(), MASK)
    prompt = [5, 6, 7]
    stub_model(lambda prefix: [0.0] * 257).generate(
        prompt, drafter=drafter, denoising_steps=3, block_length=6, guard=False, max_new_tokens=8
    )
    first = model.seen[:3]
    assert [row.count(MASK) for row in first] == [16, 11, 6]
    assert all(row[:3] == prompt and len(row) == 19 for row in first)


def test_positions_bound_what_is_read():
    """Text and block never take more positions than the model has, and the latest text is read."""
    model = Watched(bert(20))
    drafter = MaskedDrafter(model, byte_vocabulary(), MASK)
    prompt = list(range(100, 160))
    out = stub_model(lambda prefix: [0.0] * 257).generate(
        prompt, drafter=drafter, guard=False, block_length=30, max_new_tokens=40
    )
    assert len(out.token_ids) > 20
    assert max(map(len, model.seen)) == 20
    assert model.seen[0][: -model.seen[0].count(MASK)] == prompt[-1:]


@pytest.mark.parametrize(("length", "read"), [(None, 24), (7, 7)])
def test_context_length(length, read):
    """By default the model reads what leaves room for a block; or as much as is asked for."""
    drafter = MaskedDrafter(bert(), byte_vocabulary(), MASK, context_length=length)
    assert drafter.context_length == read


def test_what_is_refused():
    """A mask that is no id, a context that does not fit, and other tokens are refused."""
    with pytest.raises(ArgumentError, match="mask_token_id=258"):
        MaskedDrafter(bert(), byte_vocabulary(), 258)
    for length in (0, 40):
        with pytest.raises(ArgumentError, match="between 1 and 39"):
            MaskedDrafter(bert(), byte_vocabulary(), MASK, context_length=length)
    other = MaskedDrafter(bert(), Vocabulary.from_tokens([b"a", b""], end_ids=[1]), 0)
    with pytest.raises(TokenizerMismatchError):
        tiny_model("llama").generate([1], drafter=other)
