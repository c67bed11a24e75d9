"""XPressTransformers: an Outlines model whose every call is decoded with speculation."""

from __future__ import annotations

from typing import Literal

import outlines
import pytest
import torch
from outlines.inputs import Chat
from outlines.types import CFG, Regex

from tests.api.tiny import CHATML, byte_level, tiny_llama
from tests.integrations.outlines.shared import LARK, SAME_MASKS, TYPES, Record, processor, run, theirs
from tests.integrations.tiny import PROMPTS, TOKENIZER, network
from xpress_struct.errors import ArgumentError
from xpress_struct.integrations.outlines import XPressTransformers, from_transformers

MODEL = from_transformers(network(), TOKENIZER)


def texts(key: tuple[str, str], *prompts: str, **options) -> list[str]:
    """What Outlines answers by itself."""
    rows = run(processor(*key), *prompts, **options)
    return [TOKENIZER.decode(ids, skip_special_tokens=True) for ids in rows]


@pytest.mark.parametrize("key", SAME_MASKS, ids="-".join)
def test_calls_batches_and_streams_are_those_of_outlines(key) -> None:
    """A call, a generator, a batch and the pieces of a stream give the texts of Outlines alone."""
    backend, wanted = key[0], TYPES[key]
    expected = texts(key, *PROMPTS)
    generator = outlines.Generator(MODEL, wanted, backend=backend)
    assert [MODEL(prompt, wanted, backend, max_new_tokens=60) for prompt in PROMPTS] == expected
    assert [generator(prompt, max_new_tokens=60) for prompt in PROMPTS] == expected
    assert generator.batch(PROMPTS, max_new_tokens=60) == expected
    assert MODEL.batch(PROMPTS, wanted, backend, max_new_tokens=60) == expected
    for prompt, text in zip(PROMPTS, expected, strict=True):
        assert "".join(generator.stream(prompt, max_new_tokens=60)) == text
        assert "".join(MODEL.stream(prompt, wanted, backend, max_new_tokens=60)) == text


def test_it_is_an_outlines_model() -> None:
    """It passes for `outlines.models.Transformers`, and default backends are chosen by Outlines."""
    assert isinstance(MODEL, XPressTransformers) and isinstance(MODEL, outlines.models.Transformers)
    assert MODEL(PROMPTS[0], Record, max_new_tokens=60) == texts(("outlines_core", "json"), PROMPTS[0])[0]
    assert MODEL(PROMPTS[0], CFG(LARK), max_new_tokens=60)
    assert MODEL(PROMPTS[0], Literal["abc", "d"], max_new_tokens=9) in ("abc", "d")
    with pytest.raises(NotImplementedError, match="context-free"):
        MODEL(PROMPTS[0], CFG(LARK), "outlines_core")


def test_the_model_is_really_asked_less_often() -> None:
    """Calls, batches and streams of the class need fewer forwards than Outlines alone."""
    forwards = []
    hook = network().register_forward_hook(lambda *_: forwards.append(1))
    key = ("outlines_core", "json")
    try:
        generator, counts = outlines.Generator(MODEL, Record), []
        for ask in (
            lambda: run(processor(*key), PROMPTS[0]),
            lambda: generator(PROMPTS[0], max_new_tokens=60),
            lambda: generator.batch(PROMPTS[:1], max_new_tokens=60),
            lambda: list(generator.stream(PROMPTS[0], max_new_tokens=60)),
        ):
            forwards.clear()
            ask()
            counts.append(len(forwards))
    finally:
        hook.remove()
    assert counts[1] == counts[2] == counts[3] < counts[0]


def test_templates_and_applications_keep_working() -> None:
    """A template fills the prompt; an application goes with the class, and with the argument."""
    template = outlines.Template.from_string("tell {{ who }}: {")
    application = outlines.Application(template, Record)
    expected = texts(("outlines_core", "json"), "tell me: {")[0]
    assert application(MODEL, {"who": "me"}, max_new_tokens=60) == expected
    assert MODEL(template(who="me"), Record, max_new_tokens=60) == expected
    assert application(theirs(), {"who": "me"}, max_new_tokens=60, custom_generate=MODEL._decode) == expected


def test_chats_go_through_the_template_of_the_tokenizer() -> None:
    """A Chat and a text are formatted by Outlines; streams see the same prompt as calls."""
    tokenizer = byte_level(CHATML, words=[b"abc"])
    wide = tiny_llama(len(tokenizer))
    wide.generation_config.eos_token_id = tokenizer.eos_token_id
    wide.generation_config.pad_token_id = tokenizer.pad_token_id
    model = from_transformers(wide, tokenizer, drafter=None)
    chat = Chat([{"role": "user", "content": "abc"}])
    text = model(chat, Regex("[a-d]{4,20}"), max_new_tokens=30)
    assert text == model("abc", Regex("[a-d]{4,20}"), max_new_tokens=30)
    assert text == "".join(model.stream(chat, Regex("[a-d]{4,20}"), max_new_tokens=30))


def test_samples_follow_the_seed() -> None:
    """Several samples come as a list; torch's seed, or the model's, makes them come again."""
    sampling = {"do_sample": True, "top_k": 0, "num_return_sequences": 3, "max_new_tokens": 60}
    generator, found = outlines.Generator(MODEL, TYPES["outlines_core", "regex"]), []
    for _ in range(2):
        torch.manual_seed(3)
        found.append(generator(PROMPTS[0], **sampling))
    assert found[0] == found[1] and len({*found[0]}) == 3
    seeded = from_transformers(network(), TOKENIZER, seed=4, drafter="lookup")
    pair = [outlines.Generator(seeded, Record)(PROMPTS[0], **sampling) for _ in range(2)]
    assert pair[0] == pair[1]


def test_a_plain_call_is_free() -> None:
    """Without an output type, text and stream are those of plain decoding."""
    expected = theirs()(PROMPTS[1], max_new_tokens=20)
    assert MODEL(PROMPTS[1], max_new_tokens=20) == expected
    assert "".join(MODEL.stream(PROMPTS[1], max_new_tokens=20)) == expected


def test_a_stream_can_be_left() -> None:
    """Rounds run as pieces are asked for; one that is closed runs no more."""
    forwards = []
    hook = network().register_forward_hook(lambda *_: forwards.append(1))
    try:
        stream = from_transformers(network(), TOKENIZER, drafter=None).stream(
            PROMPTS[0], Regex("[ab]{40}"), max_new_tokens=60
        )
        assert len(next(stream)) < 40
        stream.close()
        before = len(forwards)
        assert list(stream) == []
        assert len(forwards) == before < 20
    finally:
        hook.remove()


def test_a_stream_stops_where_a_criterion_says() -> None:
    """Criteria of `generate` cut a stream where they cut a call."""

    class Stop:
        def __call__(self, input_ids, scores, **kwargs):
            return torch.full((input_ids.shape[0],), "c" in TOKENIZER.decode(input_ids[0, 1:]))

    given = {"max_new_tokens": 60, "stopping_criteria": [Stop()]}
    call = MODEL(PROMPTS[0], Regex("[ab]{5}cccccccc"), **given)
    assert call.endswith("c") and len(call) < 10
    assert "".join(MODEL.stream(PROMPTS[0], Regex("[ab]{5}cccccccc"), **given)) == call


def test_a_stream_is_of_one_row() -> None:
    """Several samples, and a streamer, are refused in a stream."""
    for given in ({"do_sample": True, "num_return_sequences": 2}, {"streamer": Streamer()}):
        with pytest.raises(ArgumentError, match="one row"):
            MODEL.stream(PROMPTS[0], Record, max_new_tokens=9, **given)


class Streamer:
    def put(self, value):
        pass

    def end(self):
        pass
