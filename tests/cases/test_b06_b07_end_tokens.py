"""B6 and B7: when a text may end, and with which token."""

from __future__ import annotations

import json
import re

import pytest

import xpress_struct as xs
from tests.cases.scripts import PROMPT, bytes_and, noisy, wants, wants_text, writer
from tests.stubs import END, stub_model
from xpress_struct.constraints.vocabulary import Vocabulary

CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "boolean"}, "b": {"type": "array", "items": {"type": "null"}}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (xs.regex("[ab]{3,9}"), "aaa"),
        (xs.regex("a*"), ""),
        (xs.regex("(xy){2,}"), "xyxy"),
        (xs.choice(["no", "nothing"]), "no"),
        (xs.json_schema({"type": "string", "minLength": 2}), None),
        (xs.json_schema(CLOSED), None),
        (xs.lark('start: "(" start ")" | "xy"'), None),
    ],
)
@pytest.mark.parametrize("temperature", [0.0, 0.1])
def test_b06_the_end_token_waits_for_a_whole_text(
    constraint: object, text: str | None, temperature: float
) -> None:
    """A model that always wants to end ends at the first place where the text is whole."""
    wish = wants(END, *b'")]}xyfa', width=257)
    model = stub_model(wish)
    result = model.generate(PROMPT, constraint, max_new_tokens=80, temperature=temperature, seed=1)
    assert result.finish_reason == "stop"
    assert result.token_ids[-1] == END
    assert END not in result.token_ids[:-1]
    assert constraint.accepts(result.text)
    if text is not None:
        assert result.text == text
    assert not any(constraint.accepts(result.text[:cut]) for cut in range(len(result.text))), (
        "it could have ended before"
    )


@pytest.mark.parametrize("favourite", ["x", "}", " ", "\n", '"', ","])
@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (xs.json_schema(CLOSED), '{"a": true, "b": []}'),
        (xs.regex("ab{2}"), "abb"),
        (xs.choice(["yes"]), "yes"),
        (xs.lark('start: "a" b\nb: "c"'), "ac"),
    ],
)
def test_b06_the_end_is_forced_after_the_only_completion(
    favourite: str, constraint: object, text: str
) -> None:
    """Nothing follows a complete text, whatever the model wants to add."""
    model = writer(text + favourite * 50)
    result = model.generate(PROMPT, constraint, max_new_tokens=80)
    assert (result.finish_reason, result.text) == ("stop", text)
    assert result.token_ids == (*text.encode(), END)


def test_b06_a_model_without_end_token_ends_by_the_grammar() -> None:
    """A vocabulary without end token ends when the text is complete."""
    vocabulary = Vocabulary.from_tokens([bytes([i]) for i in range(256)])
    model = stub_model(noisy(1, 256), vocabulary)
    result = model.generate(PROMPT, xs.regex("[a-z]{4}"), max_new_tokens=80)
    assert result.finish_reason == "stop"
    assert re.fullmatch("[a-z]{4}", result.text)
    assert len(result.token_ids) == 4


@pytest.mark.parametrize("end", [3, 5])
@pytest.mark.parametrize("constraint", [None, xs.regex("[ab]*c?")])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_b07_each_of_several_end_tokens_ends(end: int, constraint: object, temperature: float) -> None:
    """With end ids [3, 5] both end the text, free or constrained, and neither is text."""
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"c", b"", b"d", b""], end_ids=[3, 5])

    def logits(prefix: tuple[int, ...]) -> list[float]:
        row = [0.0] * 6
        row[end if len(prefix) >= 4 else 1] = 50.0
        return row

    model = stub_model(logits, vocabulary)
    result = model.generate([0], constraint, max_new_tokens=20, temperature=temperature, seed=3)
    assert result.token_ids == (1, 1, 1, end)
    assert (result.finish_reason, result.text) == ("stop", "bbb")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        pytest.param(r"[ab]{2}\]", "aa]"),
        (r"a\]b\]a", "a]b]a"),
        pytest.param(r"\]{3}", "]]]"),
    ],
)
@pytest.mark.parametrize("favourite", [5, 0])
def test_b07_an_end_token_that_spells_grammar_text_can_be_text(
    pattern: str, text: str, favourite: int
) -> None:
    """An end token whose bytes the grammar wants stands for them, also more than once."""
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"c", b"", b"d", b"]"], end_ids=[3, 5])
    model = stub_model(wants(favourite, width=6), vocabulary)
    result = model.generate([0], xs.regex(pattern), max_new_tokens=20)
    assert (result.finish_reason, result.text) == ("stop", text)
    assert 5 in result.token_ids
    assert result.value == text


@pytest.mark.parametrize(
    "grammar",
    [
        pytest.param('start: "a" <[5]> "b"'),
        pytest.param('start: ("a" | "c") <[5]> "b"'),
        'start: "a" <[5]> ("b" | "c")',
    ],
)
def test_b07_a_grammar_may_name_an_end_token(grammar: str) -> None:
    """A grammar that names an end token as a terminal emits it and goes on."""
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"c", b"", b"d", b""], end_ids=[3, 5])
    model = stub_model(wants(5, 3, 0, 1, width=6), vocabulary)
    result = model.generate([0], xs.lark(grammar), max_new_tokens=20)
    assert result.token_ids[:3] == (0, 5, 1)
    assert result.token_ids[3:] in ((3,), (5,))
    assert (result.finish_reason, result.text) == ("stop", "ab")


@pytest.mark.parametrize("text", ['{"a": true}', '{"a": false}'])
def test_b07_an_end_token_that_is_a_bracket_closes_json(text: str) -> None:
    """A stop token spelled like the closing brace of JSON does not hinder JSON."""
    vocabulary = bytes_and(end_ids=[END, ord("}")])
    schema = {
        "type": "object",
        "properties": {"a": {"type": "boolean"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    wanted = [*text.encode(), END]

    def logits(prefix: tuple[int, ...]) -> list[float]:
        row = [0.0] * 257
        row[wanted[min(len(prefix) - 1, len(wanted) - 1)]] = 9.0
        row[ord("}")] = 5.0
        return row

    model = stub_model(logits, vocabulary)
    assert model.generate_json(PROMPT, schema) == json.loads(text)


def test_b06_the_model_may_go_on_where_the_text_is_whole() -> None:
    """Where text may end or go on, the model decides."""
    model = stub_model(wants_text("b"))
    result = model.generate(PROMPT, xs.regex("a[bc]{0,5}"), max_new_tokens=50)
    assert result.text == "abbbbb"
