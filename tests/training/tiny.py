"""A tiny target with documents that it wrote."""

from __future__ import annotations

from functools import cache

import torch
from transformers import PreTrainedTokenizerFast

from tests.api.tiny import CHATML, byte_level, tiny_llama
from xpress_struct.api import load
from xpress_struct.model import Model
from xpress_struct.training.prompts import TrainPrompt
from xpress_struct.training.split import group_of, is_held_out
from xpress_struct.training.start import DrafterSizes

SIZES = DrafterSizes(block_size=6, draft_vocab_size=200, rank=8, mlp_hidden=16, taps=2)
LAYERS, WIDTH = 5, 32


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    """256 bytes and three control tokens."""
    return byte_level(CHATML)


@cache
def tiny_model() -> Model:
    """A random Llama over bytes."""
    torch.manual_seed(0)
    width = len(tokenizer())
    llama = tiny_llama(width, num_hidden_layers=LAYERS, hidden_size=WIDTH, intermediate_size=48)
    return load(llama, tokenizer=tokenizer(), drafter=None)


def schema_of(*words: str) -> dict:
    """A document with one word of a list, and a short text."""
    return {
        "type": "object",
        "properties": {
            "kind": {"enum": list(words)},
            "text": {"type": "string", "pattern": "^[a-f]{12,40}$"},
        },
        "required": ["kind", "text"],
        "additionalProperties": False,
    }


def tiny_prompts(count: int, *, category: str = "calls") -> list[TrainPrompt]:
    """Prompts with a schema each; some of them are held out."""
    prompts = []
    for number in range(count):
        schema = schema_of(f"a{number}", f"b{number}")
        prompts.append(
            TrainPrompt(f"p{number}", category, f"say {number}", {"json_schema": schema}, group_of(schema))
        )
    assert 0 < sum(is_held_out(prompt.group) for prompt in prompts) < count
    return prompts
