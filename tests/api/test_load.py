"""load: loaded objects, folders, and what does not fit together."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import xpress_struct as xs
from tests.api.tiny import CHATML, byte_level, tiny_llama
from tests.stubs import label
from xpress_struct.errors import ArgumentError, ModelError, TokenizerMismatchError

TOKENIZER = byte_level(CHATML)
WIDTH = len(TOKENIZER)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny")
    network = tiny_llama(WIDTH)
    network.generation_config.eos_token_id = [TOKENIZER.eos_token_id, 7]
    network.save_pretrained(path)
    TOKENIZER.save_pretrained(path)
    return path


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_loaded_objects_generate(temperature: float) -> None:
    """A loaded model with its tokenizer generates under a constraint, from text."""
    model = xs.load(tiny_llama(WIDTH), tokenizer=TOKENIZER, device="cpu")
    result = model.generate("Hi", xs.regex("[a-z]{3,9}"), temperature=temperature, seed=1)
    assert 3 <= len(result.value) <= 9
    assert result.stats.drafter == "lookup"
    assert result.stats.prompt_tokens > 10


@pytest.mark.parametrize("constraint", [None, xs.regex("([a-f]{2} ){9}"), xs.json_schema({})])
def test_greedy_ids_are_those_of_a_plain_loop(constraint: object) -> None:
    """Greedy decoding is the argmax of the masked logits of one forward per token."""
    network = tiny_llama(WIDTH)
    model = xs.load(network, tokenizer=TOKENIZER, device="cpu")
    result = model.generate([72, 105], constraint, max_new_tokens=24)
    ids, matcher = [72, 105], None
    if constraint is not None:
        matcher, _ = constraint.matcher(model.vocabulary)
    for token in result.token_ids:
        with torch.inference_mode():
            logits = network(torch.tensor([ids])).logits[0, -1]
        if matcher is not None:
            legal = torch.tensor([matcher.legal(i) for i in range(WIDTH)])
            logits = logits.masked_fill(~legal, -torch.inf)
            matcher.commit([token])
        assert token == int(logits.argmax())
        ids.append(token)


def test_a_folder_is_loaded(folder: Path) -> None:
    """A folder gives model, tokenizer and all end ids; as text or as Path; with equal results."""
    results = []
    for name in (folder, str(folder)):
        model = xs.load(name, device="cpu")
        assert set(model.vocabulary.end_ids) == {TOKENIZER.eos_token_id, 7}
        results.append(model.generate("Hi", xs.regex("[a-z]{5}")).text)
    assert results[0] == results[1]
    assert xs.generate("Hi", xs.regex("[a-z]{5}"), model=str(folder)).text == results[0]


@pytest.mark.parametrize("name", ["no/such-folder-here", "/nowhere/at/all", "./missing"])
def test_an_unknown_model_is_a_model_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder or id that cannot be read is a ModelError (an OSError) with its name."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match=name.rsplit("/", 1)[-1]) as caught:
        xs.load(name)
    assert isinstance(caught.value, OSError)


def test_an_empty_folder_is_a_model_error(tmp_path: Path) -> None:
    """A folder without a model is a ModelError."""
    with pytest.raises(ModelError, match="cannot be loaded"):
        xs.load(tmp_path)


def test_a_folder_without_tokenizer_is_a_model_error(folder: Path, tmp_path: Path) -> None:
    """A folder with a model and no tokenizer says that the tokenizer is missing."""
    for file in ("config.json", "model.safetensors"):
        (tmp_path / file).write_bytes((folder / file).read_bytes())
    with pytest.raises(ModelError, match="tokenizer"):
        xs.load(tmp_path)


def test_a_loaded_model_needs_its_tokenizer() -> None:
    """A loaded model without tokenizer is refused with how to pass one."""
    with pytest.raises(ArgumentError, match="tokenizer="):
        xs.load(tiny_llama(WIDTH))


@pytest.mark.parametrize("model", [7, object(), {"config": 1}, torch.nn.Linear(2, 2)], ids=label)
def test_other_objects_are_refused(model: object) -> None:
    """What is no model is refused by its type."""
    with pytest.raises(ArgumentError, match=type(model).__name__):
        xs.load(model, tokenizer=TOKENIZER)


@pytest.mark.parametrize("width", [WIDTH - 1, 100])
def test_a_tokenizer_of_another_model_is_refused(width: int) -> None:
    """A tokenizer with more ids than the model has logits does not belong to it."""
    with pytest.raises(TokenizerMismatchError, match=f"{WIDTH} ids .* {width}"):
        xs.load(tiny_llama(width), tokenizer=TOKENIZER, device="cpu")


@pytest.mark.parametrize("tokenizer", [object(), lambda text: [1]], ids=["object", "function"])
def test_what_is_no_fast_tokenizer_is_refused(tokenizer: object) -> None:
    """A tokenizer without a fast backend is refused with what to do."""
    with pytest.raises(TokenizerMismatchError, match="fast tokenizer"):
        xs.load(tiny_llama(WIDTH), tokenizer=tokenizer, device="cpu")


def test_padding_ids_of_a_real_model_are_barred() -> None:
    """A model with a padded vocabulary never says an id that the tokenizer lacks."""
    network = tiny_llama(WIDTH + 30)
    with torch.no_grad():
        network.lm_head.weight[WIDTH:] *= 50
    model = xs.load(network, tokenizer=TOKENIZER, device="cpu")
    for constraint in (None, xs.regex("[a-z]{20}")):
        for temperature in (0.0, 1.0):
            result = model.generate("Hi", constraint, temperature=temperature, seed=1, max_new_tokens=20)
            assert max(result.token_ids) < WIDTH


@pytest.mark.parametrize("device", ["warp", "cuda:99:1"])
def test_a_device_that_does_not_exist_is_refused(device: str, folder: Path) -> None:
    """An unknown device is an ArgumentError that names it."""
    with pytest.raises(ArgumentError, match="device"):
        xs.load(folder, device=device)


@pytest.mark.parametrize("drafter", ["eagle", 7, object()])
def test_an_unknown_drafter_is_refused_before_loading(drafter: object) -> None:
    """A drafter that does not exist is refused before anything is loaded."""
    with pytest.raises(ArgumentError, match="drafter"):
        xs.load("/nowhere/at/all", drafter=drafter)


@pytest.mark.parametrize("drafter", [None, "auto", "lookup"])
def test_the_drafter_changes_no_token(drafter: object) -> None:
    """Ids with and without the lookup drafter are the same."""
    plain = xs.load(tiny_llama(WIDTH), tokenizer=TOKENIZER, drafter=None, device="cpu")
    model = xs.load(tiny_llama(WIDTH), tokenizer=TOKENIZER, drafter=drafter, device="cpu")
    constraint = xs.regex("([a-c]{3},){8}")
    for options in ({}, {"temperature": 1.0, "seed": 5}):
        result = model.generate("abc,abc,abc,", constraint, **options)
        assert result.token_ids == plain.generate("abc,abc,abc,", constraint, **options).token_ids
        assert result.stats.drafter == ("none" if drafter is None else "lookup")


def test_the_context_length_bounds_the_output() -> None:
    """Output ends where the model's positions end."""
    network = tiny_llama(WIDTH, max_position_embeddings=40)
    model = xs.load(network, tokenizer=TOKENIZER, device="cpu")
    result = model.generate([65] * 30, xs.regex("[a-z]{99}"))
    assert (len(result.token_ids), result.finish_reason) == (10, "length")


def test_a_folder_is_a_drafter(tmp_path):
    """A folder or an id with a slash as drafter is loaded as a smaller model, and shares the target's ids."""
    tokenizer = byte_level()
    model = tiny_llama(len(tokenizer))
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = xs.load(model, tokenizer=tokenizer, drafter=tmp_path)
    constraint = xs.regex("[a-c]{6}")
    out = loaded.generate("abc", constraint, chat=False)
    assert out.stats.drafter == "autoregressive"
    assert out.stats.accepted == out.stats.proposed > 0
    assert out.token_ids == loaded.generate("abc", constraint, chat=False, drafter=None).token_ids


def test_end_ids_that_the_tokenizer_lacks_are_refused():
    """A model whose end id is none of the tokenizer's does not belong to it."""
    tokenizer = byte_level()
    model = tiny_llama(len(tokenizer) + 8)
    model.generation_config.eos_token_id = [len(tokenizer) + 3]
    with pytest.raises(TokenizerMismatchError, match="ends texts with"):
        xs.load(model, tokenizer=tokenizer)
