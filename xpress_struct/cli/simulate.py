"""`xpress-struct simulate`: speculative decoding on random tables, against what theory predicts."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from xpress_struct.errors import ArgumentError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from xpress_struct.lab.simulate import RoundCosts

__all__ = ["add_simulate"]

T = TypeVar("T", int, float)


def add_simulate(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = commands.add_parser("simulate", help="predict and measure tokens per round without a model")
    parser.set_defaults(run=_run)
    parser.add_argument("--block-lengths", default="8,16", metavar="K,K", help="guesses of a round")
    parser.add_argument("--divergence", default="0.05,0.1,0.3", metavar="TV,TV", help="of drafter and target")
    parser.add_argument("--passes", default="1,2,4", metavar="R,R", help="parallel refinement passes")
    parser.add_argument("--rule", default="coupled", metavar="RULE,RULE", help="coupled, token, block")
    parser.add_argument("--rounds", type=int, default=300, metavar="N", help="of each row, twice")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    tables = parser.add_argument_group("tables")
    tables.add_argument("--vocabulary", type=int, default=128, metavar="V")
    tables.add_argument("--temperature", type=float, default=1.0, metavar="T")
    tables.add_argument(
        "--dependence",
        type=float,
        default=0.4,
        metavar="X",
        help="what the token to the left decides, 0 to 1",
    )
    tables.add_argument(
        "--fidelity", type=float, default=1.0, metavar="X", help="what refinement knows of it, 0 to 1"
    )
    tables.add_argument(
        "--illegal", type=float, default=0.0, metavar="X", help="share of tokens a grammar bars"
    )
    tables.add_argument("--forced", type=float, default=0.0, metavar="X", help="share of contexts it decides")
    costs = parser.add_argument_group("costs")
    costs.add_argument(
        "--costs",
        metavar="FILE|cpu|gpu",
        help="of a round; default: cpu (the embedded model), and what if gpu",
    )
    costs.add_argument(
        "--measure", metavar="M", help="measure them with this model ('embedded' for the embedded)"
    )
    costs.add_argument("--drafter", default="lookup", metavar="D", help="with --measure: its drafter")
    costs.add_argument("--draft-ms", type=float, metavar="MS", help="of the drafter's forward over a block")
    costs.add_argument("--pass-ms", type=float, metavar="MS", help="of a refinement pass")
    parser.add_argument("--json", metavar="FILE", help="write every row there")


def _run(given: argparse.Namespace) -> None:
    from tqdm import tqdm

    from xpress_struct.lab.simulate import Experiment, Recipe, as_data, as_text, simulate

    experiment = Experiment(
        recipe=Recipe(
            vocabulary=given.vocabulary,
            temperature=given.temperature,
            dependence=given.dependence,
            fidelity=given.fidelity,
            illegal=given.illegal,
            forced=given.forced,
            seed=given.seed,
        ),
        block_lengths=_numbers("--block-lengths", given.block_lengths, int),
        divergences=_numbers("--divergence", given.divergence, float),
        passes=_numbers("--passes", given.passes, int),
        rules=given.rule.split(","),
        rounds=given.rounds,
        costs=_costs(given),
        seed=given.seed,
    )
    with tqdm(total=experiment.size, desc="rows", file=sys.stderr) as bar:
        outcomes = simulate(experiment, bar.update)
    print(as_text(experiment, outcomes))
    found = as_data(experiment, outcomes)
    print("RESULT " + json.dumps({name: found[name] for name in ("rounds", "seed", "worst_error")}))
    if given.json:
        try:
            Path(given.json).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise ArgumentError(f"--json {given.json!r}: {error}") from None


def _costs(given: argparse.Namespace) -> list[RoundCosts]:
    from xpress_struct.lab.simulate import GPU, measure_costs, read_costs, replaced

    if given.measure is not None and given.costs is not None:
        raise ArgumentError("Give --costs or --measure, not both.")
    if given.measure is not None:
        from xpress_struct.api import load

        model = load(None if given.measure == "embedded" else given.measure, drafter=given.drafter)
        return [replaced(measure_costs(model), given.draft_ms, given.pass_ms)]
    if given.costs is not None:
        return [replaced(read_costs(given.costs), given.draft_ms, given.pass_ms)]
    # The flags are milliseconds; what is said of a GPU is in forwards.
    return [replaced(read_costs("cpu"), given.draft_ms, given.pass_ms), GPU]


def _numbers(name: str, text: str, kind: type[T]) -> list[T]:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise ArgumentError(f"{name} {text!r}: numbers with commas between them.") from None
