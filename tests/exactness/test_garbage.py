"""Drafts of nonsense: they change no output and raise nothing, whatever the rule."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import pytest
import torch

import xpress_struct as xs
from tests.drafting.random_drafters import random_drafter
from tests.exactness.helpers import CONSTRAINTS, SIX, V, autoregressive, chi_square, generate, table
from tests.exactness.helpers import END as SIX_END
from tests.exactness.texts import GRAMMARS, hashed
from tests.stubs import END, ScriptedDrafter, stub_model
from tests.unit.models import tiny_model
from xpress_struct.drafting import diffusion
from xpress_struct.drafting.drafter import Draft
from xpress_struct.drafting.lookup import LookupDrafter
from xpress_struct.drafting.several import SeveralDrafter
from xpress_struct.sampling import SamplingParams

RULES = ["coupled", "token", "block"]


def garbage(width: int, end: int) -> dict[str, list[int]]:
    """Drafts by name; ids beyond the width and below 0 are no tokens at all."""
    return {
        "fence": [*b"```json\n"] if width > 256 else [3, 3, 4, 4],
        "after the end": [end, 0, end, 1],
        "ends at once": [end],
        "beyond the width": [width + 40, 0],
        "the next id": [width],
        "negative": [-1, 0],
        "far negative": [-(10**6)],
        "repeats": [97 % width] * 40,
    }


BYTES, SMALL = garbage(257, END), garbage(V, SIX_END)


def drafters(tokens: list[int]) -> list[object]:
    """The draft alone, as one that goes on, and among others."""
    alone, going_on = ScriptedDrafter(lambda output: tokens), ScriptedDrafter(lambda output: tokens, True)
    return [alone, going_on, SeveralDrafter([alone, LookupDrafter()])]


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_coupled(kind, temperature):
    """Under the coupled rule no id changes."""
    model = stub_model(hashed(1))
    for seed, constraint in enumerate([*GRAMMARS.values(), None]):
        asked = {"seed": seed, "temperature": temperature, "max_new_tokens": 40}
        plain = model.generate([seed, 5], constraint, drafter=None, **asked)
        for drafter in drafters(BYTES[kind]):
            out = model.generate([seed, 5], constraint, drafter=drafter, guard=False, **asked)
            assert out.token_ids == plain.token_ids
            assert out.finish_reason == plain.finish_reason


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("rule", RULES)
def test_in_place_of_a_block(kind, rule):
    """The same in place of what a diffusion drafter refined: greedy ids stay under every rule."""
    model, drafter = tiny_model("llama"), random_drafter()
    plain = model.generate([1, 2, 3], GRAMMARS["json"], drafter=None, max_new_tokens=24)
    with patch.object(diffusion._Session, "propose", lambda self, *a, **k: Draft(list(BYTES[kind]))):
        for each in (drafter, SeveralDrafter([LookupDrafter(), drafter])):
            out = model.generate(
                [1, 2, 3], GRAMMARS["json"], drafter=each, acceptance=rule, max_new_tokens=24, guard=False
            )
            assert out.token_ids == plain.token_ids


@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize("rule", ["token", "block"])
def test_distribution(kind, rule):
    """Under the others the distribution stays."""
    params = SamplingParams(0.9)
    for name, index in (("letters", 0), ("forcing", 2)):
        constraint, logits = CONSTRAINTS[name], table(4)
        model, drafter = stub_model(logits, SIX), drafters(SMALL[kind])[index]
        counts = Counter(
            generate(model, constraint, drafter, rule, params, 4, 3, seed) for seed in range(200)
        )
        assert chi_square(counts, autoregressive(logits, constraint, params, 4)) > 1e-4


@pytest.mark.parametrize("kind", ["fence", "after the end", "repeats"])
@pytest.mark.parametrize("rule", ["token", "block"])
def test_garbage_that_says_it_was_drawn(kind, rule):
    """A draft with a q is offered past the grammar, refused, and the distribution stays."""
    tokens, params = SMALL[kind], SamplingParams(0.9)
    q = torch.nn.functional.one_hot(torch.tensor(tokens), V).double()
    drafter = ScriptedDrafter(lambda output: (tokens, q))
    constraint, logits = CONSTRAINTS["letters"], table(4)
    model = stub_model(logits, SIX)
    counts = Counter(generate(model, constraint, drafter, rule, params, 4, 3, seed) for seed in range(400))
    assert chi_square(counts, autoregressive(logits, constraint, params, 4)) > 1e-4


def test_forced_tokens_repeated():
    """A drafter that says again what the grammar has just forced, or will force, changes nothing."""
    constraint = xs.regex("[ab]forced[ab]again[ab]")
    model = stub_model(hashed(1))
    for seed in range(6):
        asked = {"seed": seed, "temperature": 1.0}
        plain = model.generate([seed], constraint, drafter=None, **asked)
        for text in (b"forced", b"aforced", b"aforcedaagain", b"aagaina", b"gain"):
            for drafter in drafters([*text]):
                assert (
                    model.generate([seed], constraint, drafter=drafter, **asked).token_ids == plain.token_ids
                )
