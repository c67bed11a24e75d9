"""The table of an experiment, and its figures as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from xpress_struct.lab.simulate.costs import RoundCosts
from xpress_struct.lab.simulate.run import Experiment, Outcome

__all__ = ["as_data", "as_text"]

_COLUMNS = ["rule", "TV", "K", "refine", "passes", "accept", "tok/round", "+-", "formula", "curve", "bound"]
_BY_COSTS = ["speed", "predicted", "needs", "best K", "pays to"]


def as_text(experiment: Experiment, outcomes: Sequence[Outcome]) -> str:
    """The table, with the costs and the meaning of its columns above it."""
    names = [costs.name for costs in experiment.costs]
    rows = [[*_COLUMNS, *(f"{name}: {column}" for name in names for column in _BY_COSTS)]]
    for outcome in outcomes:
        cells = [outcome.rule, f"{outcome.divergence:g}", str(outcome.length), outcome.variant]
        numbers = [outcome.passes, outcome.acceptance, outcome.tokens, outcome.error]
        cells += [f"{number:.2f}" for number in [*numbers, outcome.formula, outcome.from_curve]]
        cells.append("-" if outcome.bound is None else f"{outcome.bound:.2f}")
        for name in names:
            speed = outcome.speeds[name]
            cells += [f"{speed.measured:.2f}", f"{speed.predicted:.2f}"]
            cells.append("never" if speed.least_acceptance is None else f"{speed.least_acceptance:.2f}")
            cells += [str(speed.best_length or "-"), str(speed.longest_paying or "-")]
        rows.append(cells)
    recipe = experiment.recipe
    head = [
        f"tables of {recipe.vocabulary} tokens, temperature {recipe.temperature:g}, seed {experiment.seed}; "
        f"{experiment.rounds} rounds a row",
        *(_costs_line(costs) for costs in experiment.costs),
        "accept: probability that a reached guess stands. formula: (1 - a^(K+1)) / (1 - a). curve: products",
        "of the acceptance by slot, from other rounds. bound: at least so many, by (1 - TV) / (1 + TV).",
        "speed: against no drafter. needs: acceptance at which K pays. best K, pays to: by the curve.",
    ]
    return "\n".join([*head, "", *_aligned(rows), "", _errors_line(outcomes)])


def as_data(experiment: Experiment, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Everything in the table, for JSON."""
    return {
        "recipe": asdict(experiment.recipe),
        "rounds": experiment.rounds,
        "seed": experiment.seed,
        "costs": [asdict(costs) for costs in experiment.costs],
        "worst_error": {name: _worst(outcomes, name) for name in ("formula", "from_curve")},
        "rows": [asdict(outcome) for outcome in outcomes],
    }


def _costs_line(costs: RoundCosts) -> str:
    forwards = ", ".join(f"{tokens}: {costs.score[tokens]:g}" for tokens in sorted(costs.score))
    return (
        f"costs {costs.name}: forward by tokens {forwards}; draft {costs.draft:.3g}, pass {costs.refine:.3g}"
    )


def _errors_line(outcomes: Sequence[Outcome]) -> str:
    formula, curve = _worst(outcomes, "formula"), _worst(outcomes, "from_curve")
    return f"tokens by round, largest error of the formula: {formula:.1%}, of the curve: {curve:.1%}"


def _worst(outcomes: Sequence[Outcome], name: str) -> float:
    return max(abs(float(getattr(outcome, name)) / outcome.tokens - 1) for outcome in outcomes)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(w) if i in (0, 3) else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines
