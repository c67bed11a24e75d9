"""XPressGenerate: ids as ours, arguments of `generate` honoured."""

from __future__ import annotations

import threading

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    NoBadWordsLogitsProcessor,
    StoppingCriteria,
    StopStringCriteria,
    TextIteratorStreamer,
    TopKLogitsWarper,
)

import xpress_struct as xs
from tests.api.tiny import tiny_llama
from tests.integrations.tiny import (
    END,
    PAD,
    PROMPTS,
    RECORD,
    TOKENIZER,
    WORDS,
    inputs,
    network,
    ours,
    output,
    plain,
)
from tests.unit.models import _config
from xpress_struct.errors import ArgumentError
from xpress_struct.integrations.transformers import ConstraintLogitsProcessor, XPressGenerate

UNIQUE = xs.json_schema(
    {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "minItems": 2, "maxItems": 2}
)


def generate(*prompts: str, decode: XPressGenerate, model: object = None, **options: object) -> list:
    """Output ids by row."""
    read = inputs(*prompts)
    options = {"max_new_tokens": 40, **options}
    rows = (model or network()).generate(**read, custom_generate=decode, **options)
    return [output(row, read["input_ids"].shape[1]) for row in rows]


def decoding(constraint: object = WORDS, **options: object) -> XPressGenerate:
    return XPressGenerate(constraint, tokenizer=TOKENIZER, **options)


def drafters() -> list:
    return ["lookup", None, tiny_llama(len(TOKENIZER), num_hidden_layers=1, initializer_range=0.2)]


@pytest.mark.parametrize("drafter", drafters(), ids=["lookup", "none", "model"])
@pytest.mark.parametrize("constraint", [WORDS, RECORD, None], ids=["words", "record", "free"])
@pytest.mark.parametrize("prompt", PROMPTS)
def test_greedy_ids_are_those_of_ours_and_of_plain_decoding(prompt, constraint, drafter) -> None:
    """The ids equal `Model.generate`'s, plain masked decoding's, and generate's under the processor."""
    (ids,) = generate(prompt, decode=decoding(constraint, drafter=drafter))
    prompt_ids = TOKENIZER.encode(prompt)
    assert ids == ours().generate(prompt_ids, constraint, max_new_tokens=40).token_ids
    assert ids == plain(prompt_ids, constraint)
    mask = ConstraintLogitsProcessor(constraint, TOKENIZER, len(prompt_ids))
    masked = network().generate(**inputs(prompt), logits_processor=[mask], max_new_tokens=40)
    assert ids == output(masked[0], len(prompt_ids))


def test_sampled_rows_are_those_of_ours() -> None:
    """Several prompts and samples: rows equal `generate_many` with the same seed and arguments."""
    sampling = {"temperature": 1.3, "top_k": 9, "top_p": 0.9, "min_p": 0.01}
    found = generate(*PROMPTS, decode=decoding(seed=5), do_sample=True, num_return_sequences=2, **sampling)
    prompts = [TOKENIZER.encode(prompt) for prompt in PROMPTS]
    expected = ours().generate_many(prompts, WORDS, num_samples=2, seed=5, max_new_tokens=40, **sampling)
    assert found == [each.token_ids for each in expected]
    assert len({*found}) > 3


def test_top_k_is_fifty_by_default_as_in_transformers() -> None:
    """Sampling arguments that are not given are transformers', not ours."""
    (found,) = generate("a", decode=decoding(None, seed=3), do_sample=True)
    expected = ours().generate(TOKENIZER.encode("a"), temperature=1.0, top_k=50, seed=3, max_new_tokens=40)
    assert found == expected.token_ids


def test_the_seed_of_torch_decides_what_is_sampled() -> None:
    """Without a seed of its own, `torch.manual_seed` makes a sample repeatable."""
    found = []
    for seed in (1, 1, 2, 3, 4):
        torch.manual_seed(seed)
        found += generate(PROMPTS[0], decode=decoding(), do_sample=True, temperature=2.0, top_k=0)
    assert found[0] == found[1]
    assert len({*found}) > 1


def test_rows_of_a_ragged_batch_are_decoded_as_alone() -> None:
    """B37: each row has its constraint and its length; shorter ones are padded on the right."""
    constraints = [xs.regex("aa"), xs.regex("b{8}"), None, RECORD]
    prompts = [*PROMPTS, "one more"]
    read = inputs(*prompts)
    rows = network().generate(**read, custom_generate=decoding(constraints), max_new_tokens=30)
    length = read["input_ids"].shape[1]
    assert rows[:, :length].equal(read["input_ids"])
    for row, prompt, constraint in zip(rows, prompts, constraints, strict=True):
        expected = plain(TOKENIZER.encode(prompt), constraint, 30)
        padding = [PAD] * (rows.shape[1] - length - len(expected))
        assert row[length:].tolist() == [*expected, *padding]


def test_limits_are_those_of_generate() -> None:
    """max_new_tokens and max_length cut, the latter counts the padded prompt; without either, 20 come."""
    read = inputs(*PROMPTS)
    length = read["input_ids"].shape[1]
    decode = decoding(xs.regex("[ab]{60}"))
    for given, wanted in (({"max_new_tokens": 7}, 7), ({"max_length": length + 5}, 5)):
        assert network().generate(**read, custom_generate=decode, **given).shape[1] == length + wanted
    with pytest.warns(UserWarning, match="default `max_length`"):
        assert network().generate(**read, custom_generate=decode).shape[1] == length + 20


def test_return_dict_carries_values_and_statistics() -> None:
    """return_dict_in_generate gives the sequences, and of each row its value and what it cost."""
    read = inputs(*PROMPTS)
    found = network().generate(
        **read, custom_generate=decoding(RECORD), max_new_tokens=40, return_dict_in_generate=True
    )
    plain_ids = network().generate(**read, custom_generate=decoding(RECORD), max_new_tokens=40)
    assert found.sequences.equal(plain_ids)
    assert [each.value.keys() for each in found.generations] == [{"name", "ok"}] * 3
    assert all(each.stats.forwards < each.stats.output_tokens for each in found.generations)
    assert found.scores is None


def test_a_text_that_fails_its_check_is_drawn_again() -> None:
    """A constraint that is checked after generation is checked here too."""
    for seed in range(5):
        found = network().generate(
            **inputs("a"),
            custom_generate=decoding(UNIQUE, seed=seed, max_retries=50),
            do_sample=True,
            max_new_tokens=40,
            return_dict_in_generate=True,
        )
        assert sorted(found.generations[0].value) == [1, 2]


def test_the_end_token_of_the_call_ends_the_text() -> None:
    """eos_token_id, one or several, is the call's; the same object serves both."""
    other = TOKENIZER.convert_tokens_to_ids("<|im_start|>")
    decode, abc = decoding(xs.regex("abc")), [*TOKENIZER.encode("abc")]
    for eos, wanted in ((other, other), ([other, END], other), (END, END)):
        ids = network().generate(**inputs("a"), custom_generate=decode, eos_token_id=eos, max_new_tokens=9)
        assert ids[0, 1:].tolist() == [*abc, wanted]


class Watch(StoppingCriteria):
    """Stops at a length; notes what it is asked."""

    def __init__(self, length: int) -> None:
        self.length, self.seen = length, []

    def __call__(self, input_ids, scores, **kwargs):
        self.seen.append(input_ids.tolist())
        return torch.full((input_ids.shape[0],), input_ids.shape[1] >= self.length)


def test_stopping_criteria_cut_where_they_would_in_generate() -> None:
    """A criterion is asked token by token, padding included, and nothing behind its stop is returned."""
    read = inputs(*PROMPTS)
    length = read["input_ids"].shape[1]
    watch = Watch(length + 4)
    found = network().generate(
        **read,
        custom_generate=decoding(xs.regex("[ab]{30}")),
        stopping_criteria=[watch],
        max_new_tokens=40,
        return_dict_in_generate=True,
    )
    assert found.sequences.shape[1] == length + 4
    assert len(watch.seen) == 12
    assert watch.seen[3] == [found.sequences[0].tolist()]
    for row, each in zip(found.sequences, found.generations, strict=True):
        assert each.finish_reason == "cancelled"
        assert each.token_ids == tuple(row[length:].tolist())
        assert each.text == TOKENIZER.decode(each.token_ids)
        assert each.stats.output_tokens == 4


def test_stop_strings_work_both_ways() -> None:
    """A criterion of transformers cuts where it says; ours, given to the object, keep the text whole."""
    constraint = xs.regex("a d(x d)?")
    criterion = StopStringCriteria(TOKENIZER, ["d"])
    (cut,) = generate("x", decode=decoding(constraint), stopping_criteria=[criterion])
    assert TOKENIZER.decode(cut) == "a d"
    (whole,) = generate("x", decode=decoding(xs.regex("ab?cd"), stop_strings=["b"]))
    assert TOKENIZER.decode(whole, skip_special_tokens=True) in ("abcd", "acd")


def test_max_time_cuts() -> None:
    """max_time ends each row after its first token once the time is over."""
    found = generate(*PROMPTS, decode=decoding(xs.regex("[ab]{30}")), max_time=1e-9)
    assert [len(ids) for ids in found] == [1, 1, 1]


@pytest.mark.parametrize(
    "options",
    [
        {"repetition_penalty": 1.7},
        {"no_repeat_ngram_size": 2},
        {"bad_words_ids": [[TOKENIZER.convert_tokens_to_ids("c")]]},
        {"sequence_bias": {(TOKENIZER.convert_tokens_to_ids("c"),): 9.0}},
        {"suppress_tokens": [TOKENIZER.convert_tokens_to_ids("abc")]},
        {"begin_suppress_tokens": TOKENIZER.convert_tokens_to_ids(["a", "abc", "b"])},
        {"min_new_tokens": 10},
        {"exponential_decay_length_penalty": (2, 1.5)},
        {"renormalize_logits": True},
    ],
    ids=lambda options: next(iter(options)),
)
def test_processors_of_generate_are_honoured(options) -> None:
    """Arguments that change the logits give, row by row, the ids of generate under the processor's mask."""
    constraint = xs.regex("[a-d ]{2,30}")
    changed = 0
    for prompt in PROMPTS:
        length = len(TOKENIZER.encode(prompt))
        mask = ConstraintLogitsProcessor(constraint, TOKENIZER, length)
        expected = network().generate(**inputs(prompt), logits_processor=[mask], max_new_tokens=40, **options)
        (found,) = generate(prompt, decode=decoding(constraint), **options)
        assert found == output(expected[0], length)
        (usual,) = generate(prompt, decode=decoding(constraint))
        changed += found != usual
    assert changed or "renormalize_logits" in options
    batch = generate(*PROMPTS, decode=decoding(constraint), **options)
    assert batch == [generate(each, decode=decoding(constraint), **options)[0] for each in PROMPTS]


def test_padding_is_no_repetition() -> None:
    """A row padded with end tokens is penalised for what it says, as if it were alone."""
    read = inputs(*PROMPTS)
    read["input_ids"][read["attention_mask"] == 0] = END
    length = read["input_ids"].shape[1]
    options = {"repetition_penalty": 6.0, "pad_token_id": END, "max_new_tokens": 40}
    rows = network().generate(**read, custom_generate=decoding(), **options)
    for row, prompt in zip(rows, PROMPTS, strict=True):
        assert [output(row, length)] == generate(prompt, decode=decoding(), **options)


def test_a_callers_processor_comes_before_the_mask() -> None:
    """A processor bars tokens and may write in place; speculation changes nothing; a caller's own top-k is
    not taken for the one that the arguments make."""
    barred = NoBadWordsLogitsProcessor([[TOKENIZER.convert_tokens_to_ids("b")]])

    def in_place(input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        scores[:, TOKENIZER.convert_tokens_to_ids("c")] += input_ids.shape[1] % 3
        return scores

    processors, found = [in_place, barred], []
    for drafter in ("lookup", None):
        decode = decoding(xs.regex("[a-c]{9}"), drafter=drafter)
        found += generate(PROMPTS[1], decode=decode, logits_processor=processors)
    assert found[0] == found[1]
    assert "b" not in TOKENIZER.convert_ids_to_tokens(found[0])
    sampled = [
        generate("a", decode=decoding(None, seed=1), do_sample=True, logits_processor=[TopKLogitsWarper(1)])
        for _ in range(2)
    ]
    assert sampled[0] == sampled[1] == generate("a", decode=decoding(None))


def test_the_constraint_wins_over_a_bar() -> None:
    """Where a processor bars all that the constraint allows, the text still fits."""
    options = {"suppress_tokens": list(range(256)), "min_new_tokens": 30}
    (found,) = generate("a", decode=decoding(xs.choice(["abca", "dd"])), **options)
    assert TOKENIZER.decode(found, skip_special_tokens=True) in ("abca", "dd")


@pytest.mark.parametrize("place", ["object", "generate"])
def test_a_streamer_gets_every_token(place: str) -> None:
    """The streamer, given to the object or to generate, gets the prompt and then the whole text."""
    streamer = TextIteratorStreamer(TOKENIZER, skip_prompt=True, skip_special_tokens=True, timeout=20)
    found = []

    def run() -> None:
        if place == "object":
            found.extend(generate("a", decode=decoding(RECORD, streamer=streamer)))
        else:
            found.extend(generate("a", decode=decoding(RECORD), streamer=streamer))

    thread = threading.Thread(target=run)
    thread.start()
    pieces = list(streamer)
    thread.join()
    assert "".join(pieces) == TOKENIZER.decode(found[0], skip_special_tokens=True)
    assert len(pieces) > 2


def test_a_streamer_gets_nothing_behind_a_stop() -> None:
    """Tokens that a criterion cuts are not streamed; the prompt comes once."""
    put = []

    class Streamer:
        def put(self, value):
            put.append(value.flatten().tolist())

        def end(self):
            put.append("end")

    prompt = TOKENIZER.encode("xyz")
    for given in ({"streamer": Streamer()}, {}):
        put.clear()
        decode = decoding(xs.regex("a{30}"), **({} if given else {"streamer": Streamer()}))
        watch = Watch(len(prompt) + 2)
        (ids,) = generate("xyz", decode=decode, stopping_criteria=[watch], **given)
        assert put == [prompt, *([token] for token in ids), "end"]
        assert len(ids) == 2


def test_the_tokenizer_beside_the_model_is_read(tmp_path) -> None:
    """Without a tokenizer, the one in the model's folder is used; a folder may be named too."""
    TOKENIZER.save_pretrained(tmp_path)
    made = tiny_llama(len(TOKENIZER))
    made.generation_config.eos_token_id = END
    made.config.name_or_path = str(tmp_path)
    for decode in (XPressGenerate(WORDS), XPressGenerate(WORDS, tokenizer=str(tmp_path))):
        (ids,) = generate("a", decode=decode, model=made)
        assert WORDS.accepts(TOKENIZER.decode(ids, skip_special_tokens=True))
    made.config.name_or_path = ""
    with pytest.raises(ArgumentError, match="tokenizer=tokenizer"):
        generate("a", decode=XPressGenerate(WORDS), model=made)


def test_one_object_serves_several_models() -> None:
    """The model is that of the call; what was kept of another is not used."""
    decode, other = decoding(), tiny_llama(len(TOKENIZER) + 5, initializer_range=0.9)
    other.generation_config.eos_token_id = END
    expected = xs.load(other, tokenizer=TOKENIZER).generate(TOKENIZER.encode("a"), WORDS).token_ids
    first = generate("a", decode=decode)
    assert generate("a", decode=decode, model=other) == [expected]
    assert generate("a", decode=decode) == first != [expected]


@pytest.mark.parametrize("name", ["gemma3", "mamba", "qwen3_5"])
def test_models_with_other_caches_are_decoded(name: str) -> None:
    """Sliding windows and recurrent states: the ids are ours; what generate prepares is not in the way."""
    config = _config(name)
    config.vocab_size, config.eos_token_id = len(TOKENIZER), END
    with torch.random.fork_rng(devices=[]):
        made = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    expected = xs.load(made, tokenizer=TOKENIZER).generate(TOKENIZER.encode("abc abc"), WORDS)
    assert generate("abc abc", decode=decoding(), model=made) == [expected.token_ids]
