"""What tests of the integrations share: a tiny random model, its tokenizer, and plain masked decoding."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from transformers import LlamaForCausalLM

import xpress_struct as xs
from tests.api.tiny import byte_level, tiny_llama
from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.sampling import unpack_mask

TOKENIZER = byte_level(words=[b"true", b"name", b"abc", b"bc"])
END, PAD = TOKENIZER.eos_token_id, TOKENIZER.pad_token_id
PROMPTS = ["a", "the prompt abc abc", "tell me: {"]

WORDS = xs.regex("[a-c]{2,6}( [a-d]{1,4}){0,3}")
RECORD = xs.json_schema(
    {
        "type": "object",
        "properties": {"name": {"enum": ["abc", "b", "true"]}, "ok": {"type": "boolean"}},
        "required": ["name", "ok"],
        "additionalProperties": False,
    }
)


@cache
def network() -> LlamaForCausalLM:
    made = tiny_llama(len(TOKENIZER))
    made.generation_config.eos_token_id = END
    made.generation_config.pad_token_id = PAD
    return made


@cache
def ours() -> xs.Model:
    return xs.load(network(), tokenizer=TOKENIZER, device="cpu")


def inputs(*prompts: str) -> dict[str, torch.Tensor]:
    """Left-padded ids [rows, n] and their mask."""
    return dict(TOKENIZER(list(prompts), return_tensors="pt", padding=True, padding_side="left"))


def output(sequence: torch.Tensor, prompt_length: int) -> tuple[int, ...]:
    """The output ids of a row, without what pads it."""
    ids = sequence[prompt_length:].tolist()
    return tuple(ids[: ids.index(END) + 1] if END in ids else ids)


@torch.inference_mode()
def plain(prompt: Sequence[int], constraint: Constraint | None, most: int = 40) -> tuple[int, ...]:
    """Masked greedy decoding, written out: the whole sequence is scored again for each token."""
    vocabulary = Vocabulary.from_tokenizer(TOKENIZER, end_ids=[END])
    matcher = constraint.matcher(vocabulary)[0] if constraint else None
    ids: list[int] = []
    while len(ids) < most and END not in ids:
        logits = network()(torch.tensor([[*prompt, *ids]])).logits[0, -1].float()
        if matcher:
            legal = unpack_mask(torch.from_numpy(matcher.mask()), logits.shape[-1])
            logits = logits.masked_fill(~legal, -torch.inf)
        ids.append(int(logits.argmax()))
        if matcher:
            matcher.commit(ids[-1:])
    return tuple(ids)
