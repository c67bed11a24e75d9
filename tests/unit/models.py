"""Tiny random models of transformers over bytes: every kind of cache, no download."""

from __future__ import annotations

from functools import cache

import torch
import transformers

import xpress_struct as xs
from tests.stubs import END, byte_vocabulary
from xpress_struct.target.target import TransformersTarget

WIDTH = 257
_SMALL = {
    "vocab_size": WIDTH,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "initializer_range": 0.1,
    "bos_token_id": None,
    "eos_token_id": END,
    "pad_token_id": None,
}


def _config(name: str):
    if name == "llama":
        return transformers.LlamaConfig(**_SMALL)
    if name == "mistral":
        return transformers.MistralConfig(**_SMALL, sliding_window=8)
    if name == "gemma3":
        kinds = ["sliding_attention", "full_attention"]
        return transformers.Gemma3TextConfig(**_SMALL, sliding_window=8, layer_types=kinds)
    if name == "gpt2":
        return transformers.GPT2Config(
            vocab_size=WIDTH,
            n_embd=32,
            n_layer=2,
            n_head=2,
            n_positions=512,
            initializer_range=0.1,
            bos_token_id=None,
            eos_token_id=END,
        )
    if name == "mamba":
        return transformers.MambaConfig(
            vocab_size=WIDTH,
            hidden_size=32,
            num_hidden_layers=2,
            state_size=8,
            eos_token_id=END,
            bos_token_id=None,
            pad_token_id=None,
        )
    if name == "qwen3_5":
        return transformers.Qwen3_5TextConfig(
            **_SMALL,
            layer_types=["linear_attention", "full_attention"],
            linear_num_key_heads=2,
            linear_num_value_heads=2,
            linear_key_head_dim=8,
            linear_value_head_dim=8,
        )
    assert name == "falcon_h1"
    return transformers.FalconH1Config(
        **_SMALL, mamba_d_ssm=32, mamba_n_heads=4, mamba_d_head=8, mamba_d_state=8
    )


@cache
def tiny(name: str, dtype: torch.dtype = torch.float32):
    torch.manual_seed(0)
    config = _config(name)
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    return model.to(dtype).eval()


@cache
def tiny_model(name: str, dtype: torch.dtype = torch.float32) -> xs.Model:
    return xs.Model(TransformersTarget(tiny(name, dtype)), None, byte_vocabulary(), None)
