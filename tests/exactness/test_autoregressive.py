"""A smaller model as drafter: nothing it guesses changes what comes out."""

from __future__ import annotations

from collections import Counter

import pytest

import xpress_struct as xs
from tests.exactness.helpers import CONSTRAINTS, PROMPT, SIX, autoregressive, chi_square, generate, table
from tests.stubs import StubTarget, byte_vocabulary, prefers, stub_model
from tests.unit.models import tiny_model
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.drafting.autoregressive import AutoregressiveDrafter
from xpress_struct.errors import ArgumentError, CacheRollbackError, TokenizerMismatchError
from xpress_struct.sampling import NoiseKey, SamplingParams

SCHEMA = xs.json_schema(
    {
        "type": "object",
        "properties": {"n": {"type": "string", "maxLength": 6}, "k": {"enum": ["red", "blue"]}},
        "required": ["n", "k"],
        "additionalProperties": False,
    }
)
WAYS = [{}, {"temperature": 0.7}, {"temperature": 1.0, "top_k": 9}, {"temperature": 1.2, "top_p": 0.8}]


@pytest.mark.parametrize("rule", ["coupled", "token", "block"])
@pytest.mark.parametrize("name", ["letters", "forcing"])
def test_distribution(name, rule):
    """Seeded generations with a drafter of other logits pass a chi-square test against the promise."""
    params = SamplingParams(0.8, top_k=3)
    constraint, logits = CONSTRAINTS[name], table(4)
    wanted = autoregressive(logits, constraint, params, 4)
    model = stub_model(logits, SIX)
    drafter = AutoregressiveDrafter(StubTarget(table(9), SIX.width), SIX)
    counts = Counter(generate(model, constraint, drafter, rule, params, 4, 2, seed) for seed in range(4000))
    assert chi_square(counts, wanted) > 1e-4


def test_noise_of_an_earlier_round_is_not_used_again(monkeypatch):
    """The chi-square test sees the block rule go wrong when a round reuses the noise of one before it."""
    monkeypatch.setattr(NoiseKey, "fresh", lambda self, number: self)
    params = SamplingParams(0.8, top_k=3)
    constraint, logits = CONSTRAINTS["letters"], table(4)
    wanted = autoregressive(logits, constraint, params, 4)
    model = stub_model(logits, SIX)
    drafter = AutoregressiveDrafter(StubTarget(table(9), SIX.width), SIX)
    counts = Counter(
        generate(model, constraint, drafter, "block", params, 4, 2, seed) for seed in range(4000)
    )
    assert chi_square(counts, wanted) < 1e-4


@pytest.mark.parametrize("drafted_by", ["llama", "gemma3", "gpt2"])
def test_coupled_ids_do_not_change(drafted_by):
    """With the coupled rule ids equal those without speculation, whatever model guesses."""
    model, small = tiny_model("llama"), tiny_model(drafted_by)
    for seed, way in enumerate(WAYS * 3):
        asked = {"max_new_tokens": 40, "seed": seed, **way}
        prompt = list(range(60 + seed, 90 + seed))
        plain = model.generate(prompt, SCHEMA, drafter=None, **asked)
        for block in (1, 4, 8):
            out = model.generate(prompt, SCHEMA, drafter=small, block_length=block, **asked)
            assert out.token_ids == plain.token_ids


@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_a_model_that_drafts_for_itself_is_right(name):
    """The target as its own drafter has every guess accepted, sampled or not: it shares the noise."""
    model = tiny_model(name)
    for way in WAYS:
        out = model.generate(list(range(40, 75)), SCHEMA, drafter=model, seed=3, max_new_tokens=60, **way)
        assert out.stats.drafter == "autoregressive"
        assert out.stats.proposed > 1
        assert out.stats.accepted == out.stats.proposed


def test_forced_runs_stand_between_guesses():
    """A block goes on behind what the grammar forces, so one forward serves several values."""
    text = '{"n": "ab", "k": "red"}'
    model = stub_model(prefers(text))
    drafter = AutoregressiveDrafter(StubTarget(prefers(text), 257), byte_vocabulary())
    out = model.generate([1], SCHEMA, drafter=drafter, block_length=16)
    assert out.text == text
    assert out.stats.forwards == 1


def test_other_vocabularies_are_refused():
    """A drafter whose ids spell other bytes is refused before anything is generated."""
    other = Vocabulary.from_tokens([b"a", b"b", b""], end_ids=[2])
    drafter = AutoregressiveDrafter(StubTarget(lambda prefix: [0.0] * 3, 3), other)
    with pytest.raises(TokenizerMismatchError, match="first at id 0"):
        stub_model(prefers("a")).generate(PROMPT, drafter=drafter)


def test_a_recurrent_drafter_is_refused():
    """A model that cannot take guesses back cannot be a drafter."""
    target = StubTarget(lambda prefix: [0.0] * 257, 257)
    target.no_speculation = "Mamba keeps a recurrent state"
    with pytest.raises(CacheRollbackError, match="recurrent"):
        AutoregressiveDrafter(target, byte_vocabulary())


def test_a_longer_prompt_than_the_drafter_takes():
    """Where the drafter's own context ends, it stops guessing and the target goes on."""
    text = '{"n": "ab", "k": "red"}'
    drafter = AutoregressiveDrafter(StubTarget(prefers(text), 257, max_length=10), byte_vocabulary())
    assert stub_model(prefers(text)).generate([1], SCHEMA, drafter=drafter).text == text


def test_what_is_no_drafter_is_refused():
    """An object without `begin` is refused with what a drafter may be."""
    with pytest.raises(ArgumentError, match="smaller model"):
        stub_model(prefers("a")).generate([1], drafter=7)
