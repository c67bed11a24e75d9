"""B8, B9, B12 and B14: tokens that are not whole characters, not whole terminals, or not there."""

from __future__ import annotations

import json
import re

import pytest

import xpress_struct as xs
from tests.cases.scripts import PROMPT, bytes_and, noisy, wants
from tests.stubs import END, ScriptedDrafter, byte_vocabulary, constant, stub_model
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import TokenizerMismatchError
from xpress_struct.model import Model

FIRST = END + 1


@pytest.mark.parametrize(
    "pattern",
    ["[\U0001f600-\U0001f64f]{2}", '"[^"]{0,6}"', "[é漢-]{1,4}", ".{3}", "[^a]{2}|\U0001f1e9\U0001f1ea"],
)
def test_b08_sampled_bytes_are_strict_utf8(pattern: str) -> None:
    """On a byte vocabulary every sampled output is strict UTF-8 and matches, whatever the seed."""
    model = stub_model(constant({}))
    constraint = xs.regex(pattern)
    for seed in range(50):
        result = model.generate(PROMPT, constraint, temperature=1.0, seed=seed, max_new_tokens=64)
        data = model.vocabulary.decode(result.token_ids)
        assert data.decode("utf-8") == result.text == result.value
        assert re.fullmatch(pattern, result.text)


@pytest.mark.parametrize("schema", [{"type": "string", "maxLength": 4}, {"type": "string"}])
def test_b08_sampled_json_strings_are_strict_utf8(schema: dict) -> None:
    """The same holds inside JSON strings, where the length counts characters."""
    model = stub_model(noisy(5))
    finished = 0
    for seed in range(50):
        result = model.generate(PROMPT, xs.json_schema(schema), temperature=1.0, seed=seed, max_new_tokens=64)
        data = model.vocabulary.decode(result.token_ids)
        if result.finish_reason == "stop":
            finished += 1
            assert data.decode("utf-8") == result.text
            assert len(result.value) <= schema.get("maxLength", 64)
    assert finished


ODD = [b".\xef\xbf", b"\xffs", b"\x80", b"", b"a", b"a", b"\xbd\xef\xbf\xbd", b"\x9f\x99", b"\xf0"]


@pytest.mark.parametrize("favourite", range(len(ODD)))
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_b09_odd_tokens_are_used_bytewise(favourite: int, temperature: float) -> None:
    """Tokens that are broken UTF-8, empty or double build a vocabulary and never break the text."""
    vocabulary = bytes_and(*ODD)
    wish = noisy(favourite, vocabulary.width)

    def logits(prefix: tuple[int, ...]) -> list[float]:
        row = wish(prefix)
        row[FIRST + favourite] += 6
        return row

    model = stub_model(logits, vocabulary)
    for constraint in (xs.regex('"[^"]{2,6}"'), xs.json_schema({"type": "string", "maxLength": 6})):
        for seed in range(5):
            result = model.generate(PROMPT, constraint, temperature=temperature, seed=seed, max_new_tokens=64)
            assert result.finish_reason == "stop"
            assert vocabulary.decode(result.token_ids).decode("utf-8") == result.text
            assert result.value is not None
            assert FIRST + ODD.index(b"") not in result.token_ids


def test_b09_a_half_character_token_goes_on_with_its_other_half() -> None:
    """A token that ends inside a character is usable where the character can be finished."""
    vocabulary = bytes_and(*ODD)
    model = stub_model(wants(FIRST, FIRST + 6, 0xBD, ord('"'), width=vocabulary.width), vocabulary)
    result = model.generate(PROMPT, xs.regex('"[^"]{3}"'), max_new_tokens=30)
    assert FIRST in result.token_ids
    assert result.text.encode() == vocabulary.decode(result.token_ids)
    assert "\ufffd" in result.text  # the character U+FFFD itself, spelled in full
    assert len(result.text) == 5


def test_b09_free_text_of_broken_bytes_has_replacement_characters() -> None:
    """Without a constraint, bytes that are no UTF-8 become U+FFFD rather than an exception."""
    vocabulary = bytes_and(*ODD)
    model = stub_model(wants(FIRST + 1, width=vocabulary.width), vocabulary)
    result = model.generate(PROMPT, max_new_tokens=3)
    assert result.text == "\ufffds" * 3


@pytest.mark.parametrize("favourite", [310, 306, 313])
@pytest.mark.parametrize("temperature", [0.0, 1.5])
@pytest.mark.parametrize("acceptance", ["coupled", "token", "block"])
@pytest.mark.parametrize("constraint", [None, xs.regex("[a-z]{5}"), xs.json_schema({})])
def test_b12_padding_ids_are_never_chosen(
    favourite: int, temperature: float, acceptance: str, constraint: object
) -> None:
    """Logits wider than the tokenizer: the ids beyond it are barred, also when drafted."""
    vocabulary = bytes_and(*(b"t%d" % i for i in range(306 - FIRST)), width=314)
    assert len(vocabulary.tokens) == 306
    model = stub_model(
        wants(favourite, 110, width=314), vocabulary, ScriptedDrafter(lambda o: [110, favourite])
    )
    result = model.generate(
        PROMPT,
        constraint,
        max_new_tokens=12,
        temperature=temperature,
        seed=2,
        acceptance=acceptance,
    )
    assert max(result.token_ids) < 306


def test_b12_narrow_logits_are_a_clear_error() -> None:
    """A tokenizer with more ids than the model has logits is refused where the two meet."""
    with pytest.raises(TokenizerMismatchError, match=r"306 ids .* logits for 300"):
        Vocabulary.from_tokens([b"t%d" % i for i in range(306)], width=300)


MERGED = [b'{"', b'":"', b'"},{"', b'"}\n', b'": "', b'"}, {"', b'"}', b'"}]', b'[{"', b"\n\n", b'","']


def merged_model(favourite: bytes, drafter: object = None) -> Model:
    vocabulary = bytes_and(*MERGED)
    index = FIRST + MERGED.index(favourite)
    return stub_model(wants(index, *b'k}"]', width=vocabulary.width), vocabulary, drafter)


ITEMS = {
    "type": "array",
    "minItems": 2,
    "maxItems": 2,
    "items": {
        "type": "object",
        "properties": {"k": {"type": "string", "maxLength": 8}},
        "required": ["k"],
        "additionalProperties": False,
    },
}


@pytest.mark.parametrize("favourite", MERGED)
@pytest.mark.parametrize("layout", ["compact", "spaced", "flexible"])
@pytest.mark.parametrize("drafted", [False, True])
def test_b14_tokens_across_terminals_fit_or_are_barred(favourite: bytes, layout: str, drafted: bool) -> None:
    """A token that spans several terminals is used where all of it fits, and barred elsewhere."""
    offered = [FIRST + i for i in range(len(MERGED))]
    drafter = ScriptedDrafter(lambda output: offered) if drafted else None
    model = merged_model(favourite, drafter)
    result = model.generate(PROMPT, xs.json_schema(ITEMS, layout=layout), max_new_tokens=120)
    assert result.finish_reason == "stop"
    assert model.vocabulary.decode(result.token_ids).decode() == result.text
    assert [sorted(item) for item in result.value] == [["k"], ["k"]]
    assert result.text.endswith("]")


@pytest.mark.parametrize(
    ("layout", "token"), [("compact", b'"},{"'), ("spaced", b'"}, {"'), ("compact", b'":"')]
)
def test_b14_a_merged_token_is_used_where_it_fits(layout: str, token: bytes) -> None:
    """A favoured token over four terminals is chosen in a layout that it fits."""
    result = merged_model(token).generate(PROMPT, xs.json_schema(ITEMS, layout=layout), max_new_tokens=120)
    assert FIRST + MERGED.index(token) in result.token_ids


def test_b14_a_token_past_the_end_is_barred() -> None:
    """A token that ends the document and goes on behind it is not legal."""
    result = merged_model(b'"}\n').generate(PROMPT, xs.json_schema(ITEMS["items"]), max_new_tokens=60)
    assert FIRST + MERGED.index(b'"}\n') not in result.token_ids
    assert result.text == json.dumps(result.value)


def test_b08_text_of_a_cut_character_leaves_the_half_out() -> None:
    """When the budget ends inside a character, the text holds whole characters only."""
    wanted = "ab\U0001f600".encode()
    model = stub_model(lambda prefix: [9.0 * (i == wanted[len(prefix) - 1]) for i in range(257)])
    for budget, text in ((2, "ab"), (3, "ab"), (5, "ab"), (6, "ab\U0001f600")):
        result = model.generate(PROMPT, max_new_tokens=budget)
        assert (result.text, result.finish_reason) == (text, "length")
    assert byte_vocabulary().decode(result.token_ids) == wanted
