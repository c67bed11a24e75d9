"""Small real tokenizers and models, made in memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tests.stubs import Logits, StubTarget
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.model import Model

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
THINKING = CHATML.replace(
    "assistant\n",
    "assistant\n{% if enable_thinking is defined and enable_thinking is false %}"
    "<think>\n\n</think>\n\n{% endif %}",
)
CONTROL = ["<|im_start|>", "<|im_end|>", "<pad>"]


def byte_level(
    template: str | None = None,
    *,
    words: Sequence[bytes] = (),
    added: Sequence[AddedToken] = (),
) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer: 256 bytes, whole words by merges of their bytes, control tokens."""
    letters = bytes_to_letters()
    vocabulary = {letters[i]: i for i in range(256)}
    merges: list[tuple[str, str]] = []
    for word in words:
        spelled = [letters[byte] for byte in word]
        for end in range(2, len(spelled) + 1):
            vocabulary.setdefault("".join(spelled[:end]), len(vocabulary))
            pair = ("".join(spelled[: end - 1]), spelled[end - 1])
            if pair not in merges:
                merges.append(pair)
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(CONTROL)
    if added:
        backend.add_tokens(list(added))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<pad>")
    tokenizer.chat_template = template
    return tokenizer


def metaspace(pieces: Sequence[str]) -> PreTrainedTokenizerFast:
    """A SentencePiece-like BPE tokenizer with byte fallback."""
    vocabulary = {"<unk>": 0, "<s>": 1, "</s>": 2}
    for byte in range(256):
        vocabulary[f"<0x{byte:02X}>"] = len(vocabulary)
    for piece in ["\u2581", *"abcdefghijklmnopqrstuvwxyzPI", *pieces]:
        vocabulary.setdefault(piece, len(vocabulary))
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    backend.decoder = decoders.Sequence(
        [
            decoders.Replace("\u2581", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    backend.add_special_tokens(["<unk>", "<s>", "</s>"])
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>", unk_token="<unk>")


@cache
def bytes_to_letters() -> list[str]:
    """The printable letter that byte-level tokenizers write for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = (i for i in range(256) if i not in plain)
    shifted = {byte: 256 + place for place, byte in enumerate(rest)}
    return [chr(shifted.get(byte, byte)) for byte in range(256)]


def tiny_llama(width: int, **config: Any) -> LlamaForCausalLM:
    """A random Llama of a few thousand weights; the same each time."""
    settings = LlamaConfig(
        **{
            "vocab_size": width,
            "hidden_size": 16,
            "intermediate_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "max_position_embeddings": 512,
            "bos_token_id": None,
            "eos_token_id": None,
            "pad_token_id": None,
            "initializer_range": 0.5,
            **config,
        }
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return LlamaForCausalLM(settings).eval()


def scripted(tokenizer: PreTrainedTokenizerFast, logits: Logits, drafter: Any = None) -> Model:
    """A model with a real tokenizer over a scripted target."""
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    return Model(StubTarget(logits, vocabulary.width), tokenizer, vocabulary, drafter)


def says(tokenizer: PreTrainedTokenizerFast, text: str, prompt_length: int) -> Logits:
    """Logits that want to write a text behind a prompt of that many tokens, then to end."""
    wanted = [*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id]

    def logits(prefix: tuple[int, ...]) -> list[float]:
        row = [0.0] * len(tokenizer)
        row[wanted[min(max(len(prefix) - prompt_length, 0), len(wanted) - 1)]] = 10.0
        return row

    return logits
