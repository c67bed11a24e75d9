"""The lookup drafter."""

from __future__ import annotations

import random

import pytest

import xpress_struct as xs
from tests.stubs import StubTarget, byte_vocabulary, prefers, stub_model
from xpress_struct.constraints.matcher import FreeMatcher
from xpress_struct.drafting.drafter import DraftContext
from xpress_struct.drafting.lookup import LookupDrafter
from xpress_struct.errors import ArgumentError
from xpress_struct.sampling import Noise, NoiseKey, SamplingParams

VOCABULARY = byte_vocabulary()
TARGET = StubTarget(lambda prefix: [0.0] * 257, 257)


def guess(prompt: str, output: str, room: int = 8, **options: int) -> str:
    context = DraftContext(tuple(prompt.encode()), VOCABULARY, SamplingParams(), "coupled", TARGET)
    session = LookupDrafter(**options).begin(context)
    noise = Noise(NoiseKey(0), VOCABULARY.width)
    draft = session.propose(list(output.encode()), room, FreeMatcher(VOCABULARY), noise)
    return VOCABULARY.decode(draft.tokens).decode()


@pytest.mark.parametrize(
    ("prompt", "output", "wanted"),
    [
        ("in Houston, Texas", '{"city": "Hou', "ston, Te"),  # another token boundary, the same bytes
        ("abcX abcY", "abc", "Yabc"),  # the latest of equally long matches
        ("zabcX abcY", "zabc", "X abcYza"),  # the longest match
        ("nothing", "qq", ""),
        ("", "ababab", "ab"),  # the output itself
        ("", "", ""),
    ],
)
def test_what_followed_before_is_guessed(prompt, output, wanted):
    """The guess is what follows the longest, then latest, earlier occurrence of the text's end."""
    assert guess(prompt, output) == wanted


@pytest.mark.parametrize("seed", range(20))
def test_the_longest_match_is_found(seed):
    """The match equals that of a plain search over all places and lengths."""
    draw = random.Random(seed)
    text = "".join(draw.choice("ab ") for _ in range(60))
    longest = max(
        (length, place + length)
        for length in range(12)
        for place in range(len(text) - length)
        if text[place : place + length] == text[len(text) - length :]
    )
    wanted = text[longest[1] :][:8] if longest[0] >= 2 else ""
    assert guess(text[:30], text[30:], longest=11) == wanted


def test_a_short_match_does_not_count():
    """Nothing is guessed from fewer bytes than `shortest`."""
    assert guess("abX", "qab", shortest=3) == ""


def test_bounds_are_checked():
    """Bounds that contradict each other are refused."""
    with pytest.raises(ArgumentError):
        LookupDrafter(longest=2, shortest=3)


def test_copying_saves_forwards():
    """A value that stands in the prompt costs fewer forwards with lookup, and the same ids."""
    name = "Wolfeschlegelsteinhausenbergerdorff"
    constraint = xs.json_schema(
        {
            "type": "object",
            "properties": {"n": {"type": "string"}},
            "required": ["n"],
            "additionalProperties": False,
        }
    )
    text = f'{{"n": "{name}"}}'
    prompt = list(f"Name: {name}".encode())
    model = stub_model(prefers(text, prompt_length=len(prompt)))
    alone, helped = (model.generate(prompt, constraint, drafter=d) for d in (None, "lookup"))
    assert alone.token_ids == helped.token_ids
    assert alone.value == {"n": name}
    assert helped.stats.forwards < alone.stats.forwards / 3
