"""ConstraintLogitsProcessor: one mask for every decoding method of `generate` (cases B37, B53)."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LogitsProcessor, PreTrainedTokenizerFast

import xpress_struct as xs
from tests.api.tiny import tiny_llama
from tests.integrations.tiny import END, PROMPTS, RECORD, TOKENIZER, WORDS, inputs, network, output, plain
from xpress_struct.errors import (
    ArgumentError,
    DeadEndError,
    TokenizerMismatchError,
    UnsupportedFeatureError,
)
from xpress_struct.integrations.transformers import ConstraintLogitsProcessor

CONSTRAINTS = [WORDS, RECORD]


def generate(prompt: str, constraint: object, **options: object) -> tuple[int, ...]:
    read = inputs(prompt)
    length = read["input_ids"].shape[1]
    mask = ConstraintLogitsProcessor(constraint, TOKENIZER, length)
    ids = network().generate(**read, logits_processor=[mask], max_new_tokens=40, **options)
    return output(ids[0], length)


def assistant() -> object:
    made = tiny_llama(len(TOKENIZER), num_hidden_layers=1, initializer_range=0.2)
    made.generation_config.eos_token_id = END
    return made


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize(
    "options",
    [{}, {"prompt_lookup_num_tokens": 5}, {"assistant_model": assistant()}],
    ids=["plain", "prompt_lookup", "assistant_model"],
)
def test_greedy_methods_give_the_ids_of_plain_masked_decoding(prompt, constraint, options) -> None:
    """B53: under plain decoding, prompt lookup and an assistant model the ids are the same."""
    expected = plain(TOKENIZER.encode(prompt), constraint)
    assert generate(prompt, constraint, **options) == expected
    assert constraint.accepts(TOKENIZER.decode(expected, skip_special_tokens=True))


@pytest.mark.parametrize("options", [{"prompt_lookup_num_tokens": 5}, {"assistant_model": assistant()}])
def test_assisted_methods_ask_for_places_again(options) -> None:
    """What the test above relies on: prefixes come that are no longer than those before."""
    lengths = []

    class Watched(ConstraintLogitsProcessor):
        def __call__(self, input_ids, scores):
            lengths.append(input_ids.shape[1])
            return super().__call__(input_ids, scores)

    read = inputs(PROMPTS[1])
    mask = Watched(WORDS, TOKENIZER, read["input_ids"].shape[1])
    network().generate(**read, logits_processor=[mask], max_new_tokens=40, **options)
    assert any(later <= earlier for earlier, later in pairwise(lengths))


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("options", [{}, {"prompt_lookup_num_tokens": 5}, {"assistant_model": assistant()}])
def test_sampled_texts_fit(constraint, options) -> None:
    """With sampling, too, every text is whole and fits."""
    for seed in range(4):
        torch.manual_seed(seed)
        ids = generate(PROMPTS[1], constraint, do_sample=True, temperature=1.5, top_k=0, **options)
        assert ids[-1] == END
        assert constraint.accepts(TOKENIZER.decode(ids, skip_special_tokens=True))


def log_probability(prompt: list[int], ids: tuple[int, ...]) -> float:
    with torch.inference_mode():
        logits = network()(torch.tensor([[*prompt, *ids]])).logits[0].float().log_softmax(-1)
    places = range(len(prompt) - 1, len(prompt) + len(ids) - 1)
    return sum(float(logits[place, token]) for place, token in zip(places, ids, strict=True))


def test_beam_search_finds_the_likeliest_text_of_a_small_language() -> None:
    """With more beams than the language has texts, beam search finds the best of all; reordered rows do not
    mix."""
    texts = ["aaa", "aab", "aba", "dab", "dad", "ddd"]
    constraint = xs.regex("|".join(texts))
    prompt = TOKENIZER.encode(PROMPTS[1])
    spelled = {text: (*TOKENIZER.encode(text), END) for text in texts}
    best = max(spelled.values(), key=lambda ids: log_probability(prompt, ids))
    beams = {"num_beams": 8, "length_penalty": 0.0, "early_stopping": False}
    assert generate(PROMPTS[1], constraint, **beams) == best


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_beams_of_a_batch_fit(constraint) -> None:
    """Every returned beam of every prompt is a whole text."""
    read = inputs(*PROMPTS)
    length = read["input_ids"].shape[1]
    mask = ConstraintLogitsProcessor([constraint, None, constraint], TOKENIZER, length)
    rows = network().generate(
        **read, logits_processor=[mask], max_new_tokens=40, num_beams=3, num_return_sequences=2
    )
    for row in (0, 1, 4, 5):
        text = TOKENIZER.decode(output(rows[row], length), skip_special_tokens=True)
        assert constraint.accepts(text)


def test_each_row_of_a_ragged_batch_has_its_own_constraint() -> None:
    """B37: rows with constraints of their own end at different steps, each as it would alone; the free row is
    that of free decoding."""
    constraints = [xs.regex("aa"), xs.regex("b{8}"), None, RECORD]
    prompts = [*PROMPTS, "one more"]
    read = inputs(*prompts)
    length = read["input_ids"].shape[1]
    mask = ConstraintLogitsProcessor(constraints, TOKENIZER, length)
    rows = network().generate(**read, logits_processor=[mask], max_new_tokens=30)
    free = network().generate(**read, max_new_tokens=30)
    found = [output(row, length) for row in rows]
    for ids, prompt, constraint in zip(found, prompts, constraints, strict=True):
        assert ids == plain(TOKENIZER.encode(prompt), constraint, 30)
    assert found[2] == output(free[2], length)
    texts = [TOKENIZER.decode(ids, skip_special_tokens=True) for ids in found]
    assert texts[:2] == ["aa", "bbbbbbbb"]
    assert json.loads(texts[3]).keys() == {"name", "ok"}


def masks_along(text: str, constraint, mask: LogitsProcessor) -> dict[tuple[int, ...], torch.Tensor]:
    ids = [*TOKENIZER.encode(text), END, END, 0]
    prefixes = [tuple(ids[:end]) for end in range(len(ids) + 1)]
    return {prefix: mask(torch.tensor([[7, *prefix]]), torch.zeros(1, len(TOKENIZER))) for prefix in prefixes}


@pytest.mark.parametrize("kept", [1, 128])
def test_a_mask_is_a_function_of_the_prefix(monkeypatch, kept: int) -> None:
    """Prefixes asked for in any order, again, and after others, get the mask that a fresh object gives; so do
    illegal ones and those behind the end, which get the end token alone."""
    monkeypatch.setattr("xpress_struct.integrations.transformers.processor._KEPT_STATES", kept)
    expected: dict[tuple[int, ...], torch.Tensor] = {}
    for text in ("abc abc", "abccx", "ca d"):
        expected |= masks_along(text, WORDS, ConstraintLogitsProcessor(WORDS, TOKENIZER, 1))
    asked = ConstraintLogitsProcessor(WORDS, TOKENIZER, 1)
    order = torch.randperm(3 * len(expected), generator=torch.Generator().manual_seed(0)) % len(expected)
    prefixes = list(expected)
    for index in order.tolist():
        found = asked(torch.tensor([[7, *prefixes[index]]]), torch.zeros(1, len(TOKENIZER)))
        assert found.equal(expected[prefixes[index]])
    assert len(asked._states) <= kept
    ended = (*TOKENIZER.encode("ca"), END, END)
    left = (*TOKENIZER.encode("abccx"),)
    for prefix in (ended, left):
        scores = asked(torch.tensor([[7, *prefix]]), torch.zeros(1, len(TOKENIZER)))
        assert scores.isfinite().nonzero().tolist() == [[0, END]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_scores_are_left_as_they_are(dtype: torch.dtype) -> None:
    """Scores are not changed in place, legal ones keep their value and type, and padding ids are barred."""
    mask = ConstraintLogitsProcessor(xs.regex("a|b"), TOKENIZER, 1)
    scores = torch.arange(len(TOKENIZER) + 5, dtype=torch.float32).to(dtype)[None]
    before = scores.clone()
    found = mask(torch.tensor([[7]]), scores)
    assert scores.equal(before)
    assert found.dtype == dtype
    legal = TOKENIZER.convert_tokens_to_ids(["a", "b"])
    assert found.isfinite().nonzero()[:, 1].tolist() == legal
    assert found[0, legal].equal(scores[0, legal])


def test_generate_may_stop_at_another_token() -> None:
    """With the ids at which `generate` stops, a finished text ends with one of them."""
    other = TOKENIZER.convert_tokens_to_ids("<|im_start|>")
    read = inputs("a")
    mask = ConstraintLogitsProcessor(xs.regex("abc"), TOKENIZER, 1, eos_token_id=[other, END])
    ids = network().generate(**read, logits_processor=[mask], max_new_tokens=9, eos_token_id=[other, END])
    assert ids[0, 1:].tolist() == [*TOKENIZER.encode("abc"), other]


def test_a_dead_end_is_an_error() -> None:
    """Where no token of the vocabulary fits, the error says so; the row does not go on at random."""
    backend = Tokenizer(models.BPE(vocab={"a": 0, "b": 1}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<end>"])
    letters = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<end>")
    mask = ConstraintLogitsProcessor(xs.regex("a\u00e9|ba"), letters, 0)
    with pytest.raises(DeadEndError, match="output token 1, after 'a'"):
        mask(torch.tensor([[0]]), torch.zeros(1, 3))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"constraint": "a"}, ArgumentError, "xs.regex"),
        ({"constraint": []}, ArgumentError, "empty"),
        ({"prompt_length": -1}, ArgumentError, "width of input_ids"),
        ({"prompt_length": torch.ones(1, 2)}, ArgumentError, "width of input_ids"),
        ({"eos_token_id": []}, ArgumentError, "end token"),
    ],
)
def test_what_cannot_be_honoured_is_refused(change, error, words) -> None:
    """Arguments that make no sense are errors that say what to pass."""
    given = {"constraint": WORDS, "tokenizer": TOKENIZER, "prompt_length": 1, **change}
    eos = {"eos_token_id": given.pop("eos_token_id")} if "eos_token_id" in given else {}
    with pytest.raises(error, match=re.escape(words)):
        ConstraintLogitsProcessor(*given.values(), **eos)


def test_a_constraint_that_is_checked_after_is_refused() -> None:
    """What a mask cannot enforce is not dropped."""
    constraint = xs.json_schema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True})
    assert constraint.checked_after
    with pytest.raises(UnsupportedFeatureError, match=r"uniqueItems.*XPressGenerate"):
        ConstraintLogitsProcessor(constraint, TOKENIZER, 1)


def test_calls_that_do_not_fit_are_refused() -> None:
    """Scores of another vocabulary, shorter prompts and batches that do not divide are errors of ours."""
    mask = ConstraintLogitsProcessor([WORDS, None], TOKENIZER, 3)
    wide = len(TOKENIZER)
    with pytest.raises(TokenizerMismatchError, match="assistant"):
        mask(torch.zeros(2, 3, dtype=torch.long), torch.zeros(2, wide - 1))
    with pytest.raises(ArgumentError, match="fewer than prompt_length=3"):
        mask(torch.zeros(2, 2, dtype=torch.long), torch.zeros(2, wide))
    with pytest.raises(ArgumentError, match="2 constraints do not go into a batch of 3 rows"):
        mask(torch.zeros(3, 3, dtype=torch.long), torch.zeros(3, wide))
