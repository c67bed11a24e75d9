"""B56: streamed pieces are whole characters, final, and together the text."""

from __future__ import annotations

import json

import pytest

import xpress_struct as xs
from tests.cases.scripts import PROMPT, bytes_and, drafts, noisy, right_then_wrong, writer
from tests.stubs import END, stub_model
from xpress_struct.streaming import Stream

TEXTS = [
    "\U0001f600 ok \U0001f468\u200d\U0001f469\u200d\U0001f467 end",
    "é漢字\u0301 mixed ascii",
    "plain",
    "\U0001f1e9\U0001f1ea" * 5,
    "",
]


def read(stream: Stream) -> list[str]:
    """All pieces; what `text` shows never goes back either."""
    pieces: list[str] = []
    with stream:
        for piece in stream:
            pieces.append(piece)
            assert stream.text.startswith("".join(pieces))
    return pieces


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("right", [0, 1, 3, 16])
@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("acceptance", ["coupled", "token", "block"])
def test_b56_pieces_join_to_the_text(text: str, right: int, constrained: bool, acceptance: str) -> None:
    """Characters split over tokens and rejected drafts never show; pieces join exactly."""
    wanted = json.dumps(text, ensure_ascii=False)
    constraint = xs.json_schema({"type": "string"}) if constrained else None
    model = writer(wanted, right_then_wrong(wanted, right))
    stream = model.stream(PROMPT, constraint, acceptance=acceptance)
    pieces = read(stream)
    assert "".join(pieces) == stream.result.text == wanted
    assert all(pieces), "no piece is empty"
    assert "\ufffd" not in "".join(pieces)
    if constrained:
        assert stream.result.value == text


@pytest.mark.parametrize("seed", range(10))
def test_b56_a_stream_is_what_generate_gives(seed: int) -> None:
    """Streamed or not, the same seed gives the same tokens, text and end."""
    model = stub_model(noisy(4), drafter=drafts("abé"))
    constraint = xs.regex("[a-zé漢-龍]{1,12}")
    options = {"temperature": 1.0, "seed": seed, "max_new_tokens": 12}
    whole = model.generate(PROMPT, constraint, **options)
    stream = model.stream(PROMPT, constraint, **options)
    assert "".join(read(stream)) == whole.text
    assert stream.result.token_ids == whole.token_ids
    assert stream.result.finish_reason == whole.finish_reason


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_b56_an_emoji_in_tokens_of_any_size(size: int) -> None:
    """An emoji whose four bytes are split over tokens comes as one piece."""
    emoji = "\U0001f600".encode()
    parts = [emoji[i : i + size] for i in range(0, 4, size)]
    vocabulary = bytes_and(*parts)
    ids = [vocabulary.tokens.index(part) for part in parts] + [END]
    model = stub_model(
        lambda prefix: [
            9.0 * (i == ids[min(len(prefix) - 1, len(ids) - 1)]) for i in range(vocabulary.width)
        ],
        vocabulary,
    )
    stream = model.stream(PROMPT)
    assert read(stream) == ["\U0001f600"]


def test_b56_a_cut_inside_a_character_leaves_it_out() -> None:
    """A budget that ends inside a character streams no half of it."""
    stream = writer("ab\U0001f600").stream(PROMPT, max_new_tokens=4)
    assert "".join(read(stream)) == "ab" == stream.result.text
    assert stream.result.finish_reason == "length"


@pytest.mark.parametrize("prefix", ["", '{"a', '{"a": "é'])
def test_b56_the_prefix_is_streamed_first(prefix: str) -> None:
    """The prefix is part of the text, so it is part of the pieces."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}}
    schema |= {"required": ["a"], "additionalProperties": False}
    stream = stub_model(noisy(2)).stream(PROMPT, xs.json_schema(schema), prefix=prefix)
    text = "".join(read(stream))
    assert text == stream.result.text
    assert text.startswith(prefix)
    assert len(stream.result.value["a"]) <= 3
