"""What a user names as a drafter: checkpoints, models, lists, and what is refused."""

from __future__ import annotations

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from tests.api.tiny import byte_level, tiny_llama
from tests.drafting.random_drafters import random_drafter
from tests.exactness.test_models import prompts
from tests.stubs import byte_vocabulary
from tests.unit.models import tiny, tiny_model
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.drafting.autoregressive import AutoregressiveDrafter
from xpress_struct.drafting.checkpoints import write_checkpoint
from xpress_struct.drafting.diffusion import DiffusionDrafter
from xpress_struct.drafting.loading import load_drafter
from xpress_struct.drafting.lookup import LookupDrafter
from xpress_struct.drafting.masked import MaskedDrafter
from xpress_struct.drafting.several import SeveralDrafter
from xpress_struct.errors import ArgumentError, DrafterMismatchError, ModelError


class Tokenizer:
    """What loading asks of a tokenizer."""

    chat_template, mask_token_id = None, None


def load(drafter, tokenizer=None):
    return load_drafter(drafter, tiny_model("llama").target, byte_vocabulary(), tokenizer or Tokenizer())


@pytest.fixture
def folder(tmp_path):
    """A checkpoint of a random drafter."""
    write_checkpoint(random_drafter().weights, tmp_path, target_name=None)
    return tmp_path


def test_a_folder(folder):
    """A checkpoint's folder, as text or path, drafts as the drafter that was written does."""
    model = tiny_model("llama")
    wanted = model.generate(prompts(1)[0], drafter=random_drafter(), max_new_tokens=20)
    for name in (folder, str(folder)):
        drafter = load(name)
        assert isinstance(drafter, DiffusionDrafter)
        out = model.generate(prompts(1)[0], drafter=drafter, max_new_tokens=20)
        assert out.token_ids == wanted.token_ids
        assert out.stats.proposed > 0


def test_a_list(folder):
    """A list holds any of these; None in it counts for nothing."""
    drafter = load([folder, "lookup", None])
    assert isinstance(drafter, SeveralDrafter)
    assert drafter.name == "xpress+lookup"
    with pytest.raises(ArgumentError, match="Only one"):
        load([folder, folder])
    with pytest.raises(ArgumentError, match="two or more"):
        load(["lookup"])


def test_models():
    """A causal model is a drafter token by token, a masked one by blocks if it names its mask."""
    assert isinstance(load(tiny("gpt2")), AutoregressiveDrafter)
    size = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    masked = BertForMaskedLM(BertConfig(vocab_size=258, **size))
    with pytest.raises(ArgumentError, match="mask token"):
        load(masked)
    named = Tokenizer()
    named.mask_token_id = 257
    drafter = load(masked, named)
    assert isinstance(drafter, MaskedDrafter)
    assert drafter.mask_token_id == 257


def test_a_folder_with_a_causal_model(tmp_path):
    """A folder that holds a smaller model and its tokenizer is a drafter token by token."""
    tokenizer = byte_level()
    tiny_llama(len(tokenizer)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    drafter = load(tmp_path)
    assert isinstance(drafter, AutoregressiveDrafter)
    assert isinstance(drafter.vocabulary, Vocabulary)


def test_names():
    """Lookup, nothing, and objects that draft are taken as they are."""
    own = LookupDrafter()
    assert isinstance(load("lookup"), LookupDrafter)
    assert load(None) is None
    assert load("none") is None
    assert load(own) is own


@pytest.mark.parametrize("wrong", ["loopup", 7, {"drafter": 1}, torch.zeros(2)])
def test_what_is_no_drafter(wrong):
    """Anything else is refused with what it may be."""
    with pytest.raises(ArgumentError, match="it must be one of"):
        load(wrong)


def test_a_folder_without_a_model(tmp_path):
    """A folder with nothing in it is refused."""
    with pytest.raises(ModelError):
        load(tmp_path)


def test_another_hidden_size(tmp_path):
    """A drafter for a target of another hidden size is refused, from a folder and as an object."""
    other = random_drafter(hidden_size=16)
    write_checkpoint(other.weights, tmp_path, target_name=None)
    with pytest.raises(DrafterMismatchError, match="hidden size"):
        load(tmp_path)
    with pytest.raises(DrafterMismatchError, match="of size 16"):
        tiny_model("llama").generate([1], drafter=other)
