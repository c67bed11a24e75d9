"""B39: stop strings against grammars, and stop text kept or left out."""

from __future__ import annotations

import json

import pytest

import xpress_struct as xs
from tests.cases.scripts import PROMPT, bytes_and, drafts, writer
from tests.stubs import END, prefers, stub_model

DOCUMENT = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("stops", ["}", ["\n", "}"], ['"', ","], ["a", ": "], ["x}"]])
@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("value", ["x}y", "a\nb", "}", ""])
def test_b39_stop_strings_do_not_cut_json(stops: object, include: bool, value: str) -> None:
    """Under a grammar a stop string inside the document is text: the document comes out whole."""
    text = json.dumps({"a": value, "b": True})
    result = writer(text).generate(
        PROMPT, xs.json_schema(DOCUMENT), stop_strings=stops, include_stop_string=include
    )
    assert result.text == text
    assert result.value == {"a": value, "b": True}
    assert result.finish_reason in ("stop", "stop_string")


@pytest.mark.parametrize(
    ("pattern", "text", "stops", "kept"),
    [
        ("[a-z ]+", "one two three", [" two"], "one"),
        ("[a-z ]+", "one two three", ["three", "ne"], "o"),
        ("[a-z ]{5,}", "one two three", [" "], "one two"),
        ("[a-z]+( [a-z]+)*", "one two three", [" "], "one"),
        ("(ab)+", "abababab", ["b"], "abababab"),
    ],
)
@pytest.mark.parametrize("drafted", [False, True])
def test_b39_a_stop_string_counts_where_the_kept_text_is_whole(
    pattern: str, text: str, stops: list[str], kept: str, drafted: bool
) -> None:
    """Under a regex a stop string ends the text only where what is kept matches."""
    model = writer(text, drafts(text) if drafted else None)
    result = model.generate(PROMPT, xs.regex(pattern), stop_strings=stops, max_new_tokens=60)
    assert result.text == kept == result.value
    assert result.finish_reason == ("stop" if kept == text else "stop_string")


@pytest.mark.parametrize(
    ("stops", "include", "kept"),
    [
        (["\n"], False, "one, two"),
        (["\n"], True, "one, two\n"),
        ("two", False, "one, "),
        ("two", True, "one, two"),
        (["\nthr", "o"], False, ""),
        (["zzz", "ee"], False, "one, two\nthr"),
        (["zzz"], False, "one, two\nthree"),
    ],
)
@pytest.mark.parametrize("drafted", [False, True])
def test_b39_free_text_stops_at_the_first_stop_string(
    stops: object, include: bool, kept: str, drafted: bool
) -> None:
    """Without a constraint the earliest stop string ends the text; it is kept when asked for."""
    text = "one, two\nthree"
    model = writer(text, drafts(text) if drafted else None)
    result = model.generate(PROMPT, stop_strings=stops, include_stop_string=include)
    assert result.text == kept == result.value
    assert result.finish_reason == ("stop_string" if kept != text else "stop")


@pytest.mark.parametrize("include", [False, True])
def test_b39_a_stop_string_inside_a_token_cuts_the_text_not_the_tokens(include: bool) -> None:
    """A stop string that ends inside a token is cut out of the text exactly."""
    vocabulary = bytes_and(b"ne\n\nrest")
    ids = [ord("o"), END + 1, ord("x"), END]
    model = stub_model(
        lambda prefix: [9.0 * (i == ids[min(len(prefix) - 1, 3)]) for i in range(vocabulary.width)],
        vocabulary,
    )
    result = model.generate(PROMPT, stop_strings="\n\n", include_stop_string=include)
    assert result.text == ("one\n\n" if include else "one")
    assert result.token_ids == (ord("o"), END + 1)


def test_b39_streamed_text_never_shows_the_stop_string() -> None:
    """A stream holds text back that might become a stop string."""
    with writer("one STOP two").stream(PROMPT, stop_strings=[" STOP", "XYZ"]) as stream:
        pieces = list(stream)
    assert "".join(pieces) == stream.result.text == "one"
    with writer("one STO two").stream(PROMPT, stop_strings=[" STOP"]) as stream:
        pieces = list(stream)
    assert "".join(pieces) == stream.result.text == "one STO two"


def test_b39_the_prefix_holds_no_stop_string() -> None:
    """Stop strings are looked for in what the model writes, not in the prefix."""
    model = stub_model(prefers("b|c", prompt_length=3))  # the prefix stands behind the prompt
    result = model.generate(PROMPT, prefix="a|", stop_strings="|")
    assert result.text == "a|b"
