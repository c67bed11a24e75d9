"""Sampled outputs: short ones against the enumerated distribution, long ones against plain decoding."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import cast

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.matcher import FreeMatcher
from xpress_struct.lab.check.decoders import Ask, Decode
from xpress_struct.lab.check.recall import RecallingTarget
from xpress_struct.lab.check.report import Section, Verdict
from xpress_struct.lab.check.statistics import chi_square, permutation_test
from xpress_struct.lab.check.tree import Tree
from xpress_struct.model import Model
from xpress_struct.sampling import SamplingParams
from xpress_struct.target.target import Target

__all__ = ["Draws", "check_long", "check_short", "recalling", "sample", "short_tree"]

# Fewer outputs say nothing.
_FEWEST_SHORT = 40


class Draws:
    """How much may be drawn: seeds from a start on, until a number or a moment is reached.

    Args:
        most: outputs at most.
        until: a moment on `time.perf_counter`.
        seed: the first seed.
    """

    def __init__(self, most: int, until: float, seed: int) -> None:
        self._most, self._until, self._seed = most, until, seed

    def seeds(self) -> Iterator[int]:
        """The seeds. How many there are depends on the time alone, never on what was drawn."""
        for number in count():
            if number == self._most or (number and time.perf_counter() > self._until):
                return
            yield self._seed + number


def recalling(model: Model) -> Model:
    """The same model over a target that remembers."""
    return Model(
        cast(Target, RecallingTarget(model.target)), model.tokenizer, model.vocabulary, model.drafter
    )


def short_tree(
    model: Model,
    prompt: Sequence[int],
    constraint: Constraint | None,
    temperature: float,
    horizon: int,
    nodes: int,
) -> Tree:
    """The distribution that short outputs must have."""
    vocabulary = model.vocabulary
    matcher = FreeMatcher(vocabulary) if constraint is None else constraint.matcher(vocabulary)[0]
    return Tree(model.target, prompt, matcher, SamplingParams(temperature), horizon, nodes)


def sample(
    model: Model, decode: Decode, prompt: Sequence[int], constraint: Constraint | None, ask: Ask, draws: Draws
) -> list[Sequence[int]]:
    """Outputs from seeds of their own; the seed of `ask` is replaced."""
    return [decode(model, prompt, constraint, replace(ask, seed=seed)) for seed in draws.seeds()]


def check_short(
    model: Model,
    decode: Decode,
    prompt: Sequence[int],
    constraint: Constraint | None,
    tree: Tree,
    ask: Ask,
    draws: Draws,
    level: float,
    name: str,
) -> Section:
    """Chi-square of sampled outputs against the enumerated distribution.

    Args:
        model: with a target that remembers.
        ask: its seed is replaced.
        level: p-value below which it fails.
    """
    outputs = sample(model, decode, prompt, constraint, ask, draws)
    counts: Counter[Hashable] = Counter(tree.outcome(output) for output in outputs)
    total = counts.total()
    found = chi_square(counts, tree.outcomes, level)
    detail = f"chi-square over {found.cells} cells of {total} outputs; TV seen {found.distance:.3f}"
    if found.p_value < level:
        return Section(name, "fail", found.statistic, found.p_value, found.smallest, detail)
    verdict: Verdict = "pass" if total >= _FEWEST_SHORT and found.cells > 1 else "inconclusive"
    return Section(name, verdict, found.statistic, found.p_value, found.smallest, detail)


def check_long(
    mine: Sequence[Sequence[int]], theirs: Sequence[Sequence[int]], level: float, name: str
) -> Section:
    """N-gram total variation of outputs with and without speculation.

    Args:
        mine, theirs: with, and without.
        level: p-value below which it fails.
    """
    found = permutation_test(mine, theirs, level)
    detail = f"TV of 1- and 2-grams, {len(mine)} outputs with and {len(theirs)} without; fails above "
    detail += f"{found.critical:.3f}"
    # The least p-value there can be: one division of all outputs.
    possible = 2 / math.comb(len(mine) + len(theirs), len(mine)) <= level
    verdict: Verdict = "inconclusive" if not possible else "fail" if found.p_value < level else "pass"
    bound = max(0.0, found.critical - found.middle)
    return Section(name, verdict, found.distance, found.p_value, bound, detail)
