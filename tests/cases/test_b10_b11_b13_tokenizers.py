"""B10, B11 and B13: SentencePiece blanks, prompts that end inside a token, and control tokens."""

from __future__ import annotations

import re

import pytest
from tokenizers import AddedToken

import xpress_struct as xs
from tests.api.tiny import byte_level, metaspace, says, scripted
from tests.cases.scripts import bytes_and, wants
from tests.stubs import END, constant, stub_model
from xpress_struct.errors import ArgumentError

PIECES = ["\u2581P", "izza", "asta", "P", "\u2581Pizza", "\u2581a", "\u2581b", "ab"]
META = metaspace(PIECES)


def meta_id(piece: str) -> int:
    return META.convert_tokens_to_ids(piece)


@pytest.mark.parametrize(
    "favourites",
    [["\u2581P", "izza"], ["P", "izza"], ["P", "asta"], ["\u2581Pizza"], ["\u2581"], ["a", "P"]],
)
@pytest.mark.parametrize("options", [["Pizza", "Pasta"], ["Pasta", "Pizza", "Pi"]])
def test_b10_a_choice_is_spelled_exactly(favourites: list[str], options: list[str]) -> None:
    """The text is one of the options, without a blank that the tokenizer adds or drops."""
    width = len(META)
    model = scripted(META, wants(*map(meta_id, favourites), width=width))
    result = model.generate("Food:", xs.choice(options))
    assert result.text == result.value
    assert result.text in options


@pytest.mark.parametrize(
    ("options", "text"), [([" Pizza", " Pasta"], " Pizza"), (["a Pizza", "a Pasta"], "a Pizza")]
)
def test_b10_a_blank_token_serves_where_the_text_has_the_blank(options: list[str], text: str) -> None:
    """`▁Pizza` is usable where the constraint has the blank."""
    model = scripted(META, wants(meta_id("\u2581Pizza"), width=len(META)))
    result = model.generate("Food:", xs.choice(options))
    assert result.text == text
    assert meta_id("\u2581Pizza") in result.token_ids


@pytest.mark.parametrize("favourites", [["\u2581a"], ["\u2581b", "ab"], ["ab", "\u2581"], ["a"]])
def test_b10_two_words_terminate(favourites: list[str]) -> None:
    """`[a-z]+ [a-z]+` ends under a Metaspace vocabulary, with one blank between the words."""

    def logits(prefix: tuple[int, ...]) -> list[float]:
        row = [0.0] * len(META)
        for favourite in favourites:
            row[meta_id(favourite)] = 5.0
        row[meta_id("</s>")] = 6.0
        return row

    result = scripted(META, logits).generate("Say:", xs.regex("[a-z]{1,9} [a-z]+"))
    assert result.finish_reason == "stop"
    assert re.fullmatch("[a-z]+ [a-z]+", result.text)


@pytest.mark.parametrize("text", ["é", "漢字", "\U0001f600", "a\tb"])
def test_b10_byte_fallback_spells_what_has_no_piece(text: str) -> None:
    """Characters without a piece are spelled by their bytes and come out whole."""
    model = scripted(META, constant({}, len(META)))
    assert model.generate("Say:", xs.choice([text])).value == text


URL = '{"url": "http:'


@pytest.mark.parametrize("as_prefix", [True, False])
@pytest.mark.parametrize("favourite", [b"://", b"//", b"/", b":"])
def test_b11_a_prompt_that_ends_inside_a_token_is_not_healed(as_prefix: bool, favourite: bytes) -> None:
    """The text is exactly prefix and match; a token across the prompt's end is not used."""
    vocabulary = bytes_and(b"://", b"//")
    index = vocabulary.tokens.index(favourite)
    model = stub_model(wants(index, ord("a"), END, width=vocabulary.width), vocabulary)
    rest = r'//[a-z]{1,5}\.com"\}'
    if as_prefix:
        result = model.generate([65], xs.regex(re.escape(URL) + rest), prefix=URL)
        assert result.text.startswith(URL)
        assert re.fullmatch(rest, result.text[len(URL) :])
    else:
        result = model.generate(list(URL.encode()), xs.regex(rest))
        assert re.fullmatch(rest, result.text)
    assert vocabulary.tokens.index(b"://") not in result.token_ids


@pytest.mark.parametrize("cut", range(12))
def test_b11_a_prefix_may_end_anywhere(cut: int) -> None:
    """Wherever the prefix ends, the text is whole and begins with it."""
    whole = '{"name": "x"}'
    vocabulary = bytes_and(b'{"name', b'name"', b'": "', b'"}')
    model = stub_model(wants(ord("x"), width=vocabulary.width), vocabulary)
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 1}},
        "required": ["name"],
        "additionalProperties": False,
    }
    result = model.generate([65], xs.json_schema(schema), prefix=whole[:cut])
    assert result.text == whole
    assert result.value == {"name": "x"}


@pytest.mark.parametrize("prefix", ["{'url", '{"u": ', 'x{"url"', '{"url": "ftp'])
def test_b11_a_prefix_that_does_not_fit_says_where(prefix: str) -> None:
    """A prefix outside the constraint is an error that shows what fits."""
    model = stub_model(constant({}))
    with pytest.raises(ArgumentError, match="prefix does not fit"):
        model.generate([65], xs.regex(re.escape(URL) + ".*"), prefix=prefix)


CONTROL = ["<pad>", "<|im_end|>", "<|im_start|>", "<unused3>", "<think>", "</think>", "<|tool|>"]
SPECIAL = byte_level(added=[AddedToken(name, special=False) for name in CONTROL[3:]] + [AddedToken("hello")])


def special_id(name: str) -> int:
    return SPECIAL.convert_tokens_to_ids(name)


@pytest.mark.parametrize("name", CONTROL)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(
    "constraint",
    [
        xs.json_schema({"type": "string", "minLength": 4, "maxLength": 12}),
        xs.regex('"[^"]{4,12}"'),
        xs.lark(r'start: "\"" /[^"]{4,12}/ "\""'),
    ],
    ids=["json", "regex", "lark"],
)
def test_b13_control_tokens_are_barred_inside_text(name: str, temperature: float, constraint: object) -> None:
    """Special and unused tokens do not stand for their letters inside a string."""
    model = scripted(SPECIAL, wants(special_id(name), ord("a"), width=len(SPECIAL)))
    result = model.generate("x", constraint, temperature=temperature, seed=1, max_new_tokens=40)
    assert result.finish_reason == "stop"
    assert not {special_id(n) for n in CONTROL} & set(result.token_ids[:-1])
    assert constraint.accepts(result.text)


def test_b13_an_ordinary_added_token_is_text() -> None:
    """An added token that is a word is used like any other."""
    model = scripted(SPECIAL, wants(special_id("hello"), width=len(SPECIAL)))
    result = model.generate("x", xs.regex("(hello){2}|[a-z]{3}"))
    assert result.text == "hellohello"
    assert result.token_ids[:2] == (special_id("hello"),) * 2


@pytest.mark.parametrize("text", ["<pad>", "<|im_end|>", "a<think>b", "<unused3>"])
def test_b13_the_letters_of_a_control_token_stay_writable(text: str) -> None:
    """Its letters can be spelled out, as text."""
    model = scripted(SPECIAL, constant({}, len(SPECIAL)))
    for constraint in (xs.choice([text]), xs.json_schema({"const": text}), xs.regex(re.escape(text) + "z?")):
        assert text in model.generate("x", constraint).value


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("<unused3>"),
        pytest.param("<think>"),
        "<|tool|>",
    ],
)
def test_b13_a_grammar_may_name_a_control_token(name: str) -> None:
    """A grammar that names a special token gets that token; its letters are not text."""
    model = scripted(SPECIAL, wants(special_id(name), ord("b"), width=len(SPECIAL)))
    result = model.generate("x", xs.lark(f"start: /[a-c]/ {name} /[a-c]/"), max_new_tokens=30)
    assert special_id(name) in result.token_ids
    assert result.text == "bb"


def test_b13_a_grammar_may_name_a_token_by_a_large_id() -> None:
    """A token id beyond a byte vocabulary can be named, as real models need it."""
    vocabulary = bytes_and(*(b"t%d" % i for i in range(999)))
    model = stub_model(wants(1000, ord("b"), width=vocabulary.width), vocabulary)
    result = model.generate([65], xs.lark("start: /[a-c]/ <[1000]> /[a-c]/"))
    assert result.token_ids == (98, 1000, 98, END)


def test_b10_the_prompt_reaches_the_model_as_tokenized() -> None:
    """With a real tokenizer, the scripted answer behind the prompt comes out."""
    ids = META.encode("Food:")
    model = scripted(META, says(META, "ab", len(ids)))
    assert model.generate("Food:", max_new_tokens=5).token_ids[-1] == META.eos_token_id
