"""B54: real caches under rejected drafts: full, sliding, and those that cannot go back."""

from __future__ import annotations

import pytest
import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    StaticCache,
)

import xpress_struct as xs
from tests.api.tiny import byte_level
from tests.stubs import ScriptedDrafter
from xpress_struct.errors import CacheRollbackError
from xpress_struct.target.cache import TargetCache
from xpress_struct.target.target import TransformersTarget

TOKENIZER = byte_level()
COMMON = {
    "vocab_size": len(TOKENIZER),
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 256,
    "initializer_range": 0.5,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}


def llama() -> torch.nn.Module:
    return LlamaForCausalLM(LlamaConfig(num_hidden_layers=2, **COMMON))


def gemma() -> torch.nn.Module:
    return Gemma3ForCausalLM(
        Gemma3TextConfig(
            num_hidden_layers=2,
            head_dim=8,
            sliding_window=8,
            layer_types=["sliding_attention", "full_attention"],
            **COMMON,
        )
    )


def qwen_hybrid() -> torch.nn.Module:
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

    return Qwen3_5ForCausalLM(
        Qwen3_5TextConfig(
            num_hidden_layers=2,
            head_dim=8,
            layer_types=["linear_attention", "full_attention"],
            linear_num_key_heads=2,
            linear_num_value_heads=2,
            linear_key_head_dim=8,
            linear_value_head_dim=8,
            **COMMON,
        )
    )


def made(make: object) -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return make().eval()


@pytest.mark.parametrize("make", [llama, gemma])
@pytest.mark.parametrize("prompt", [3, 40])
def test_b54_logits_after_a_rollback_equal_recomputation(make: object, prompt: int) -> None:
    """After one of five drafts is kept, again and again, logits equal those of a fresh run."""
    model = made(make)
    target = TransformersTarget(model)
    generator = torch.Generator().manual_seed(0)

    def random_ids(count: int) -> list[int]:
        return torch.randint(0, 256, (count,), generator=generator).tolist()

    kept = random_ids(prompt)
    cache = target.new_cache()
    target.score(cache, kept, 1)
    cache.rollback_to([len(kept)])
    for _ in range(12):
        draft = random_ids(6)
        logits = target.score(cache, draft, 6)
        with torch.inference_mode():
            whole = model(torch.tensor([kept + draft]), use_cache=False).logits[0, -6:]
        torch.testing.assert_close(logits, whole, atol=1e-5, rtol=1e-4)
        kept += draft[:2]
        cache.rollback_to([len(kept)])


@pytest.mark.parametrize("make", [llama, gemma])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("right", [0, 1, 4])
def test_b54_rejected_drafts_leave_the_ids_alone(make: object, temperature: float, right: int) -> None:
    """With one draft token right and the rest wrong, the ids are those of plain decoding."""
    model = xs.load(made(make), tokenizer=TOKENIZER, drafter=None, device="cpu")
    constraint = xs.regex("([a-f]{5} ){8}")
    options = {"temperature": temperature, "seed": 3, "max_new_tokens": 60}
    plain = model.generate("A prompt of some length", constraint, **options)

    def guess(output: tuple[int, ...]) -> list[int]:
        known = list(plain.token_ids[len(output) : len(output) + right])
        return [*known, *(b"fafafa"[right:])]

    drafted = model.generate("A prompt of some length", constraint, drafter=ScriptedDrafter(guess), **options)
    assert drafted.token_ids == plain.token_ids
    assert drafted.stats.proposed > drafted.stats.accepted


def test_b54_a_recurrent_state_is_decoded_without_speculation() -> None:
    """A hybrid model works, without drafts, and the statistics say why."""
    model = xs.load(made(qwen_hybrid), tokenizer=TOKENIZER, device="cpu")
    result = model.generate("abcabcabc", xs.regex("(abc){2}[a-z]{4}"), max_new_tokens=30)
    assert len(result.text) == 10
    assert result.stats.drafter == "none"
    assert result.stats.no_speculation
    assert result.stats.proposed == 0


def test_b54_a_recurrent_state_decodes_the_right_tokens() -> None:
    """Forced runs reach a recurrent model one by one, with the logits of a fresh run."""
    network = made(qwen_hybrid)
    target = TransformersTarget(network)
    cache = target.new_cache()
    ids = list(b"some text to read first")
    target.score(cache, ids[:10], 1)
    logits = target.score(cache, ids[10:], 2)
    with torch.inference_mode():
        whole = network(torch.tensor([ids]), use_cache=False).logits[0, -2:]
    torch.testing.assert_close(logits, whole, atol=1e-4, rtol=1e-3)


def test_b54_a_static_cache_goes_back_exactly_or_refuses() -> None:
    """A static cache is rolled back to the logits of a fresh run, or refused with a reason."""
    network = made(llama)
    target = TransformersTarget(network)
    cache = TargetCache(StaticCache(config=network.config, max_cache_len=32))
    target.score(cache, [1, 2, 3, 4, 5], 1)
    try:
        cache.rollback_to([2])
    except CacheRollbackError:
        return
    fresh = target.score(target.new_cache(), [1, 2, 7], 1)
    torch.testing.assert_close(target.score(cache, [7], 1), fresh)
