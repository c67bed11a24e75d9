"""B52: a text that the vocabulary cannot spell is an error with its place, never NaN."""

from __future__ import annotations

import pytest

import xpress_struct as xs
from tests.stubs import ScriptedDrafter, stub_model
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import DeadEndError

ASCII = Vocabulary.from_tokens([bytes([i]) for i in range(128)] + [b""], end_ids=[128])
PLAIN = 129


def flat(prefix: tuple[int, ...]) -> list[float]:
    return [0.0] * PLAIN


@pytest.mark.parametrize(
    ("constraint", "position", "text"),
    [
        (xs.regex("é"), 0, ""),
        (xs.regex("abcé"), 3, "abc"),
        (xs.regex("[x-z]é"), 1, "x"),
        (xs.regex("[x-z]{3}[é漢]"), 3, "xxx"),
        (xs.choice(["é", "漢"]), 0, ""),
        (xs.json_schema({"enum": ["é"]}), 1, '"'),
        (xs.lark('start: "a" /[é-ü]/'), 1, "a"),
    ],
)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("drafted", [False, True])
def test_b52_a_dead_end_names_its_place(
    constraint: object, position: int, text: str, temperature: float, drafted: bool
) -> None:
    """DeadEndError says at which token nothing was legal, and after which text."""
    drafter = ScriptedDrafter(lambda output: [120, 120, 120, 120]) if drafted else None
    model = stub_model(flat, ASCII, drafter)
    with pytest.raises(DeadEndError) as caught:
        model.generate([65], constraint, temperature=temperature, seed=0)
    assert caught.value.position == position
    assert len(caught.value.text) == position
    if temperature == 0:
        assert caught.value.text == text
    assert "token" in str(caught.value)


@pytest.mark.parametrize("acceptance", ["token", "block"])
def test_b52_the_other_rules_find_it_too(acceptance: str) -> None:
    """Token-level and block acceptance raise the same error."""
    model = stub_model(flat, ASCII, ScriptedDrafter(lambda output: [120, 120, 120]))
    with pytest.raises(DeadEndError):
        model.generate([65], xs.regex("[xy]{2}é"), temperature=1.0, seed=0, acceptance=acceptance)


def test_b52_a_living_branch_is_taken() -> None:
    """Where one branch can be spelled, the other does no harm."""
    model = stub_model(flat, ASCII)
    assert model.generate([65], xs.regex("é|ok")).text == "ok"
    assert model.generate([65], xs.choice(["漢", "fine"])).value == "fine"


def test_b52_the_model_is_usable_after_a_dead_end() -> None:
    """A dead end leaves nothing behind."""
    model, constraint = stub_model(flat, ASCII), xs.regex("aé")
    for _ in range(2):
        with pytest.raises(DeadEndError):
            model.generate([65], constraint)
    assert model.generate([65], xs.regex("ab")).text == "ab"


def test_b52_no_half_character_is_left() -> None:
    """A vocabulary with the first byte of a character only raises at the second."""
    vocabulary = Vocabulary.from_tokens([b"a", b"\xc3", b""], end_ids=[2])
    with pytest.raises(DeadEndError):
        stub_model(lambda p: [0.0] * 3, vocabulary).generate([0], xs.regex("aé"))
