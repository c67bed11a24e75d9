"""The experiment: every pair, block length and way of refining, measured on tables and predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xpress_struct.errors import ArgumentError
from xpress_struct.lab.simulate.costs import CPU, GPU, RoundCosts
from xpress_struct.lab.simulate.predict import (
    best_length,
    break_even_acceptance,
    coupled_bound,
    expected_tokens,
    mean_acceptance,
    tokens_from_curve,
)
from xpress_struct.lab.simulate.rounds import Measured, Variant, run_rounds
from xpress_struct.lab.simulate.tables import Recipe, Tables
from xpress_struct.sampling import Rule

__all__ = ["Experiment", "Outcome", "Speed", "simulate"]


@dataclass(frozen=True)
class Experiment:
    """What to run.

    Attributes:
        recipe: of the tables; its divergence is replaced by each of `divergences`.
        block_lengths: K.
        divergences: total variation between the two models.
        passes: parallel passes, a way of refining each, beside none and sequential.
        rules: of acceptance.
        rounds: measured for each row; as many again, from other seeds, give the acceptance curve.
        costs: of a round; speed is told for each.
        seed: of the draws.

    Raises:
        ArgumentError: a value is outside its range.
    """

    recipe: Recipe = field(default_factory=Recipe)
    block_lengths: Sequence[int] = (8, 16)
    divergences: Sequence[float] = (0.05, 0.1, 0.3)
    passes: Sequence[int] = (1, 2, 4)
    rules: Sequence[Rule] = ("coupled",)
    rounds: int = 200
    costs: Sequence[RoundCosts] = (CPU, GPU)
    seed: int = 0

    def __post_init__(self) -> None:
        checks = (
            ("block_lengths", all(1 <= length <= 64 for length in self.block_lengths), "each 1 to 64"),
            ("passes", all(each >= 1 for each in self.passes), "each 1 or more"),
            ("rules", set(self.rules) <= {"coupled", "token", "block"}, "coupled, token or block"),
            ("rounds", self.rounds >= 10, "10 or more"),
            ("costs", bool(self.costs), "one or more"),
        )
        for name, good, wanted in checks:
            if not good:
                raise ArgumentError(f"{name}={getattr(self, name)!r}: it must be {wanted}.")

    @property
    def variants(self) -> list[Variant]:
        """The ways of refining, side by side."""
        parallel = [Variant(f"parallel-{passes}", "parallel", passes) for passes in self.passes]
        return [Variant("none", "none"), Variant("sequential", "sequential"), *parallel]

    @property
    def size(self) -> int:
        """Rows of the table."""
        return len(self.rules) * len(self.divergences) * len(self.block_lengths) * len(self.variants)


@dataclass(frozen=True, slots=True)
class Speed:
    """What a row is worth at given costs.

    Attributes:
        measured: speed against decoding without a drafter, from the rounds that were run.
        predicted: the same from the tokens that the published formula predicts.
        ratio: c, cost of drafting and of scoring the guesses by guess, in forwards over one token: the
            speed-up formula's (1 - a^(K+1)) / ((1 - a) (K c + 1)).
        least_acceptance: below it, this block length does not pay; None when no acceptance would do.
        best_length: the block length of the best speed on the measured curve, up to K; 0 when none pays.
        longest_paying: the longest block that still pays; 0 when none does.
    """

    measured: float
    predicted: float
    ratio: float
    least_acceptance: float | None
    best_length: int
    longest_paying: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row.

    Attributes:
        divergence: set, between the models.
        distance: total variation between the rows that a draft met and what it was drawn from.
        acceptance: a, guesses that stood by guesses that were reached, from the curve.
        curve: k -> probability that slot k stands where those before it do.
        tokens: measured, by round, forced ones counted.
        error: how far the measured number may be off by chance (one standard error).
        formula: tokens by round after Leviathan et al. (2023), from `acceptance`.
        from_curve: tokens by round from the curve's products.
        bound: tokens by round that shared noise gives at least for the distances met, (1 - TV) / (1 + TV)
            a slot; None under other rules and where nothing is drawn.
        speeds: by name of the costs.
    """

    rule: Rule
    temperature: float
    divergence: float
    length: int
    variant: str
    passes: float
    distance: float
    acceptance: float
    curve: tuple[float, ...]
    tokens: float
    error: float
    formula: float
    from_curve: float
    bound: float | None
    speeds: dict[str, Speed]


def simulate(experiment: Experiment, done: Callable[[], Any] = lambda: None) -> list[Outcome]:
    """Runs the experiment.

    Args:
        done: called after each row.
    """
    outcomes = []
    for outcome in _outcomes(experiment):
        outcomes.append(outcome)
        done()
    return outcomes


def _outcomes(experiment: Experiment) -> Iterator[Outcome]:
    for divergence in experiment.divergences:
        tables = Tables(replace(experiment.recipe, divergence=divergence))
        for rule in experiment.rules:
            for length in experiment.block_lengths:
                for variant in experiment.variants:
                    yield _outcome(experiment, tables, rule, length, variant)


def _outcome(experiment: Experiment, tables: Tables, rule: Rule, length: int, variant: Variant) -> Outcome:
    rounds, seed = experiment.rounds, 2 * experiment.seed
    pilot = run_rounds(tables, rule, length, variant, rounds, seed + 1)
    measured = run_rounds(tables, rule, length, variant, rounds, seed)
    curve = pilot.curve
    acceptance = mean_acceptance(curve)
    # What the grammar forces in front of a round comes free.
    free = pilot.forced / pilot.rounds
    formula = free + expected_tokens(acceptance, length)
    drawn = rule == "coupled" and tables.recipe.temperature > 0
    return Outcome(
        rule=rule,
        temperature=tables.recipe.temperature,
        divergence=tables.recipe.divergence,
        length=length,
        variant=variant.name,
        passes=measured.passes / measured.rounds,
        distance=measured.mean_distance,
        acceptance=acceptance,
        curve=tuple(curve),
        tokens=measured.tokens_per_round,
        error=measured.standard_error,
        formula=formula,
        from_curve=free + tokens_from_curve(curve),
        bound=free + tokens_from_curve([coupled_bound(each) for each in pilot.distances]) if drawn else None,
        speeds={costs.name: _speed(costs, measured, curve, formula) for costs in experiment.costs},
    )


def _speed(costs: RoundCosts, measured: Measured, curve: Sequence[float], formula: float) -> Speed:
    length, passes = measured.length, measured.passes / measured.rounds
    plain, whole = costs.plain_per_token(measured), costs.round(length, passes)
    best, longest = best_length(curve, lambda guesses: costs.round(guesses, passes))
    return Speed(
        measured=plain / costs.per_token(measured),
        predicted=formula * plain / whole,
        ratio=(whole / costs.forward(1) - 1) / length,
        least_acceptance=break_even_acceptance(length, whole / plain),
        best_length=best,
        longest_paying=longest,
    )
