"""The real `openai` client against a server on a port: structures, streams, tools and the rest."""

from __future__ import annotations

import json
from typing import Literal

import httpx
import openai
import pytest
from pydantic import BaseModel

from tests.server.serving import TOKENIZER, babbles, by_word, model_of, on_a_port, wants

TEXT = '{"name": "Ada", "age": 36}'
CALL = '{"name": "weather", "arguments": {"city": "Rome", "unit": "C"}}'
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}},
    "required": ["city", "unit"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": "weather", "description": "Of a city.", "parameters": WEATHER}},
    {"type": "function", "function": {"name": "now"}},
]


class Person(BaseModel):
    name: str
    age: int


class Weather(BaseModel):
    city: str
    unit: Literal["C", "F"]


def asking(word):
    """Messages that make the model behave as `MODEL` says of the word."""
    return [{"role": "user", "content": word}]


ADA, CALLER, TALKER, BABBLER = map(asking, ["ada", "caller", "talker", "babbler"])
MODEL = by_word(
    {
        "ada": wants(TEXT, CALL, "It is warm."),
        "caller": wants(CALL, "{"),
        "talker": wants("It is warm.", CALL),
    },
    babbles,
)


@pytest.fixture(scope="module")
def client():
    """A client of a server whose model does what the first message asks for."""
    with (
        on_a_port(model_of(MODEL)) as url,
        openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client,
    ):
        yield client


def test_parse_gives_the_pydantic_object(client):
    """`.parse` with a Pydantic class returns an instance of it."""
    done = client.chat.completions.parse(model="tiny", messages=ADA, response_format=Person, temperature=0)
    assert done.choices[0].message.parsed == Person(name="Ada", age=36)
    assert done.choices[0].finish_reason == "stop"
    assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens
    assert done.usage.completion_tokens == len(TEXT) + 1


def test_the_schema_stands_in_the_prompt(client):
    """response_format shows the schema to the model; structured_outputs does not."""
    shown = client.chat.completions.parse(model="tiny", messages=ADA, response_format=Person)
    hidden = client.chat.completions.create(
        model="tiny",
        messages=ADA,
        extra_body={"structured_outputs": {"json": Person.model_json_schema()}},
    )
    prompt = TOKENIZER.apply_chat_template(ADA, tokenize=False, add_generation_prompt=True)
    assert hidden.usage.prompt_tokens == len(TOKENIZER.encode(prompt))
    assert shown.usage.prompt_tokens > hidden.usage.prompt_tokens + 50


def test_a_cut_answer_says_length(client):
    """A budget that is too small ends with "length", which `.parse` reports."""
    with pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(
            model="tiny", messages=ADA, response_format=Person, max_completion_tokens=20
        )


@pytest.mark.parametrize("format_", [{"type": "json_object"}, None], ids=["json", "text"])
def test_pieces_of_a_stream_are_the_text(client, format_):
    """The pieces of a stream join to the text of the answer without `stream`; the usage comes last."""
    options = {"model": "tiny", "messages": ADA, "temperature": 0}
    if format_:
        options["response_format"] = format_
    whole = client.chat.completions.create(**options)
    chunks = list(
        client.chat.completions.create(**options, stream=True, stream_options={"include_usage": True})
    )
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(pieces) == whole.choices[0].message.content == TEXT
    assert len(pieces) > 5
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert (chunks[-1].choices, chunks[-1].usage) == ([], whole.usage)


def test_the_stream_helper_parses(client):
    """`.stream` with a Pydantic class ends in an instance of it."""
    with client.chat.completions.stream(
        model="tiny", messages=ADA, response_format=Person, temperature=0
    ) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert final.choices[0].message.parsed == Person(name="Ada", age=36)


def test_a_constraint_that_is_checked_after_streams_in_one_piece(client):
    """What the mask cannot enforce is checked before anything of it is sent."""
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "additionalProperties": {"type": "array", "uniqueItems": True},
    }
    chunks = client.chat.completions.create(
        model="tiny",
        messages=ADA,
        temperature=0,
        stream=True,
        extra_body={"structured_outputs": {"json": schema}},
    )
    pieces = [chunk.choices[0].delta.content for chunk in chunks]
    assert [piece for piece in pieces if piece] == [TEXT]


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
def test_a_call_that_is_asked_for_is_made(client, choice):
    """With "required" or a name, the answer is a call whose arguments fit, whatever the model would say."""
    done = client.chat.completions.create(
        model="tiny", messages=TALKER, tools=TOOLS, tool_choice=choice, temperature=0
    )
    message = done.choices[0].message
    (call,) = message.tool_calls
    assert (done.choices[0].finish_reason, message.content) == ("tool_calls", None)
    assert (call.type, call.function.name) == ("function", "weather")
    assert json.loads(call.function.arguments) == {"city": "Rome", "unit": "C"}


def test_auto_leaves_it_to_the_model(client):
    """With "auto", one model calls a tool and another answers in text."""
    options = {"model": "tiny", "tools": TOOLS, "temperature": 0}
    called = client.chat.completions.create(messages=CALLER, **options).choices[0]
    said = client.chat.completions.create(messages=TALKER, **options).choices[0]
    assert (called.message.tool_calls[0].function.name, called.finish_reason) == ("weather", "tool_calls")
    assert (said.message.content, said.message.tool_calls, said.finish_reason) == (
        "It is warm.",
        None,
        "stop",
    )


def test_none_calls_nothing(client):
    """With "none", tools are no part of the answer."""
    done = client.chat.completions.create(
        model="tiny", messages=CALLER, tools=TOOLS, tool_choice="none", temperature=0
    )
    assert (done.choices[0].message.content, done.choices[0].message.tool_calls) == (CALL, None)


def test_parse_gives_the_arguments_of_a_call(client):
    """`.parse` with a function made of a Pydantic class parses the arguments."""
    tool = openai.pydantic_function_tool(Weather, name="weather")
    done = client.chat.completions.parse(model="tiny", messages=CALLER, tools=[tool], temperature=0)
    (call,) = done.choices[0].message.tool_calls
    assert call.function.parsed_arguments == Weather(city="Rome", unit="C")


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_calls_stream(client, choice):
    """A streamed call tells the name first, then its arguments in pieces."""
    chunks = list(
        client.chat.completions.create(
            model="tiny", messages=CALLER, tools=TOOLS, tool_choice=choice, temperature=0, stream=True
        )
    )
    calls = [c.choices[0].delta.tool_calls[0] for c in chunks if c.choices[0].delta.tool_calls]
    assert (calls[0].function.name, calls[0].id[:5], calls[0].function.arguments) == ("weather", "call_", "")
    assert "".join(call.function.arguments for call in calls) == '{"city": "Rome", "unit": "C"}'
    assert len(calls) > 5
    assert not any(chunk.choices[0].delta.content for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_a_conversation_with_a_call_goes_on(client):
    """The message of a call and the tool's result go back as they came."""
    first = client.chat.completions.parse(
        model="tiny", messages=TALKER, tools=[openai.pydantic_function_tool(Weather, name="weather")],
        tool_choice="required", temperature=0,
    ).choices[0].message  # fmt: skip
    result = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "31"}
    done = client.chat.completions.create(
        model="tiny", messages=[*TALKER, first, result], tools=TOOLS, temperature=0
    )
    assert done.choices[0].message.content == "It is warm."


DIGITS = {"structured_outputs": {"regex": "[0-9]{8}"}}


def test_seeds_and_choices(client):
    """A seed repeats all choices, streamed or not; choices of one request differ; another seed differs."""

    def draw(seed, **more):
        done = client.chat.completions.create(
            model="tiny", messages=BABBLER, n=3, seed=seed, extra_body=DIGITS, **more
        )
        if not more:
            return [choice.message.content for choice in done.choices]
        texts = ["", "", ""]
        for chunk in done:
            texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
        return texts

    first = draw(7)
    assert len(set(first)) == 3 and all(len(text) == 8 and text.isdigit() for text in first)
    assert draw(7) == draw(7, stream=True) == first
    assert draw(8) != first


def test_stop_strings_end_the_text(client):
    """A stop string ends the answer and is not part of it."""
    done = client.chat.completions.create(model="tiny", messages=ADA, temperature=0, stop=["age", "x"])
    assert (done.choices[0].message.content, done.choices[0].finish_reason) == ('{"name": "Ada", "', "stop")


@pytest.mark.parametrize("stream", [False, True])
def test_logprobs_of_a_chat(client, stream):
    """Log-probabilities cover the text, with as many others as asked for, best first."""
    done = client.chat.completions.create(
        model="tiny",
        messages=BABBLER,
        logprobs=True,
        top_logprobs=3,
        stream=stream,
        extra_body=DIGITS,
    )
    choice = [chunk.choices[0] for chunk in done][-1] if stream else done.choices[0]
    places = choice.logprobs.content
    assert len(places) == 8 and all(bytes(place.bytes).decode() == place.token for place in places)
    for place in places:
        scores = [other.logprob for other in place.top_logprobs]
        assert len(scores) == 3 and scores == sorted(scores, reverse=True)
        assert place.logprob < 0


def test_completions(client):
    """`/v1/completions` answers several prompts, texts or ids, with log-probabilities of its own kind."""
    for prompts in (["a", "b"], [[97], [98]]):
        done = client.completions.create(
            model="tiny", prompt=prompts, n=2, seed=1, logprobs=2, extra_body=DIGITS
        )
        assert [choice.index for choice in done.choices] == [0, 1, 2, 3]
        assert all(choice.text.isdigit() and len(choice.text) == 8 for choice in done.choices)
        assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (2, 4 * 9)
        assert done.choices[0].logprobs.text_offset == list(range(8))
        assert "".join(done.choices[0].logprobs.tokens) == done.choices[0].text
    streamed = client.completions.create(
        model="tiny", prompt=prompts[0], seed=1, stream=True, extra_body=DIGITS
    )
    assert "".join(chunk.choices[0].text for chunk in streamed) == done.choices[0].text


def test_completions_write_few_tokens_unless_told(client):
    """Without max_tokens a completion has 16 tokens, as OpenAI's has."""
    done = client.completions.create(
        model="tiny", prompt="a", extra_body={"structured_outputs": {"regex": "[0-9]{40}"}}
    )
    assert (done.choices[0].finish_reason, done.usage.completion_tokens) == ("length", 16)


def test_errors_are_the_clients_own(client):
    """The client raises its own classes, with our message, code and field in them."""
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(
            model="tiny", messages=ADA, extra_body={"structured_outputs": {"regex": "("}}
        )
    assert (caught.value.code, caught.value.param) == ("invalid_grammar", "structured_outputs.regex")
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="gpt", messages=ADA)
    with pytest.raises(openai.BadRequestError):
        client.completions.create(model="tiny", prompt="", stream=True)


def test_models_are_listed(client):
    """The client lists the one model."""
    assert [model.id for model in client.models.list()] == ["tiny"]


def test_hostile_bodies_over_a_socket(client):
    """A schema of 2 MB, deep nesting and bad UTF-8 get their 4xx, and the next request works."""
    schema = {"type": "object", "description": "x" * 2_000_000}
    deep = {"type": "object"}
    for _ in range(100):
        deep = {"type": "array", "items": deep}
    for bad, status in ((schema, 413), (deep, 400)):
        with pytest.raises(openai.APIStatusError) as caught:
            client.chat.completions.create(
                model="tiny", messages=ADA, extra_body={"structured_outputs": {"json": bad}}
            )
        assert caught.value.status_code == status
    raw = httpx.post(
        f"{client.base_url}chat/completions",
        content=b'{"model": "\xff"}',
        headers={"Content-Type": "application/json"},
    )
    assert (raw.status_code, raw.json()["error"]["code"]) == (400, "invalid_json")
    done = client.chat.completions.create(model="tiny", messages=ADA, temperature=0)
    assert done.choices[0].message.content == TEXT
