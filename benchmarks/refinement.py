"""What refinement is worth: the ways of refining a block, side by side, under every acceptance rule.

    python -m benchmarks.refinement

A small target and its drafter are trained on the spot (see benchmarks/pair.py), or read from the cache. Every
prompt goes through every row; the coupled rule must give the ids of decoding without a drafter, or the run
fails. Prints a table and ends with one line `RESULT {json}`.

All columns but the last are means by round, that is by target forward, the one over the prompt included:
emitted tokens; those that the grammar did not force; accepted guesses; passes of the head; slots where the
last pass's winner was illegal; milliseconds of backbone, refinement, target and of everything. The target is
so small that its forward costs no more than the drafter's: the times compare variants, they are no speed-ups.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from tqdm import tqdm

import xpress_struct as xs
from benchmarks.pair import Recipe, load_pair
from benchmarks.synthetic import SCHEMAS, prompts

__all__ = ["RULES", "VARIANTS", "Figures", "main"]

# Rows of the table by acceptance rule and temperature.
RULES: dict[str, dict[str, Any]] = {
    "greedy": {"acceptance": "coupled", "temperature": 0.0},
    "coupled": {"acceptance": "coupled", "temperature": 0.7},
    "token": {"acceptance": "token", "temperature": 0.7},
    "block": {"acceptance": "block", "temperature": 0.7},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "none": {"refine": "none"},
    "sequential": {"refine": "sequential"},
    "parallel-1": {"refine": "parallel", "refine_passes": 1},
    "parallel-2": {"refine": "parallel", "refine_passes": 2},
    "parallel-4": {"refine": "parallel", "refine_passes": 4},
    "parallel-auto": {"refine": "parallel", "refine_passes": "auto"},
    "low-confidence": {"refine": "low-confidence", "refine_passes": 4},
    "chunked": {"refine": "chunked", "refine_passes": 4},
}
NO_DRAFTER = "no drafter"
# Tokens of an answer at most; the documents have about 100.
_LONGEST = 200

Row = tuple[str, int, str]
"""Rule, K, variant."""


@dataclass
class Figures:
    """Sums over the generations of one row of the table."""

    stats: list[xs.Stats] = field(default_factory=list)

    def per_round(self, name: str) -> float:
        """A statistic by target forward, the one over the prompt included."""
        return self._sum(name) / self._sum("forwards")

    @property
    def tokens_per_round(self) -> float:
        return self.per_round("output_tokens")

    def cells(self) -> list[str]:
        """What the table shows, in the order of `COLUMNS`."""
        repairs = sum(sum(stats.repairs_by_slot) for stats in self.stats) / self._sum("forwards")
        counts = [
            self.tokens_per_round,
            self.tokens_per_round - self.per_round("forced"),
            self.per_round("accepted"),
            self.per_round("refine_passes"),
            repairs,
        ]
        seconds = [self.per_round(name) for name in ("draft_s", "refine_s", "score_s", "total_s")]
        per_token = self._sum("total_s") / self._sum("output_tokens")
        return [f"{each:.2f}" for each in counts + [1e3 * each for each in [*seconds, per_token]]]

    def _sum(self, name: str) -> float:
        return float(sum(getattr(stats, name) for stats in self.stats))


COLUMNS = [
    "tok/round",
    "drawn/round",
    "accepted",
    "passes",
    "repairs",
    "draft ms",
    "refine ms",
    "score ms",
    "round ms",
    "ms/token",
]


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.refinement", description=__doc__.split("\n\n")[0])
    parser.add_argument("--limit", type=int, default=8, help="prompts")
    parser.add_argument("--lengths", default="4,8,16,32", help="K, guesses per round: comma-separated")
    parser.add_argument("--rules", default=",".join(RULES), help="comma-separated names")
    parser.add_argument("--seed", type=int, default=0, help="of the prompts and the draws")
    parser.add_argument("--fresh", action="store_true", help="train the pair again")
    options = parser.parse_args(given)
    options.rules = options.rules.split(",")
    if unknown := set(options.rules) - set(RULES):
        parser.error(f"unknown rules {sorted(unknown)}; known: {', '.join(RULES)}")
    try:
        options.lengths = [int(length) for length in options.lengths.split(",")]
    except ValueError:
        parser.error(f"--lengths {options.lengths}: whole numbers, please")
    return options


def run_all(model: xs.Model, options: argparse.Namespace) -> dict[Row, Figures]:
    """Every prompt through every row of the table.

    Raises:
        AssertionError: the coupled rule gave other ids than decoding without a drafter.
    """
    constraints = {kind: xs.json_schema(schema) for kind, schema in SCHEMAS.items()}
    chosen = random.Random(options.seed).sample(prompts(), min(options.limit, len(prompts())))
    figures: dict[Row, Figures] = {}
    total = len(chosen) * len(options.rules) * (1 + len(options.lengths) * len(VARIANTS))
    with tqdm(total=total, desc="runs", file=sys.stderr) as bar:
        # The first prompt goes through twice: once to warm up.
        for place, (kind, prompt) in enumerate([chosen[0], *chosen]):
            for rule in options.rules:
                ask = RULES[rule] | {"seed": options.seed + place, "max_new_tokens": _LONGEST, "guard": False}
                ids = list(prompt.encode())
                plain = model.generate(ids, constraints[kind], drafter=None, **ask)
                runs = [((rule, 0, NO_DRAFTER), plain)]
                for (length, name), variant in _variants(options.lengths if place else [4]):
                    out = model.generate(ids, constraints[kind], block_length=length, **ask, **variant)
                    if ask["acceptance"] == "coupled" and out.token_ids != plain.token_ids:
                        raise AssertionError(f"{rule}, K={length}, {name}: {out.text!r}, not {plain.text!r}")
                    runs.append(((rule, length, name), out))
                if place == 0:
                    continue
                for row, out in runs:
                    figures.setdefault(row, Figures()).stats.append(out.stats)
                bar.update(len(runs))
    return figures


def _variants(lengths: list[int]) -> Iterator[tuple[tuple[int, str], dict[str, Any]]]:
    return (((length, name), variant) for length in lengths for name, variant in VARIANTS.items())


def report(options: argparse.Namespace, figures: dict[Row, Figures]) -> None:
    """The table, rows of one rule and K together, and the RESULT line."""
    lines = [["rule", "T", "K", "variant", *COLUMNS]]
    for rule in options.rules:
        for length in [0, *options.lengths]:
            for (of_rule, of_length, name), sums in figures.items():
                if (of_rule, of_length) == (rule, length):
                    how = RULES[rule]
                    lines.append(
                        [how["acceptance"], f"{how['temperature']}", f"{length}", name, *sums.cells()]
                    )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for before, line in zip([lines[0], *lines], lines, strict=False):
        if before[:3] != line[:3]:
            print()
        places = enumerate(zip(line, widths, strict=True))
        cells = [cell.ljust(w) if place in (0, 3) else cell.rjust(w) for place, (cell, w) in places]
        print("  ".join(cells).rstrip())
    print("\nRESULT " + json.dumps(_result(options, figures)))


def _result(options: argparse.Namespace, figures: dict[Row, Figures]) -> dict[str, Any]:
    """Tokens per round of the greedy rows, and what four parallel passes reach of the sequential walk."""
    if "greedy" not in options.rules:
        return {}
    tokens = {
        str(length): {name: round(figures["greedy", length, name].tokens_per_round, 4) for name in VARIANTS}
        for length in options.lengths
    }
    ratios = {length: round(row["parallel-4"] / row["sequential"], 4) for length, row in tokens.items()}
    return {"K": tokens, "parallel_over_sequential": ratios}


def main(given: list[str] | None = None, recipe: Recipe | None = None) -> None:
    options = arguments(given)
    torch.set_num_threads(1)
    model = load_pair(recipe or Recipe(), fresh=options.fresh)
    report(options, run_all(model, options))


if __name__ == "__main__":
    main()
