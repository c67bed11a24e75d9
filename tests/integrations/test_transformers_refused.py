"""XPressGenerate: what it cannot honour is refused by name."""

from __future__ import annotations

import re

import pytest
import torch
from transformers import DynamicCache, GenerationConfig, WatermarkingConfig

import xpress_struct as xs
from tests.api.tiny import tiny_llama
from tests.integrations.tiny import PROMPTS, TOKENIZER, WORDS, inputs, network
from xpress_struct.errors import ArgumentError, UnknownArgumentError, UnsupportedFeatureError
from xpress_struct.integrations.transformers import XPressGenerate


def generate(*prompts: str, constraint: object = WORDS, **options: object) -> torch.Tensor:
    decode = XPressGenerate(constraint, tokenizer=TOKENIZER)
    return network().generate(
        **{"max_new_tokens": 20, **inputs(*prompts), "custom_generate": decode, **options}
    )


@pytest.mark.parametrize(
    ("options", "instead"),
    [
        ({"num_beams": 2}, "ConstraintLogitsProcessor"),
        ({"output_scores": True, "return_dict_in_generate": True}, "ConstraintLogitsProcessor"),
        ({"output_logits": True, "return_dict_in_generate": True}, "ConstraintLogitsProcessor"),
        ({"output_attentions": True, "return_dict_in_generate": True}, "ConstraintLogitsProcessor"),
        ({"output_hidden_states": True, "return_dict_in_generate": True}, "ConstraintLogitsProcessor"),
        ({"typical_p": 0.5, "do_sample": True}, "ConstraintLogitsProcessor"),
        ({"epsilon_cutoff": 0.1, "do_sample": True}, "ConstraintLogitsProcessor"),
        ({"eta_cutoff": 0.1, "do_sample": True}, "ConstraintLogitsProcessor"),
        ({"top_h": 0.5, "do_sample": True}, "ConstraintLogitsProcessor"),
        ({"guidance_scale": 1.5}, "ConstraintLogitsProcessor"),
        ({"watermarking_config": WatermarkingConfig()}, "ConstraintLogitsProcessor"),
        ({"encoder_repetition_penalty": 1.5}, "ConstraintLogitsProcessor"),
        ({"encoder_no_repeat_ngram_size": 2}, "ConstraintLogitsProcessor"),
        ({"prefix_allowed_tokens_fn": lambda row, ids: [5]}, "the constraint"),
        ({"forced_eos_token_id": 5}, "on_limit"),
        ({"forced_bos_token_id": 5}, "the constraint"),
        ({"prompt_lookup_num_tokens": 3}, "drafter"),
        ({"num_assistant_tokens": 3}, "block_length"),
        ({"assistant_model": tiny_llama(len(TOKENIZER))}, "drafter"),
        ({"use_cache": False}, "key/value cache"),
        ({"cache_implementation": "static"}, "key/value cache"),
        ({"position_ids": torch.full((1, 1), 4)}, "ConstraintLogitsProcessor"),
        ({"negative_prompt_ids": torch.ones(1, 3, dtype=torch.long)}, "ConstraintLogitsProcessor"),
        ({"synced_gpus": True}, "each process"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_arguments_that_are_not_honoured_are_refused_by_name(options, instead) -> None:
    """The error names the argument, and what to do instead."""
    name = next(iter(options))
    instead = "key/value cache" if instead == "key/value cache" else instead
    name = {"past_key_values": "(cache|past_key_values)"}.get(name, name)
    with pytest.raises(UnsupportedFeatureError, match=f"cannot honour {name}=.*: .*{instead}"):
        generate("a", **options)


@pytest.mark.filterwarnings("ignore:.*past_key_values.*:FutureWarning")
@pytest.mark.parametrize("filled", [False, True])
def test_a_cache_of_the_callers_is_refused(filled: bool) -> None:
    """A cache that was passed is not ignored, be it empty or not."""
    cache = DynamicCache()
    if filled:
        network()(torch.tensor([[5]]), past_key_values=cache)
    with pytest.raises(UnsupportedFeatureError, match=r"honour (cache|past_key_values)=DynamicCache"):
        generate("ab", past_key_values=cache)


def test_a_field_that_is_not_known_is_refused_unless_it_asks_for_nothing() -> None:
    """A field of a later transformers is refused where it has a value."""
    config = GenerationConfig(max_new_tokens=9, eos_token_id=TOKENIZER.eos_token_id)
    config.sharpen = None
    assert generate("a", generation_config=config, max_new_tokens=9).shape[1] > 1
    config.sharpen = 0.3
    with pytest.raises(UnsupportedFeatureError, match=re.escape("sharpen=0.3")) as caught:
        generate("a", generation_config=config, max_new_tokens=9)
    assert caught.value.feature == "sharpen"


def test_embeddings_instead_of_ids_are_refused() -> None:
    """inputs_embeds is refused, with or without ids beside it."""
    embeds = network().get_input_embeddings()(torch.tensor([[1, 2]])).detach()
    decode = XPressGenerate(WORDS, tokenizer=TOKENIZER)
    with pytest.raises(UnsupportedFeatureError, match="inputs_embeds=Tensor: pass input_ids"):
        network().generate(inputs_embeds=embeds, custom_generate=decode, max_new_tokens=5)


def test_stop_strings_of_generate_do_not_get_lost() -> None:
    """transformers refuses them before we are asked: it drops the tokenizer that it wants for them."""
    with pytest.raises(ValueError, match=r"stop.strings"):
        generate("a", stop_strings=["b"], tokenizer=TOKENIZER)


@pytest.mark.parametrize("name", ["prefix", "temperature", "timeout", "nonsense"])
def test_options_that_belong_elsewhere_are_refused(name: str) -> None:
    """The object takes what `generate` has no argument for, and nothing else."""
    with pytest.raises(UnknownArgumentError, match=f"no '{name}'"):
        XPressGenerate(WORDS, tokenizer=TOKENIZER, **{name: 1})
    with pytest.raises(ArgumentError, match="acceptance"):
        XPressGenerate(WORDS, tokenizer=TOKENIZER, acceptance="nonsense")


class Streamer:
    def put(self, value):
        pass

    def end(self):
        pass


def test_calls_that_make_no_sense_are_refused() -> None:
    """A streamer with rows or twice, constraints that do not divide, a model that drops out, and others."""
    with pytest.raises(ArgumentError, match="one row, not 3"):
        generate(*PROMPTS, streamer=Streamer())
    both = XPressGenerate(WORDS, tokenizer=TOKENIZER, streamer=Streamer())
    with pytest.raises(ArgumentError, match="not to both"):
        generate("a", custom_generate=both, streamer=Streamer())
    with pytest.raises(ArgumentError, match="2 constraints do not go into a batch of 3 rows"):
        generate(*PROMPTS, constraint=[WORDS, None])
    with pytest.raises(ArgumentError, match=r"xs\.regex"):
        XPressGenerate("a+")
    with pytest.raises(ArgumentError, match="drafter"):
        XPressGenerate(WORDS, drafter=3)
    training = tiny_llama(len(TOKENIZER)).train()
    with pytest.raises(ArgumentError, match=r"model\.eval\(\)"):
        training.generate(**inputs("a"), custom_generate=both, max_new_tokens=3)


def test_rows_that_cannot_be_padded_are_an_error() -> None:
    """Without a pad or end token, outputs of several lengths have no shape."""
    bare = tiny_llama(len(TOKENIZER))
    decode = XPressGenerate([xs.regex("a"), xs.regex("bb")], tokenizer=TOKENIZER)
    read = inputs("a", "b")
    with pytest.raises(ArgumentError, match="pad_token_id"):
        bare.generate(**read, custom_generate=decode, max_new_tokens=9)
    rows = bare.generate(**read, custom_generate=decode, max_new_tokens=9, pad_token_id=0)
    assert rows.shape == (2, 1 + 3)
