"""Exact checks on six tokens: enumerate every path of a random program, and compare distributions.

A round is random in three ways only: the drafter's draws, the coins, and the draws from residuals.
`outcomes` replaces all three by an oracle that takes every branch in turn with its exact weight, so
the distribution of what comes out is computed, not estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from unittest.mock import patch

import numpy as np
import torch
from scipy import stats

import xpress_struct as xs
from tests.stubs import Logits, ScriptedDrafter, stub_model
from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.matcher import FreeMatcher
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import DeadEndError
from xpress_struct.sampling import SamplingParams, unpack_mask

Ids = tuple[int, ...]
Distribution = dict[Hashable, float]
Pick = Callable[[Sequence[float]], int]
Guess = Callable[[Ids, Pick], object]

V, END = 6, 5
PROMPT = (0,)
# Scores are float32 in the decoder and float64 in the reference.
EXACT = 1e-6
TOKENS = (b"a", b"b", b"c", b"ab", b"bc", b"")
SIX = Vocabulary.from_tokens(TOKENS, end_ids=[END])

LETTERS = xs.regex("[abc]{1,3}")
FORCING = xs.choice(["abca", "abcb", "bacc", "cab", "ca"])
CONSTRAINTS: dict[str, Constraint | None] = {"letters": LETTERS, "forcing": FORCING, "free": None}

PARAMS = {
    "plain": SamplingParams(1.0),
    "hot-top_k": SamplingParams(1.4, top_k=2),
    "top_p": SamplingParams(0.8, top_p=0.8),
    "min_p": SamplingParams(1.0, min_p=0.3),
    "greedy": SamplingParams(0.0),
}


def table(seed: int, width: int = V, spread: float = 1.3) -> Callable[[Ids], list[float]]:
    """Random logits as a function of the prefix."""

    @cache
    def logits(prefix: Ids) -> list[float]:
        # The length is in the seed because trailing zeros do not count in it.
        drawn = np.random.default_rng([seed, len(prefix), *prefix]).normal(size=width)
        return (spread * drawn).astype(np.float32).tolist()

    return logits


class _Oracle:
    """Answers questions along one branch; `advance` moves to the next branch."""

    def __init__(self) -> None:
        self.path: list[tuple[list[tuple[int, float]], int]] = []
        self.depth, self.weight = 0, 1.0

    def pick(self, weights: Sequence[float]) -> int:
        if self.depth == len(self.path):
            total = float(sum(weights))
            self.path.append(([(i, float(w) / total) for i, w in enumerate(weights) if w > 0], 0))
        options, taken = self.path[self.depth]
        self.depth += 1
        index, share = options[taken]
        self.weight *= share
        return index

    def advance(self) -> bool:
        while self.path:
            options, taken = self.path.pop()
            if taken + 1 < len(options):
                self.path.append((options, taken + 1))
                self.depth, self.weight = 0, 1.0
                return True
        return False


class Coin:
    """A uniform number that is only ever compared; each comparison is a branch."""

    def __init__(self, pick: Pick) -> None:
        self._pick = pick

    def __lt__(self, threshold: float) -> bool:
        inside = min(1.0, max(0.0, float(threshold)))
        return self._pick([inside, 1.0 - inside]) == 0

    def __ge__(self, threshold: float) -> bool:
        return not self < threshold


def outcomes(program: Callable[[Pick], Hashable]) -> dict[Hashable, float]:
    """The exact distribution of what a program returns, over all its picks."""
    oracle, found = _Oracle(), {}
    while True:
        outcome = program(oracle.pick)
        found[outcome] = found.get(outcome, 0.0) + oracle.weight
        if not oracle.advance():
            return found


def total_variation(left: dict, right: dict) -> float:
    keys = left.keys() | right.keys()
    return 0.5 * sum(abs(left.get(key, 0.0) - right.get(key, 0.0)) for key in keys)


def chi_square(counts: dict, expected: dict) -> float:
    """p-value of counts against a distribution; rare cells are merged, impossible ones fail."""
    if any(expected.get(key, 0.0) == 0.0 for key in counts):
        return 0.0
    total = sum(counts.values())
    # Sorted by what was expected alone: by what was seen, equally likely cells would be merged with a bias.
    pairs = ((share * total, counts.get(key, 0)) for key, share in expected.items())
    cells = sorted(pairs, key=lambda cell: cell[0])
    merged, rest = [], (0.0, 0)
    for share, seen in cells:
        rest = (rest[0] + share, rest[1] + seen)
        if rest[0] >= 8:
            merged.append(rest)
            rest = (0.0, 0)
    if merged:
        merged[-1] = (merged[-1][0] + rest[0], merged[-1][1] + rest[1])
    if len(merged) < 2:
        return 1.0
    shares, seen = zip(*merged, strict=True)
    return float(stats.chisquare(seen, np.array(shares) * sum(seen) / sum(shares)).pvalue)


@cache
def legal_after(constraint: Constraint | None, output: Ids) -> tuple[bool, ...]:
    """Which of the six tokens may follow; none at the end."""
    matcher = FreeMatcher(SIX) if constraint is None else constraint.matcher(SIX)[0]
    matcher.commit(output)
    if matcher.ended:
        return (False,) * V
    return tuple(unpack_mask(torch.from_numpy(matcher.mask()), V).tolist())


def reference(logits: Sequence[float], legal: Sequence[bool], params: SamplingParams) -> np.ndarray:
    """Mask, temperature, top-k, top-p, min-p in float64, written token by token."""
    scores = {v: float(x) for v, (x, good) in enumerate(zip(logits, legal, strict=True)) if good}
    best = max(scores, key=lambda v: scores[v])
    if params.greedy:
        weights = {best: 1.0}
    else:
        weights = {v: np.exp((x - scores[best]) / params.temperature) for v, x in scores.items()}
    ranked = sorted(weights, key=lambda v: -weights[v])
    if params.top_k:
        ranked = ranked[: params.top_k]
    total, kept, covered = sum(weights[v] for v in ranked), [], 0.0
    for v in ranked:
        if covered >= params.top_p:
            break
        kept.append(v)
        covered += weights[v] / total
    row = np.zeros(len(logits))
    for v in kept:
        if weights[v] >= params.min_p * weights[best]:
            row[v] = weights[v]
    return row / row.sum()


def autoregressive(
    logits: Logits, constraint: Constraint | None, params: SamplingParams, budget: int
) -> Distribution:
    """The promise: every complete output with its probability under masked sampling.

    A dead end counts as an outcome, as `decoded` counts errors.
    """
    found: Distribution = {}

    def visit(output: Ids, weight: float) -> None:
        if len(output) == budget:
            found[output] = weight
            return
        try:
            legal = legal_after(constraint, output)
        except DeadEndError:
            found["DeadEndError"] = found.get("DeadEndError", 0.0) + weight
            return
        if not any(legal):
            found[output] = weight
            return
        row = reference(logits((*PROMPT, *output)), legal, params)
        for v in np.flatnonzero(row):
            visit((*output, int(v)), weight * row[v])

    visit((), 1.0)
    return found


@contextmanager
def oracle_draws(pick: Pick) -> Iterator[None]:
    """The round's coins and residual draws come from the oracle."""
    with (
        patch("xpress_struct.decoding.loop.uniform", lambda *place: Coin(pick)),
        patch("xpress_struct.decoding.rows.draw", lambda weights, *place: pick(weights.tolist())),
    ):
        yield


def decoded(
    logits: Logits,
    constraint: Constraint | None,
    guess: Guess,
    *,
    rule: str,
    params: SamplingParams,
    budget: int,
    block: int,
    resumes: bool = False,
    errors: bool = False,
) -> dict[Hashable, float]:
    """The exact distribution of what the whole decoder puts out.

    Args:
        errors: count an exception as an outcome (for rounds that are broken on purpose).
    """
    model = stub_model(logits, SIX)

    def program(pick: Pick) -> Hashable:
        drafter = ScriptedDrafter(lambda output: guess(output, pick), resumes)
        try:
            with oracle_draws(pick):
                return generate(model, constraint, drafter, rule, params, budget, block)
        except Exception as error:
            if not errors:
                raise
            return type(error).__name__

    return outcomes(program)


def generate(
    model: xs.Model,
    constraint: Constraint | None,
    drafter: object,
    rule: str,
    params: SamplingParams,
    budget: int,
    block: int,
    seed: int = 0,
) -> Ids:
    """Output ids of one generation."""
    return model.generate(
        PROMPT,
        constraint,
        drafter=drafter,
        acceptance=rule,
        temperature=params.temperature,
        top_k=params.top_k,
        top_p=params.top_p,
        min_p=params.min_p,
        max_new_tokens=budget,
        block_length=block,
        seed=seed,
    ).token_ids


def one_hot_rows(tokens: Iterable[int]) -> torch.Tensor:
    return torch.nn.functional.one_hot(torch.tensor(list(tokens)), V).double()
