"""Rounds of speculative decoding over tables: the library's refinement and acceptance, real; costs apart."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from xpress_struct.decoding.acceptance import Accepted, accept_block, accept_coupled, accept_token_level
from xpress_struct.drafting.control import Refine
from xpress_struct.drafting.refinement import Plan, Refined, refine
from xpress_struct.lab.simulate.grammar import TableMatcher
from xpress_struct.lab.simulate.predict import coupled_match
from xpress_struct.lab.simulate.tables import Tables
from xpress_struct.sampling import (
    COIN,
    Noise,
    NoiseKey,
    Rule,
    SamplingParams,
    draw,
    probabilities,
    process,
    uniform,
)

__all__ = ["Measured", "Variant", "run_rounds"]


class Variant(NamedTuple):
    """A way of refining: its name in the table, the kind, and parallel passes at most."""

    name: str
    kind: Refine
    passes: int = 1


@dataclass
class Measured:
    """Sums over rounds.

    Attributes:
        length: K.
        tokens, squares: emitted by round, forced ones counted: sum, and sum of squares.
        only: of these, the ones that a grammar leaves no choice about.
        forced: of these, the ones committed in front of a round, which cost no guess.
        accepted: draft tokens that stood.
        passes: calls of the head.
        sizes: tokens scored by a forward -> how often.
        standing: k -> rounds in which slots 0 .. k stood.
        expected: the same before the coin of slot k is thrown, as the distributions say it: less noise.
        whole_blocks: `expected` counts every round, not only those whose slots before k stood (block rule).
        distance, reached: k -> sum of total variation between the target's and the drafter's row, and rounds,
            where the slots before k stood.
    """

    length: int
    whole_blocks: bool = False
    rounds: int = 0
    tokens: int = 0
    squares: int = 0
    only: int = 0
    forced: int = 0
    accepted: int = 0
    passes: int = 0
    sizes: Counter[int] = field(default_factory=Counter)
    standing: list[int] = field(default_factory=list)
    expected: list[float] = field(default_factory=list)
    distance: list[float] = field(default_factory=list)
    reached: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.standing, self.reached = [0] * self.length, [0] * self.length
        self.expected, self.distance = [0.0] * self.length, [0.0] * self.length

    @property
    def tokens_per_round(self) -> float:
        """Emitted tokens by target forward."""
        return self.tokens / self.rounds

    @property
    def standard_error(self) -> float:
        """Of `tokens_per_round`, as if rounds were independent."""
        mean = self.tokens_per_round
        return math.sqrt(max(0.0, self.squares / self.rounds - mean**2) / self.rounds)

    @property
    def curve(self) -> list[float]:
        """k -> probability that slot k stands where those before it do, from the distributions."""
        if self.whole_blocks:
            before = [float(self.rounds), *self.expected[:-1]]
        else:
            before = [float(count) for count in self.reached]
        return [each / front if front else 0.0 for each, front in zip(self.expected, before, strict=True)]

    @property
    def distances(self) -> list[float]:
        """k -> mean total variation at slot k; 1 where it was never reached."""
        pairs = zip(self.distance, self.reached, strict=True)
        return [total / count if count else 1.0 for total, count in pairs]

    @property
    def mean_distance(self) -> float:
        """Mean total variation over the slots that were reached."""
        return sum(self.distance) / max(1, sum(self.reached))


def run_rounds(tables: Tables, rule: Rule, length: int, variant: Variant, rounds: int, seed: int) -> Measured:
    """Decodes for so many rounds.

    Args:
        length: K, slots of a block.
        seed: of the noise and the coins.
    """
    text = _Text(tables, rule, length, variant, seed)
    for _ in range(rounds):
        text.round()
    return text.measured


class _Text:
    """A text under way: the round of `decoding.loop`, with tables for models."""

    def __init__(self, tables: Tables, rule: Rule, length: int, variant: Variant, seed: int) -> None:
        self._tables, self._rule, self._length, self._variant = tables, rule, length, variant
        self._params = SamplingParams(1.0 if tables.recipe.temperature else 0.0)
        self._key = NoiseKey(seed)
        self._width = tables.recipe.vocabulary
        self._noise = Noise(self._key, self._width)
        self._place, self._left = 0, 0
        self.measured = Measured(length, whole_blocks=rule == "block")

    def round(self) -> None:
        """forced -> propose and walk -> score -> accept -> commit."""
        sums, pending = self.measured, 1
        before = sums.tokens
        while forced := self._matcher().forced():
            self._emit(forced)
            pending += len(forced)
            sums.forced += len(forced)
        if self._rule == "coupled":
            self._noise.forget(self._place)
        else:
            self._noise = Noise(self._key.fresh(self._place), self._width)
        draft = self._draft()
        accepted = self._accept(draft)
        sums.rounds += 1
        sums.accepted += accepted.count
        sums.passes += draft.passes
        sums.sizes[pending + len(draft.tokens)] += 1
        self._note(draft, accepted.count)
        self._emit([*draft.tokens[: accepted.count], accepted.token])
        sums.squares += (sums.tokens - before) ** 2

    def _matcher(self) -> TableMatcher:
        return TableMatcher(self._tables.masks, self._place, self._left)

    def _emit(self, tokens: list[int]) -> None:
        for token in tokens:
            self.measured.tokens += 1
            self.measured.only += self._tables.masks.only(self._place, self._left) is not None
            self._place, self._left = self._place + 1, token

    def _draft(self) -> Refined:
        base = self._tables.base(self._place, self._left, self._length)
        kind = self._variant.kind
        bias = None if kind == "none" else self._tables.bias(base, self._place, self._left)
        # As the library drafts: slots that do not know each other's draws do not draw, but where they share
        # the target's noise.
        random = not self._params.greedy and (kind != "none" or self._rule == "coupled")
        noise = self._noise.rows(self._place, self._length) if random else None
        plan = Plan(kind, self._variant.passes, 1.0 if random else 0.0)
        return refine(
            base, bias, self._matcher(), noise, plan, self._params, width=self._width, wants_q=random
        )

    def _accept(self, draft: Refined) -> Accepted:
        tokens, q, key, place = draft.tokens, draft.q, self._noise.key, self._place
        if self._rule == "coupled":
            return accept_coupled(tokens, lambda slot: self._choice(tokens, slot))
        rule = accept_token_level if self._rule == "token" else accept_block
        return rule(
            tokens,
            None if q is None else list(q),
            lambda slot: self._p(tokens, slot),
            lambda slot: uniform(key, place + slot, COIN),
            lambda weights, slot: draw(weights, key, place + slot),
        )

    def _scores(self, draft: list[int], slot: int) -> Tensor:
        """The target's masked scores [V] of a slot."""
        place, left = self._place + slot, draft[slot - 1] if slot else self._left
        mask = None
        kind = place % self._tables.kinds
        if self._tables.legal is not None:
            mask = self._tables.legal[kind, left]
        return process(self._tables.target[kind, left], mask, self._params)

    def _choice(self, draft: list[int], slot: int) -> int:
        scores = self._scores(draft, slot)
        if not self._params.greedy:
            scores = scores + self._noise.rows(self._place + slot, 1)[0]
        return int(scores.argmax())

    def _p(self, draft: list[int], slot: int) -> Tensor:
        scores = self._scores(draft, slot)
        if self._params.greedy:
            return torch.nn.functional.one_hot(scores.argmax(), self._width).double()
        return probabilities(scores)

    def _note(self, draft: Refined, accepted: int) -> None:
        """How likely it was that slots stand, and whether they did."""
        sums, carried = self.measured, 1.0
        for slot, token in enumerate(draft.tokens):
            p = self._p(draft.tokens, slot)
            q = (
                torch.nn.functional.one_hot(torch.tensor(token), self._width)
                if draft.q is None
                else draft.q[slot]
            )
            if slot <= accepted:
                overlap = float(torch.minimum(p, q).sum())
                sums.reached[slot] += 1
                sums.distance[slot] += 1 - overlap
                sums.standing[slot] += slot < accepted
                if self._rule != "block":
                    sums.expected[slot] += overlap if self._rule == "token" else coupled_match(p, q.double())
            if self._rule == "block":
                # Prefix k stands with probability P_k (arXiv 2403.10444).
                carried = min(1.0, carried * float(p[token] / q[token]))
                sums.expected[slot] += carried
