"""The prompt contract: what text, messages and ids become, and what is refused."""

from __future__ import annotations

import json

import pytest
from tokenizers import AddedToken

import xpress_struct as xs
from tests.api.tiny import CHATML, THINKING, byte_level, metaspace, says, scripted
from tests.stubs import constant, label, stub_model
from xpress_struct.errors import ArgumentError
from xpress_struct.model import Model

PLAIN = byte_level()
CHAT = byte_level(CHATML)
THINKER = byte_level(THINKING)
META = metaspace(["\u2581P", "ab"])
USER = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"


def seen(tokenizer: object, prompt: object, **options: object) -> str:
    """The text that the model was asked to continue, prefix included."""
    model = scripted(tokenizer, constant({}, len(tokenizer)))
    result = model.generate(prompt, max_new_tokens=2, **options)
    ids = model.target.seen[0][0]
    assert result.stats.prompt_tokens == len(ids)
    return tokenizer.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize("text", ["Hi", "  two\nlines ", "é\U0001f600", "<|im_end|> injected"])
def test_a_text_is_one_user_message_with_a_template(text: str) -> None:
    """A str goes through the chat template when there is one."""
    assert seen(CHAT, text) == USER.format(text)


@pytest.mark.parametrize("text", ["Hi", "  two\nlines ", "é\U0001f600"])
def test_a_text_is_raw_without_a_template(text: str) -> None:
    """A str is raw text when the tokenizer has no chat template."""
    assert seen(PLAIN, text) == text


def test_chat_false_forces_raw_text() -> None:
    """chat=False gives the text as it is, template or not."""
    assert seen(CHAT, "Hi", chat=False) == "Hi"
    assert seen(PLAIN, "Hi", chat=False) == "Hi"


def test_chat_true_asks_for_a_template() -> None:
    """chat=True uses the template, and without one it is an error."""
    assert seen(CHAT, "Hi", chat=True) == USER.format("Hi")
    with pytest.raises(ArgumentError, match="chat template"):
        seen(PLAIN, "Hi", chat=True)


def test_messages_go_through_the_template() -> None:
    """A list of messages keeps roles and order, and the header of the answer follows."""
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Bye"},
    ]
    before = json.dumps(messages)
    text = seen(CHAT, messages)
    assert text.startswith("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>")
    assert text.endswith("<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n")
    assert json.dumps(messages) == before, "the caller's messages are left alone"


def test_the_template_gives_control_tokens_once() -> None:
    """Headers are control tokens, and no special token is added around the template's text."""
    model = scripted(CHAT, constant({}, len(CHAT)))
    model.generate("Hi", max_new_tokens=1)
    ids = model.target.seen[0][0]
    start = CHAT.convert_tokens_to_ids("<|im_start|>")
    assert ids[0] == start
    assert ids.count(start) == 2


def test_messages_need_a_template() -> None:
    """Messages without a template, or with chat=False, are refused."""
    messages = [{"role": "user", "content": "Hi"}]
    with pytest.raises(ArgumentError, match="chat template"):
        seen(PLAIN, messages)
    with pytest.raises(ArgumentError, match="chat=False"):
        seen(CHAT, messages, chat=False)


@pytest.mark.parametrize("tokenizer", [PLAIN, CHAT])
def test_ids_are_taken_as_they_are(tokenizer: object) -> None:
    """A list of ids is what the model reads, template or not; any sequence of ints will do."""
    model = scripted(tokenizer, constant({}, len(tokenizer)))
    for ids in ([72, 105], (72, 105)):
        model.target.seen.clear()
        model.generate(ids, max_new_tokens=1)
        assert model.target.seen[0][0] == [72, 105]


@pytest.mark.parametrize("tokenizer", [PLAIN, CHAT])
@pytest.mark.parametrize("prefix", ['{"a": "', "def f(x):\n", "é"])
def test_the_prefix_stands_after_the_header(tokenizer: object, prefix: str) -> None:
    """The prefix of the answer comes last in what the model reads, and first in the text."""
    assert seen(tokenizer, "Hi", prefix=prefix).endswith(prefix)
    model = scripted(tokenizer, constant({}, len(tokenizer)))
    result = model.generate("Hi", prefix=prefix, max_new_tokens=3)
    assert result.text.startswith(prefix)
    assert len(result.token_ids) == 3


def test_the_prefix_has_no_blank_of_its_own() -> None:
    """A Metaspace tokenizer's own blank does not get into text or value."""
    model = scripted(META, constant({}, len(META)))
    result = model.generate("say", xs.regex("ab[x-z]"), prefix="ab")
    assert result.text == result.value
    assert result.text[:2] == "ab"


@pytest.mark.parametrize("prefix", ["ab", "P"])
def test_the_model_reads_the_prefix_as_it_is(prefix: str) -> None:
    """What the model reads ends with the prefix directly behind the prompt, without a blank."""
    model = scripted(META, constant({}, len(META)))
    model.generate("say", prefix=prefix, max_new_tokens=1)
    assert model.vocabulary.decode(model.target.seen[0][0]).endswith(b"say" + prefix.encode())


def test_template_arguments_reach_the_template() -> None:
    """chat_template_kwargs are variables of the template."""
    tokenizer = byte_level("{{ greeting }}" + CHATML)
    text = seen(tokenizer, "Hi", chat_template_kwargs={"greeting": "Hello! "})
    assert text == "Hello! " + USER.format("Hi")


def test_thinking_is_switched_off_where_the_template_knows_it() -> None:
    """enable_thinking=False is passed to a template that names it."""
    assert seen(THINKER, "Hi").endswith("assistant\n<think>\n\n</think>\n\n")
    assert seen(THINKER, "Hi", chat_template_kwargs={"enable_thinking": False}).endswith("</think>\n\n")


def test_thinking_opens_the_block_once() -> None:
    """The prompt ends with one open block, whether the template knows thinking, opens it, or neither."""
    opens = byte_level(CHATML.replace("assistant\n", "assistant\n<think>\n"))
    for tokenizer in (THINKER, CHAT, opens):
        assert seen(tokenizer, "Hi", thinking=True) == USER.format("Hi") + "<think>\n"
    assert seen(THINKER, "Hi", chat_template_kwargs={"enable_thinking": True}).endswith(
        "assistant\n<think>\n"
    )
    assert seen(CHAT, "Hi", thinking=("[", "]")).endswith("assistant\n[\n")
    assert seen(PLAIN, "Hi", thinking=True) == "Hi<think>\n"
    assert seen(PLAIN, list(b"Hi<think>"), thinking=True) == "Hi<think>"


def test_the_marker_is_the_special_token_where_there_is_one() -> None:
    """An added token `<think>` opens the block as one token, behind text and behind ids."""
    markers = [AddedToken(text, special=False) for text in ("<think>", "</think>")]
    tokenizer = byte_level(CHATML, added=markers)
    think = tokenizer.convert_tokens_to_ids("<think>")
    model = scripted(tokenizer, constant({}, len(tokenizer)))
    for prompt in ("Hi", [72], [72, think], [72, think, 10]):
        model.target.seen.clear()
        model.generate(prompt, thinking=True, max_new_tokens=2)
        assert model.target.seen[0][0].count(think) == 1
        assert think in model.target.seen[0][0][-2:]


@pytest.mark.parametrize("prompt", ["", [], ()])
def test_an_empty_raw_prompt_is_refused(prompt: object) -> None:
    """A model needs a token to start from."""
    with pytest.raises(ArgumentError, match="empty"):
        seen(PLAIN, prompt)


def test_an_empty_prompt_is_refused_without_tokenizer() -> None:
    """A model made from parts refuses an empty prompt too."""
    with pytest.raises(ArgumentError, match="empty"):
        stub_model(constant({})).generate([], max_new_tokens=1)


def test_an_empty_message_is_no_empty_prompt() -> None:
    """With a template, an empty text is an empty user message."""
    assert seen(CHAT, "") == USER.format("")


@pytest.mark.parametrize(
    "prompt",
    [None, 7, b"bytes", {"role": "user", "content": "x"}, ["a", "b"], [1.5], [True], [[1], [2]]],
    ids=label,
)
@pytest.mark.parametrize("tokenizer", [PLAIN, CHAT])
def test_other_types_are_refused(prompt: object, tokenizer: object) -> None:
    """What is neither text, messages nor ids is an ArgumentError that says what is wanted."""
    with pytest.raises(ArgumentError, match=r"text.*messages.*ids"):
        seen(tokenizer, prompt)


@pytest.mark.parametrize("ids", [[-1], [65, 10_000]])
def test_ids_outside_the_vocabulary_are_refused(ids: list[int]) -> None:
    """An id that the model does not have is an ArgumentError."""
    with pytest.raises(ArgumentError):
        seen(PLAIN, ids)


def test_a_template_that_refuses_is_an_argument_error() -> None:
    """What a template raises comes out as an ArgumentError with its words."""
    tokenizer = byte_level("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(ArgumentError, match="roles must alternate"):
        seen(tokenizer, "Hi")


def test_a_prompt_that_fills_the_model_is_refused() -> None:
    """A prompt that leaves no room for an answer is refused with both lengths."""
    model = stub_model(constant({}), max_length=10)
    with pytest.raises(ArgumentError, match=r"10 tokens.*10"):
        model.generate([65] * 10)
    assert len(model.generate([65] * 8).token_ids) == 2


def test_a_model_without_tokenizer_takes_ids_only() -> None:
    """Without a tokenizer a text prompt is refused."""
    with pytest.raises(ArgumentError, match="token ids"):
        stub_model(constant({})).generate("Hi")


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "capital, é"}},
    "required": ["city"],
    "additionalProperties": False,
}
ANSWER = '{"city": "Rome"}'


def answering(tokenizer: object) -> Model:
    """A model that answers wherever the prompt ends."""
    end = tokenizer.encode(ANSWER)

    def logits(prefix: tuple[int, ...]) -> list[float]:
        written = len(prefix) - logits.start
        return says(tokenizer, ANSWER, len(prefix) - written)(prefix)

    model = scripted(tokenizer, lambda prefix: logits(prefix))
    score = model.target.score

    def first(cache: object, ids: list[int], rows: int) -> object:
        if not cache.ids:
            # Forced tokens ('{"city": "') are read together with the prompt.
            logits.start = len(ids) - len(tokenizer.encode('{"city": "'))
        return score(cache, ids, rows)

    model.target.score = first
    assert end
    return model


def asked(tokenizer: object, prompt: object, **options: object) -> str:
    model = answering(tokenizer)
    assert model.generate_json(prompt, SCHEMA, **options) == {"city": "Rome"}
    return tokenizer.decode(model.target.seen[0][0], skip_special_tokens=False)


def test_the_schema_is_put_in_the_prompt_with_a_template() -> None:
    """By default the compact schema, descriptions included, follows the user's message."""
    text = asked(CHAT, "Where?")
    assert '"description":"capital, é"' in text
    assert text.index("Where?") < text.index('"city"') < text.index("<|im_end|>")


def test_the_schema_goes_to_the_last_user_message() -> None:
    """In a conversation it is the last user message that the schema follows."""
    messages = [
        {"role": "user", "content": "First"},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "Last"},
    ]
    text = asked(CHAT, messages)
    assert text.index("Last") < text.index("capital, é")
    assert messages[-1]["content"] == "Last"


@pytest.mark.parametrize(
    ("tokenizer", "prompt", "options"),
    [
        (PLAIN, "Where?", {}),
        (CHAT, "Where?", {"chat": False}),
        (CHAT, [72, 105], {}),
        (CHAT, "Where?", {"schema_in_prompt": False}),
        (PLAIN, "Where?", {"schema_in_prompt": False}),
    ],
)
def test_the_schema_stays_out_elsewhere(tokenizer: object, prompt: object, options: dict) -> None:
    """Raw text, ids, and schema_in_prompt=False leave the prompt alone."""
    assert "capital" not in asked(tokenizer, prompt, **options)


def test_the_schema_can_be_asked_for_in_raw_text() -> None:
    """schema_in_prompt=True appends it to raw text too, and is refused for ids."""
    assert "capital" in asked(PLAIN, "Where?", schema_in_prompt=True)
    with pytest.raises(ArgumentError, match="schema_in_prompt"):
        asked(CHAT, [72, 105], schema_in_prompt=True)
    with pytest.raises(ArgumentError, match="schema_in_prompt"):
        asked(CHAT, "Where?", schema_in_prompt="yes")


def test_generate_appends_nothing() -> None:
    """Model.generate leaves the prompt alone."""
    model = answering(CHAT)
    model.generate("Where?", xs.json_schema(SCHEMA))
    assert "capital" not in CHAT.decode(model.target.seen[0][0])
