"""Equality of ids: no block-diffusion drafter, variant or option changes a token of the coupled rule."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from unittest.mock import patch

import pytest
import torch

import xpress_struct as xs
from tests.drafting.random_drafters import MAX_KNOWN, knowing_of, random_drafter
from tests.drafting.tiny import FULL, SLIDING
from tests.exactness.test_models import MODELS, prompts
from tests.exactness.texts import GRAMMARS
from tests.unit.models import tiny, tiny_model
from xpress_struct.drafting import diffusion
from xpress_struct.drafting.autoregressive import AutoregressiveDrafter
from xpress_struct.drafting.lookup import LookupDrafter
from xpress_struct.drafting.several import SeveralDrafter

# Grammars that force runs of many lengths between few choices, so that random guesses stand now and then.
RUNS = {
    "array": xs.json_schema(
        {"type": "array", "items": {"enum": ["red", "rot", "reed", 1, 2, [3], True]}, "minItems": 2}
    ),
    "regex": xs.regex("([ab]x|[ab]xy|[cd]xyz[ab]|e(wxyz|vwxyz)[ab]){2,6}"),
    "lark": xs.lark('start: row+\nrow: ("x"|"y") "=" /[0-9]{1,2}/ (";" | " and ") \n'),
    "choice": GRAMMARS["choice"],
}
SAMPLINGS = {
    "greedy": {},
    "temperature 0.7": {"temperature": 0.7},
    "temperature 1.0": {"temperature": 1.0},
    "top-k": {"temperature": 1.0, "top_k": 5},
    "top-p": {"temperature": 1.2, "top_p": 0.8},
}
VARIANTS = ["none", "sequential", "parallel", "low-confidence", "chunked"]
SOME = torch.tensor([i for i in range(257) if i % 7])


def drafters(target: str) -> dict:
    """Every head and convention, for one target."""
    both = {"sliding_is_causal": True, "full_is_causal": True}
    return {
        "knowing": knowing_of(tiny(target)),
        "knowing, of the next": knowing_of(tiny(target), predicts_next=True),
        "xpress": random_drafter("xpress"),
        "xpress, of the next": random_drafter("xpress", predicts_next=True),
        "gated": random_drafter("gated", embedding_scale=5.7),
        "rnn": random_drafter("rnn", predicts_next=True, logit_softcap=3.0),
        "sliding": random_drafter("xpress", SLIDING, FULL, window=3),
        "causal": random_drafter("vanilla", SLIDING, FULL, window=4, **both),
        "some ids": knowing_of(tiny(target), ids=SOME),
        "some ids, own head": random_drafter("xpress", ids=SOME, own_head=True),
        "short memory": random_drafter("rnn", context_length=5),
        "one known": knowing_of(tiny(target), max_known=1),
        "no head": random_drafter(None, predicts_next=True, output_multiplier=0.5),
    }


drafters_of = cache(drafters)
NAMES = list(drafters("llama"))


@pytest.fixture
def known_runs():
    """How often a block began with how many known tokens."""
    runs = Counter()
    denoise = diffusion._Session._denoise

    def spy(self, known):
        runs[len(known)] += 1
        return denoise(self, known)

    with patch.object(diffusion._Session, "_denoise", spy):
        yield runs


def with_others(drafter: object, rng: random.Random) -> object:
    """The drafter, or one time in four a list of it, lookup, and perhaps a small model."""
    if rng.random() < 0.75:
        return drafter
    others = [LookupDrafter()]
    if rng.random() < 0.3:
        small = tiny_model("gpt2")
        others.append(AutoregressiveDrafter(small.target, small.vocabulary))
    return SeveralDrafter([drafter, *others])


def options(rng: random.Random, refine: str | None) -> dict:
    """Options of a draft; None stands for the default."""
    drawn = {
        "refine": refine,
        "refine_passes": rng.choice([None, 1, 3, "auto"]) if refine else None,
        "denoising_steps": rng.choice([None, None, 1, 2, 3, 4]),
        "draft_temperature": rng.choice([None, None, None, 0.0, 0.4, 1.7]),
        "draft_confidence": rng.choice([None, None, None, 0.2]),
    }
    asked = {name: value for name, value in drawn.items() if value is not None}
    return {**asked, "block_length": rng.choice(["auto", 1, 4]), "guard": rng.random() < 0.7}


def compare(count: int, sampling: str, variants: list[str]) -> Counter:
    """Decodes prompts with and without drafts; the sums of what was drafted, by variant."""
    stood = Counter()
    for index, prompt in enumerate(prompts(count)):
        target = MODELS[index % 3]
        model = tiny_model(target)
        constraint = list(RUNS.values())[index // 3 % len(RUNS)]
        asked = {"seed": index, "max_new_tokens": 12, **SAMPLINGS[sampling]}
        plain = model.generate(prompt, constraint, drafter=None, **asked)
        for variant in variants:
            rng = random.Random(f"{index} {sampling} {variant}")
            name = rng.choice(NAMES if variant == "none" else NAMES[:-1])
            drafter = with_others(drafters_of(target)[name], rng)
            how = options(rng, None if name == "no head" else variant)
            drafted = model.generate(prompt, constraint, drafter=drafter, **asked, **how)
            assert drafted.token_ids == plain.token_ids, (index, name, how)
            assert drafted.finish_reason == plain.finish_reason
            stood[variant] += drafted.stats.accepted
    return stood


@pytest.mark.slow
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_ids_equal(sampling, known_runs):
    """Ids are those without speculation: 200 prompts for every variant, and known runs of 1 to 6."""
    stood = compare(200, sampling, VARIANTS)
    assert min(stood[variant] for variant in VARIANTS) > 100
    assert sorted(known_runs) == list(range(1, MAX_KNOWN + 1))


def test_some_ids_equal(known_runs):
    """The same on a few prompts, and short runs."""
    stood = compare(6, "temperature 0.7", VARIANTS)
    assert all(stood[variant] for variant in VARIANTS)
    assert {1, 2, 3} <= known_runs.keys()


@pytest.mark.parametrize("target", MODELS)
@pytest.mark.parametrize("name", NAMES)
def test_each_drafter(name, target):
    """Each head and convention drafts, some guesses stand, and no id changes."""
    drafter, model = drafters_of(target)[name], tiny_model(target)
    stood = 0
    for index, prompt in enumerate(prompts(4)):
        constraint = list(RUNS.values())[index]
        asked = {"seed": index, "max_new_tokens": 20, "temperature": 0.8}
        plain = model.generate(prompt, constraint, drafter=None, **asked)
        drafted = model.generate(prompt, constraint, drafter=drafter, block_length=4, **asked)
        assert drafted.token_ids == plain.token_ids
        assert drafted.stats.drafter == drafter.name
        stood += drafted.stats.accepted
    assert stood > 0


def test_passes_are_counted():
    """Each variant computes the bias as often as its definition says, and none does not."""
    drafter, model = drafters_of("llama")["knowing"], tiny_model("llama")
    spent = {}
    for variant in VARIANTS:
        out = model.generate(
            prompts(1)[0], GRAMMARS["regex"], drafter=drafter, refine=variant, refine_passes=1, guard=False
        )
        spent[variant] = out.stats.refine_passes / out.stats.forwards
    assert spent["none"] == 0
    assert 0 < spent["parallel"] <= 1
    assert 0 < spent["low-confidence"] <= 1
    assert spent["parallel"] < spent["chunked"] <= 2
    assert spent["chunked"] < spent["sequential"] <= 5


def test_a_long_known_run_sits_out():
    """A run that is longer than the drafter was trained on offers nothing for one round, and ids stay."""
    constraint = xs.regex("[ab]0123456789[ab]{3}")
    model, drafter = tiny_model("llama"), drafters_of("llama")["one known"]
    asked = {"temperature": 1.0, "seed": 1, "guard": False}
    plain = model.generate(prompts(1)[0], constraint, drafter=None, **asked)
    out = model.generate(prompts(1)[0], constraint, drafter=drafter, **asked)
    long = model.generate(prompts(1)[0], constraint, drafter=random_drafter(max_known=20), **asked)
    assert out.token_ids == plain.token_ids == long.token_ids
    assert out.stats.rounds_by_accepted[0] >= 2
    assert long.stats.proposed > out.stats.proposed


def test_without_constraint():
    """Free text is the same too."""
    model = tiny_model("gemma3")
    for index, prompt in enumerate(prompts(6)):
        asked = {"seed": index, "max_new_tokens": 20, "temperature": (0.0, 0.8)[index % 2]}
        plain = model.generate(prompt, drafter=None, **asked)
        out = model.generate(prompt, drafter=drafters_of("gemma3")["knowing"], block_length=5, **asked)
        assert out.token_ids == plain.token_ids


def test_states_wait():
    """Drafts are the same whether states are fused as they come, or some or all of them wait for a block."""
    drafter, model = drafters_of("llama")["knowing"], tiny_model("llama")
    asked = {"seed": 3, "max_new_tokens": 20, "temperature": 0.8, "guard": False, "refine_passes": 2}
    read, runs = diffusion._Session.read, []

    def one_by_one(session, states):
        for state in states.split(1):
            read(session, state)

    for way, waiting in ((read, 0), (one_by_one, 0), (one_by_one, 3), (one_by_one, 1024)):
        with patch.object(diffusion._Session, "read", way), patch.object(diffusion, "_WAITING", waiting):
            out = model.generate(prompts(1)[0], RUNS["regex"], drafter=drafter, **asked)
        runs.append((out.token_ids, out.stats.proposed, out.stats.accepted, out.stats.forwards))
    assert runs == runs[:1] * 4
    assert runs[0][1] > 0
