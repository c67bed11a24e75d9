"""Diffusion drafters on six tokens: a target that shows states, and counts against the enumerated promise."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import torch

import xpress_struct as xs
from tests.drafting.random_drafters import knowing_drafter, random_drafter
from tests.exactness.helpers import FORCING, PROMPT, SIX, Ids, V, autoregressive, chi_square, table
from tests.stubs import Logits, TappedStub
from xpress_struct.constraints.constraint import Constraint
from xpress_struct.drafting.diffusion import DiffusionDrafter
from xpress_struct.sampling import SamplingParams

BUDGET = 6
GRAMMAR = xs.regex("[ab][bc]{1,5}")
GRAMMARS: dict[str, Constraint] = {"letters": GRAMMAR, "forcing": FORCING, "pairs": xs.regex("[ac]{9}")}
PLAIN = SamplingParams(1.0)
# Sharp, so that what stands to the left matters much.
BIGRAMS = torch.randn(V, V, generator=torch.Generator().manual_seed(3)) * 2.5
# Always three guesses.
ALWAYS = {"guard": False, "block_length": 3}

_ON_SIX = {"width": V, "hidden_size": TappedStub.hidden_size, "mask_token_id": V, "block_size": 4}


@cache
def logits(prefix: Ids) -> list[float]:
    """What mostly follows the last token, and a part that a drafter cannot know."""
    return (BIGRAMS[prefix[-1]] + torch.tensor(table(3, spread=0.5)(prefix))).tolist()


def on_six(head: str | None = "xpress", **fields: Any) -> DiffusionDrafter:
    """A random drafter."""
    return random_drafter(head, **(_ON_SIX | fields))


def knowing(**fields: Any) -> DiffusionDrafter:
    """One whose head knows the bigrams, so that what stands to the left matters, and guesses stand."""
    ids = fields.get("ids")
    after = BIGRAMS.T if ids is None else BIGRAMS.T[ids]
    # Base logits that say little make a block that has not converged as wrong as it can be.
    return knowing_drafter(torch.eye(V), after, **(_ON_SIX | {"output_multiplier": 0.1} | fields))


@cache
def model(scores: Logits) -> xs.Model:
    """A target of such logits that shows states."""
    return xs.Model(TappedStub(scores, V), None, SIX, None)


def count(
    drafter: object,
    rule: str,
    runs: int,
    *,
    grammar: str = "letters",
    params: SamplingParams = PLAIN,
    scores: Logits = logits,
    **options: Any,
) -> tuple[float, float]:
    """p-value of seeded generations against the promise, and guesses that stood by generation."""
    wanted = promised(scores, grammar, params)
    counts: Counter[Ids] = Counter()
    accepted = 0
    for seed in range(runs):
        out = model(scores).generate(
            PROMPT,
            GRAMMARS[grammar],
            drafter=drafter,
            acceptance=rule,
            temperature=params.temperature,
            top_k=params.top_k,
            top_p=params.top_p,
            max_new_tokens=BUDGET,
            seed=seed,
            **options,
        )
        counts[out.token_ids] += 1
        accepted += out.stats.accepted
    return chi_square(counts, wanted), accepted / runs


@cache
def promised(scores: Logits, grammar: str, params: SamplingParams) -> dict[Any, float]:
    """The enumerated distribution."""
    return autoregressive(scores, GRAMMARS[grammar], params, BUDGET)
