"""The coupled rule: no drafter, block length or temperature changes one token."""

from __future__ import annotations

import itertools
import random

import pytest

import xpress_struct as xs
from tests.exactness.helpers import table
from tests.exactness.texts import CUTS, GRAMMARS, drafters, hashed
from tests.stubs import ScriptedDrafter, stub_model
from tests.unit.grammars import make_grammar, make_vocabulary
from xpress_struct.constraints.vocabulary import Vocabulary

BLOCKS = [1, 2, 4, 16]
SEEDS = 56


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("temperature", [0.0, 0.3, 0.7, 1.0, 1.5])
@pytest.mark.parametrize("name", GRAMMARS)
def test_ids_equal(name, temperature, cut):
    """Ids with speculation are those without, for every seed; drafters and block lengths rotate."""
    model = stub_model(hashed(1))
    options = {"temperature": temperature, **CUTS[cut], "max_new_tokens": 60}
    ways = list(itertools.product(drafters(()), BLOCKS))
    accepted = 0
    for seed in range(SEEDS if temperature else 4):
        prompt = [seed, 5]
        plain = model.generate(prompt, GRAMMARS[name], drafter=None, seed=seed, **options)
        known = drafters(plain.token_ids)
        # Without noise a seed changes nothing but the prompt, so each takes several ways.
        for way in range(1 if temperature else 8):
            kind, block = ways[(seed + way * 4) % len(ways)]
            drafted = model.generate(
                prompt,
                GRAMMARS[name],
                drafter=known[kind],
                block_length=block,
                seed=seed,
                **options,
            )
            assert drafted.token_ids == plain.token_ids, (seed, kind, block)
            assert drafted.text == plain.text
            assert drafted.finish_reason == plain.finish_reason
            assert kind != "perfect" or drafted.stats.accepted == drafted.stats.proposed
            accepted += drafted.stats.accepted
    assert accepted > 0


@pytest.mark.parametrize("budget", range(1, 24))
def test_every_budget(budget):
    """A budget cuts at the same token with and without speculation, and is never passed."""
    model, constraint = stub_model(hashed(2)), GRAMMARS["json"]
    options = {"temperature": 0.7, "seed": budget, "max_new_tokens": budget}
    plain = model.generate([1], constraint, drafter=None, **options)
    assert len(plain.token_ids) <= budget
    for kind, drafter in drafters(plain.token_ids).items():
        drafted = model.generate([1], constraint, drafter=drafter, **options)
        assert drafted.token_ids == plain.token_ids, kind
        assert drafted.finish_reason == plain.finish_reason


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_without_constraint(temperature):
    """Free text is the same with and without speculation."""
    model = stub_model(hashed(3))
    for seed in range(12):
        options = {"temperature": temperature, "seed": seed, "max_new_tokens": 25}
        plain = model.generate([seed], None, drafter=None, **options)
        for kind, drafter in drafters(plain.token_ids).items():
            drafted = model.generate([seed], None, drafter=drafter, block_length=4, **options)
            assert drafted.token_ids == plain.token_ids, kind


def test_dead_ends_off_the_path():
    """A drafted dead end that the target would not take is no error."""
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"c", b"d", b""], end_ids=[4])
    constraint = xs.choice(["ab", "cé", "cdé", "abé", "cdaéa"])
    model = stub_model(lambda prefix: [5.0, 4.0, 0.0, 0.0, 4.5], vocabulary)
    for draft in itertools.product(range(5), repeat=3):
        drafter = ScriptedDrafter(lambda output, d=draft: [*d[len(output) :]], resumes=True)
        assert model.generate([0], constraint, drafter=drafter).token_ids == (0, 1, 4)


@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("kind", ["regex", "choice", "lark"])
@pytest.mark.parametrize("seed", range(8))
def test_random_grammars(seed, kind, end):
    """Ids are equal on random grammars over tokens that overlap and cut characters in two."""
    rng = random.Random(f"{seed} {kind} {end} coupled")
    constraint, texts = make_grammar(rng, kind)
    vocabulary = make_vocabulary(rng, end=end)
    model = stub_model(table(seed, len(vocabulary.tokens)), vocabulary)
    ids = range(len(vocabulary.tokens))
    for run in range(6):
        options = {"temperature": (0.0, 1.0)[run % 2], "seed": run}
        plain = model.generate([0, run], constraint, drafter=None, **options)
        assert plain.text.encode() in texts

        def half(output, plain=plain.token_ids):
            rest = [*plain[len(output) :], *rng.choices(ids, k=2)]
            return [token if rng.random() < 0.8 else rng.choice(ids) for token in rest]

        for resumes, block in ((False, 16), (True, 2), (True, 16)):
            drafter = ScriptedDrafter(half, resumes)
            drafted = model.generate([0, run], constraint, drafter=drafter, block_length=block, **options)
            assert drafted.token_ids == plain.token_ids
            assert drafted.finish_reason == plain.finish_reason
