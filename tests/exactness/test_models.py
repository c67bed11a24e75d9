"""Equality of ids on tiny random models of transformers, in float32; in bfloat16 the logit gap."""

from __future__ import annotations

import random

import pytest
import torch

import xpress_struct as xs
from tests.exactness.texts import CUTS, GRAMMARS
from tests.stubs import ScriptedDrafter
from tests.unit.models import tiny, tiny_model
from xpress_struct.constraints.constraint import Constraint
from xpress_struct.sampling import unpack_mask

MODELS = ["llama", "gemma3", "gpt2"]
NAMES = list(GRAMMARS)


def prompts(count: int) -> list[list[int]]:
    """Prompts of 2 to 40 bytes that hold pieces of possible answers, so that lookup finds some."""
    rng = random.Random(5)
    words = ["yes", "no", "née", "ab-xxé", '{"name": "a', '"kind": "red"', "not now", " ", "cafe-123"]
    texts = ["".join(rng.choices(words, k=rng.randint(1, 5))) for _ in range(count)]
    return [[rng.randrange(256), *text.encode()][:40] for text in texts]


def copying(plain: tuple[int, ...], wrong: int) -> ScriptedDrafter:
    """The answer with every `wrong`-th token replaced."""
    return ScriptedDrafter(
        lambda output: [
            token if (slot + 1) % wrong else 98
            for slot, token in enumerate(plain[len(output) : len(output) + 16])
        ]
    )


def gap_at_first_difference(
    model: xs.Model, prompt: list[int], constraint: Constraint, plain: tuple, drafted: tuple
) -> float:
    """How far apart the target's legal logits of two greedy answers are where they part; 0 if never.

    Two answers of one model in a short float format may part where rounding decides: then the
    logits of the two tokens are almost equal, which is what is claimed there instead of equality.
    """
    pairs = enumerate(zip(plain, drafted, strict=False))
    place = next((i for i, (left, right) in pairs if left != right), None)
    if place is None:
        return 0.0
    ids = torch.tensor([[*prompt, *plain[:place]]])
    with torch.inference_mode():
        row = model.target.model(input_ids=ids, use_cache=False).logits[0, -1].float()
    matcher, _ = constraint.matcher(model.vocabulary)
    matcher.commit(plain[:place])
    legal = unpack_mask(torch.from_numpy(matcher.mask()), len(row))
    assert legal[plain[place]]
    assert legal[drafted[place]]
    return float((row[plain[place]] - row[drafted[place]]).abs())


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_greedy(name):
    """Greedy ids are those of no speculation, for 200 prompts over all block lengths (B50)."""
    model, accepted = tiny_model(name), 0
    for index, prompt in enumerate(prompts(200 if name == "llama" else 66)):
        constraint = GRAMMARS[NAMES[index % 3]]
        plain = model.generate(prompt, constraint, drafter=None, max_new_tokens=16)
        block = (1, 2, 4, 16)[index // 3 % 4]
        drafter = copying(plain.token_ids, 4) if index % 2 else "lookup"
        drafted = model.generate(prompt, constraint, drafter=drafter, block_length=block, max_new_tokens=16)
        assert drafted.token_ids == plain.token_ids, (index, block)
        accepted += drafted.stats.accepted
    assert accepted > 0


@pytest.mark.parametrize("name", MODELS)
def test_sampled(name):
    """Sampled ids are those of no speculation under every cut, for lookup and for good drafts."""
    model, accepted = tiny_model(name), 0
    for index, prompt in enumerate(prompts(16)):
        options = {
            "temperature": (0.3, 0.7, 1.0, 1.5)[index // 4],
            "seed": index,
            "max_new_tokens": 30,
            **list(CUTS.values())[index % 4],
        }
        constraint = GRAMMARS[NAMES[index % 3]]
        plain = model.generate(prompt, constraint, drafter=None, **options)
        for drafter in ("lookup", copying(plain.token_ids, 5)):
            drafted = model.generate(prompt, constraint, drafter=drafter, **options)
            assert drafted.token_ids == plain.token_ids, index
            accepted += drafted.stats.accepted
    assert accepted > 0


@pytest.mark.parametrize("name", MODELS)
def test_bfloat16_gap(name):
    """In bfloat16, answers part only where two logits are as near as its rounding (B50)."""
    model = tiny_model(name, torch.bfloat16)
    gaps = []
    for index, prompt in enumerate(prompts(20)):
        constraint = GRAMMARS[NAMES[index % 3]]
        plain = model.generate(prompt, constraint, drafter=None, max_new_tokens=20)
        drafted = model.generate(prompt, constraint, drafter=copying(plain.token_ids, 4), max_new_tokens=20)
        found = (plain.token_ids, drafted.token_ids)
        gaps.append(gap_at_first_difference(model, prompt, constraint, *found))
    with torch.inference_mode():
        scale = tiny(name, torch.bfloat16)(torch.tensor([prompts(1)[0]])).logits.abs().max()
    assert max(gaps) <= 0.05 * float(scale)
