"""OutlinesGenerate: an Outlines call with one argument more gives what it gave, in fewer forwards."""

from __future__ import annotations

import re

import outlines
import pytest
import torch
from outlines.types import JsonSchema, Regex

from tests.api.tiny import tiny_llama
from tests.integrations.outlines.shared import (
    LIMIT,
    SAME_MASKS,
    TYPES,
    Record,
    decoding,
    processor,
    run,
    theirs,
)
from tests.integrations.tiny import END, PROMPTS, TOKENIZER, WORDS, inputs, network, ours, output
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.integrations.outlines.recovered import recover

VOCABULARY = Vocabulary.from_tokenizer(TOKENIZER, end_ids=[END])
DRAFTERS = ["lookup", None, tiny_llama(len(TOKENIZER), num_hidden_layers=1, initializer_range=0.2)]


def accepted(key: tuple[str, str], text: str) -> bool:
    return recover(processor(*key), VOCABULARY).accepts(text)


@pytest.mark.parametrize("drafter", DRAFTERS, ids=["lookup", "none", "model"])
@pytest.mark.parametrize("key", SAME_MASKS, ids="-".join)
def test_greedy_ids_are_those_of_outlines(key, drafter) -> None:
    """Under xgrammar and outlines_core the ids equal those of Outlines alone, whoever guesses."""
    wanted, decode = processor(*key), decoding(drafter=drafter)
    for prompt in PROMPTS:
        assert run(wanted, prompt, custom_generate=decode) == run(wanted, prompt)


@pytest.mark.parametrize("key", TYPES, ids="-".join)
def test_every_backend_and_type_gives_valid_texts(key) -> None:
    """Called as a script calls it, the text is of the output type; a cut one is a beginning of it."""
    decode = decoding()
    for prompt in PROMPTS:
        generator = outlines.Generator(theirs(), TYPES[key], backend=key[0])
        text = generator(prompt, max_new_tokens=90, custom_generate=decode)
        direct = theirs()(prompt, TYPES[key], backend=key[0], max_new_tokens=90, custom_generate=decode)
        assert text == direct
        ids = run(generator.logits_processor, prompt, max_new_tokens=90, custom_generate=decode)[0]
        assert (ids[-1] == END) == accepted(key, text)
        if key[1] == "json" and ids[-1] == END:
            assert Record.model_validate_json(text)


def test_fewer_forwards_are_needed() -> None:
    """With lookup, the model is asked less often than there are tokens; without, once for each choice."""
    forwards = []
    hook = network().register_forward_hook(lambda *_: forwards.append(1))
    try:
        wanted = processor("outlines_core", "json")
        ids = run(wanted, custom_generate=decoding())[0]
        assert len(forwards) < len(ids) * 0.7
    finally:
        hook.remove()


def test_a_batch_is_decoded_row_by_row() -> None:
    """Batches and samples: each row is what it is alone, padded; one seed, one result."""
    for key in SAME_MASKS:
        wanted = processor(*key)
        batch = run(wanted, *PROMPTS, custom_generate=decoding())
        assert batch == [run(wanted, prompt)[0] for prompt in PROMPTS]
    generator = outlines.Generator(theirs(), TYPES["xgrammar", "cfg"], backend="xgrammar")
    found = []
    for _ in range(2):
        torch.manual_seed(5)
        found.append(
            generator.batch(
                PROMPTS,
                custom_generate=decoding(),
                max_new_tokens=200,
                do_sample=True,
                top_k=0,
                num_return_sequences=2,
            )
        )
    assert found[0] == found[1]
    assert [len(row) for row in found[0]] == [2, 2, 2]
    assert len({text for row in found[0] for text in row}) > 3


@pytest.mark.parametrize("key", SAME_MASKS, ids="-".join)
def test_samples_do_not_hang_on_the_drafter(key) -> None:
    """Sampled ids with a seed are the same with and without speculation, and valid when not cut."""
    wanted, sampling = processor(*key), {"do_sample": True, "temperature": 1.4, "top_k": 0}
    texts = set()
    for seed in range(2):
        found = [
            run(wanted, custom_generate=decoding(seed=seed, drafter=drafter), **sampling)[0]
            for drafter in DRAFTERS
        ]
        assert found[0] == found[1] == found[2]
        text = TOKENIZER.decode(found[0], skip_special_tokens=True)
        assert accepted(key, text) or found[0][-1] != END
        texts.add(text)
    assert len(texts) > 1


def test_the_limit_cuts_as_in_outlines() -> None:
    """max_new_tokens cuts where it cuts Outlines; on_limit="close" makes the text whole within it."""
    for key in SAME_MASKS:
        assert run(processor(*key), max_new_tokens=9, custom_generate=decoding()) == run(
            processor(*key), max_new_tokens=9
        )
    regex = outlines.Generator(theirs(), Regex("[ab]{4,200}d"), backend="outlines_core").logits_processor
    given = {"max_new_tokens": 12, "suppress_tokens": [TOKENIZER.convert_tokens_to_ids("d")]}
    cut = run(regex, custom_generate=decoding(), **given)[0]
    closed = run(regex, custom_generate=decoding(on_limit="close"), **given)[0]
    assert len(cut) == 12 and END not in cut
    assert re.fullmatch("[ab]{4,200}d", TOKENIZER.decode(closed, skip_special_tokens=True))


def test_processors_of_the_caller_are_honoured() -> None:
    """Beside the Outlines processor, a caller's own and those of `generate`'s arguments change the logits as
    they do without us."""

    def prefers(input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        scores[:, TOKENIZER.convert_tokens_to_ids("c")] += input_ids.shape[1] % 3
        return scores

    changed = 0
    for key in SAME_MASKS:
        for given in ({"others": [prefers]}, {"repetition_penalty": 1.7}):
            found = run(processor(*key), custom_generate=decoding(), **given)
            assert found == run(processor(*key), **given)
            changed += found != run(processor(*key))
    assert changed > 2


def test_without_an_output_type_the_text_is_free_or_ours() -> None:
    """A plain call is free; a constraint of this library may stand in for the output type."""
    prompt = TOKENIZER.encode(PROMPTS[1])
    for constraint in (None, WORDS):
        text = theirs()(PROMPTS[1], max_new_tokens=30, custom_generate=decoding(constraint=constraint))
        expected = ours().generate(prompt, constraint, max_new_tokens=30).token_ids
        assert text == TOKENIZER.decode(expected, skip_special_tokens=True)
    assert theirs()(PROMPTS[1], max_new_tokens=30, custom_generate=decoding()) == theirs()(
        PROMPTS[1], max_new_tokens=30
    )


def test_stop_strings_stop_where_the_text_is_whole() -> None:
    """stop_strings of the object count where the engine takes what is kept as a whole text."""
    for backend in ("outlines_core", "xgrammar", "llguidance"):
        found = outlines.Generator(theirs(), Regex("ab?cd(cd)*"), backend=backend).logits_processor
        ids = run(found, custom_generate=decoding(stop_strings=["b", "cdc"], include_stop_string=False))[0]
        text = TOKENIZER.decode(ids, skip_special_tokens=True)
        assert text.startswith(("abcd", "acd"))


def test_one_object_serves_many_calls() -> None:
    """The same object serves several types and backends, in turn; a generator may be used again."""
    decode = decoding()
    for _ in range(2):
        for key in SAME_MASKS:
            assert run(processor(*key), custom_generate=decode) == run(processor(*key))
    assert len(decode._recovered) >= len(SAME_MASKS)


def test_the_end_token_of_the_call_ends_the_text() -> None:
    """An end id of `generate` that the engine takes as text ends it, as in Outlines alone."""
    letter = TOKENIZER.convert_tokens_to_ids("b")
    for key in (("outlines_core", "regex"), ("xgrammar", "regex")):
        given = {"eos_token_id": [letter, END], "suppress_tokens": [TOKENIZER.convert_tokens_to_ids("abc")]}
        expected = run(processor(*key), PROMPTS[0], **given)
        assert run(processor(*key), PROMPTS[0], custom_generate=decoding(), **given) == expected


def test_pieces_come_as_they_are_made() -> None:
    """`OutlinesGenerate.stream` as custom_generate gives pieces, and runs no further than asked."""
    wanted, forwards = processor("outlines_core", "regex"), []
    wanted.reset()
    expected = TOKENIZER.decode(run(wanted)[0], skip_special_tokens=True)
    hook = network().register_forward_hook(lambda *_: forwards.append(1))
    try:
        given = {**inputs(PROMPTS[1]), "logits_processor": [wanted], "max_new_tokens": LIMIT}
        pieces = network().generate(**given, custom_generate=decoding(drafter=None).stream)
        assert forwards == []
        first = next(pieces)
        early = len(forwards)
        assert first + "".join(pieces) == expected
        assert early < len(forwards)
    finally:
        hook.remove()


def test_a_json_schema_term_with_blanks_of_its_own_is_honoured() -> None:
    """A whitespace pattern of an output type reaches the recovered constraint."""
    wanted = JsonSchema(Record.model_json_schema(), whitespace_pattern="")
    text = theirs()(PROMPTS[0], wanted, max_new_tokens=60, custom_generate=decoding())
    assert re.fullmatch(r'\{"name":"(abc|b|true)","ok":(true|false)\}', text)


def test_the_same_ids_come_from_a_model_wider_than_its_tokenizer() -> None:
    """Padding ids of a model are never drawn."""
    wide = tiny_llama(len(TOKENIZER) + 40)
    wide.generation_config.eos_token_id = END
    wide.generation_config.pad_token_id = TOKENIZER.pad_token_id
    model = outlines.from_transformers(wide, TOKENIZER)
    for key in TYPES:
        found = outlines.Generator(model, TYPES[key], backend=key[0]).logits_processor
        read = inputs(PROMPTS[0])
        ids = wide.generate(**read, logits_processor=[found], max_new_tokens=30, custom_generate=decoding())[
            0
        ]
        assert max(output(ids, read["input_ids"].shape[1])) < len(TOKENIZER)
