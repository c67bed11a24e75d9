"""Tokens per forward of the target, by what spares forwards: the grammar, lookup, a trained drafter.

    python -m benchmarks.acceptance --tasks ../shared/data/json_tasks.jsonl --drafter drafter_m/drafter

Prompts are those that training holds out by schema. Files that are not named are looked for beside the tasks
(sql_tasks.jsonl, code_tasks.jsonl, text_prompts.jsonl), else the prompts are made up; extraction always is.
Every document goes through every way before the next one. Under the coupled rule all ways must give the same
ids, or the run fails. Prints tables and ends with one line `RESULT {json}`.

The ways: "none": each token takes a forward, which is 1 by definition. "forced": what the grammar forces
comes free. "lookup": forced, and guesses of lookup. "base", "sequential", "parallel": each forward checks one
drafted block, and nothing else helps: no lookup, and forced tokens are drafted and checked like others (see
benchmarks/unforced.py). "all": forced, lookup and drafter, as the model uses them. The guard is off: it
goes by seconds, which `benchmarks.speed` measures.

The columns: emitted tokens by forward, the one over the prompt included; of these, those that the grammar
left open; the share of tokens that it forced, a property of the texts; guesses that stood by forward.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

import xpress_struct as xs
from benchmarks.held_out import CATEGORIES, MADE_UP, Question, Selection, select
from benchmarks.unforced import UnforcedDrafter, unforced
from xpress_struct.drafting.diffusion import DiffusionDrafter
from xpress_struct.training.collect import forced_places

__all__ = ["RULES", "WAYS", "Row", "main"]

RULES: dict[str, dict[str, Any]] = {
    "greedy": {"acceptance": "coupled", "temperature": 0.0},
    "coupled": {"acceptance": "coupled", "temperature": 0.7},
    "token": {"acceptance": "token", "temperature": 0.7},
    "block": {"acceptance": "block", "temperature": 0.7},
}
WAYS = ("none", "forced", "lookup", "base", "sequential", "parallel", "all")
_ALONE: dict[str, dict[str, Any]] = {
    "base": {"refine": "none"},
    "sequential": {"refine": "sequential"},
    "parallel": {"refine": "parallel", "refine_passes": 4},
}
_TOTAL = "total"
_FILES = {"sql": "sql_tasks.jsonl", "code": "code_tasks.jsonl", "text": "text_prompts.jsonl"}


@dataclass
class Row:
    """One document, by one way.

    Attributes:
        forced: tokens that were the only legal one.
        forwards: of the target, the one over the prompt included.
        accepted: guesses that stood.
    """

    rule: str
    category: str
    way: str
    document: str
    tokens: int
    forced: int
    forwards: int
    accepted: int


class Ways:
    """Decodes a question by every way.

    Args:
        drafter: the trained one; without it, "base", "sequential", "parallel" and "all" are left out.
    """

    def __init__(self, model: xs.Model, drafter: DiffusionDrafter | None, max_new_tokens: int) -> None:
        self.model, self.max_new_tokens = model, max_new_tokens
        self.alone = drafter and UnforcedDrafter(drafter)
        helped = ("forced", "lookup", *_ALONE, "all") if drafter else ("forced", "lookup")
        # Without a drafter a forward gives one token by every rule: it is measured once by temperature.
        self.names = {rule: helped if rule in ("greedy", "coupled") else helped[1:] for rule in RULES}

    def run(self, question: Question, rule: str, way: str, seed: int) -> xs.Generation:
        asked = RULES[rule] | {"seed": seed, "max_new_tokens": self.max_new_tokens, "guard": False}
        if way in _ALONE:
            asked |= {"drafter": self.alone, "block_length": self.alone.longest} | _ALONE[way]
            return self.model.generate(question.prompt, unforced(question.constraint), **asked)
        drafter = {"forced": None, "lookup": "lookup", "all": "model"}[way]
        return self.model.generate(question.prompt, question.constraint, drafter=drafter, **asked)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.acceptance", description=__doc__.split("\n\n")[0])
    parser.add_argument("--tasks", required=True, help="function calls, JSON lines")
    for name, file in _FILES.items():
        parser.add_argument(
            f"--{Path(file).stem.replace('_', '-')}", dest=name, help=f"default: {file} beside"
        )
    parser.add_argument("--model", help="hub id or folder; the embedded model by default")
    parser.add_argument("--drafter", help="a block-diffusion checkpoint; by default the model's own")
    parser.add_argument("--limit", type=int, default=20, help="documents of a category")
    parser.add_argument("--max-new-tokens", type=int, default=128)
    parser.add_argument("--rules", default=",".join(RULES), help="comma-separated names")
    parser.add_argument("--seed", type=int, default=0, help="of the sample and the draws")
    parser.add_argument("--out", help="writes the figures of every document there, as JSON")
    options = parser.parse_args(given)
    options.rules = options.rules.split(",")
    if unknown := set(options.rules) - set(RULES):
        parser.error(f"unknown rules {sorted(unknown)}; known: {', '.join(RULES)}")
    options.json, options.extraction = options.tasks, MADE_UP
    for name, file in _FILES.items():
        beside = Path(options.tasks).with_name(file)
        if getattr(options, name) is None:
            setattr(options, name, str(beside) if beside.is_file() else MADE_UP)
    return options


def diffusion_of(drafter: Any) -> DiffusionDrafter | None:
    """The trained drafter of a model: its own, or one of its several; None without one."""
    members = getattr(drafter, "drafters", (drafter,))
    return next((each for each in members if isinstance(each, DiffusionDrafter)), None)


def run_all(
    ways: Ways, selections: Mapping[str, Selection], rules: Iterable[str], seed: int
) -> tuple[list[Row], list[str], int]:
    """The rows; documents whose ids differ between ways under the coupled rule; how many were compared."""
    rows: list[Row] = []
    differing: list[str] = []
    rules = list(rules)
    questions = [each for selection in selections.values() for each in selection.questions]
    compared = 0
    total = len(questions) * sum(len(ways.names[rule]) for rule in rules)
    with tqdm(total=total, desc="runs", file=sys.stderr) as bar:
        for place, question in enumerate(questions):
            for rule in rules:
                found: dict[tuple[int, ...], list[str]] = {}
                for way in ways.names[rule]:
                    bar.set_postfix_str(f"{question.id} {rule} {way}")
                    out = ways.run(question, rule, way, seed + place)
                    found.setdefault(out.token_ids, []).append(way)
                    rows.append(_row(ways.model, question, rule, way, out))
                    bar.update()
                if RULES[rule]["acceptance"] == "coupled":
                    compared += 1
                    if len(found) > 1:
                        differing.append(f"{question.id}, {rule}: {list(found.values())}")
    return rows, differing, compared


def _row(model: xs.Model, question: Question, rule: str, way: str, out: xs.Generation) -> Row:
    forced = sum(forced_places(model, question.constraint, out.token_ids))
    stats = out.stats
    return Row(
        rule, question.category, way, question.id, len(out.token_ids), forced, stats.forwards, stats.accepted
    )


@dataclass
class Figures:
    """Sums over the documents of one rule, category and way."""

    rows: list[Row]

    def sum(self, name: str) -> int:
        return sum(getattr(row, name) for row in self.rows)

    @property
    def forwards(self) -> int:
        """At least 1: a document that is forced from end to end takes none."""
        return max(1, self.sum("forwards"))

    @property
    def per_forward(self) -> float:
        return self.sum("tokens") / self.forwards

    def cells(self) -> list[str]:
        """What the table shows, in the order of `COLUMNS`."""
        tokens, forced, forwards = self.sum("tokens"), self.sum("forced"), self.forwards
        return [
            f"{len(self.rows)}",
            f"{tokens}",
            f"{self.sum('forwards')}",
            f"{self.per_forward:.2f}",
            f"{(tokens - forced) / forwards:.2f}",
            f"{forced / tokens:.0%}",
            f"{self.sum('accepted') / forwards:.2f}",
        ]


COLUMNS = ["docs", "tokens", "forwards", "tok/forward", "open/forward", "forced share", "accepted/forward"]


def figures_of(rows: Iterable[Row]) -> dict[tuple[str, str, str], Figures]:
    """By rule, category and way; the category "total" has all of them."""
    found: dict[tuple[str, str, str], Figures] = {}
    for row in rows:
        for category in (row.category, _TOTAL):
            found.setdefault((row.rule, category, row.way), Figures([])).rows.append(row)
    return found


def print_table(figures: Mapping[tuple[str, str, str], Figures], rules: Iterable[str]) -> None:
    heads = ["rule", "T", "category", "way", *COLUMNS]
    groups: list[list[list[str]]] = []
    for rule in rules:
        how = [rule, f"{RULES[rule]['temperature']}"]
        for category in (*CATEGORIES, _TOTAL):
            ways = [way for way in WAYS if (rule, category, way) in figures]
            lines = [[*how, category, way, *figures[rule, category, way].cells()] for way in ways]
            # A forward a token: the definition, no measurement.
            none = [*how, category, "none", *("" for _ in range(3)), "1.00", *("" for _ in range(3))]
            groups.append([none, *lines])
    widths = [
        max(map(len, column)) for column in zip(heads, *(line for g in groups for line in g), strict=True)
    ]
    for group in [[heads], *groups]:
        for line in group:
            places = enumerate(zip(line, widths, strict=True))
            print("  ".join(c.ljust(w) if i < 4 else c.rjust(w) for i, (c, w) in places).rstrip())
        print()


def by_category(
    figures: Mapping[tuple[str, str, str], Figures], rule: str
) -> dict[str, dict[str, float | None]]:
    """Tokens per forward; None where a way was not run."""
    return {
        category: {
            way: 1.0 if way == "none" else _rounded(figures.get((rule, category, way))) for way in WAYS
        }
        for category in (*CATEGORIES, _TOTAL)
    }


def _rounded(figures: Figures | None) -> float | None:
    return None if figures is None else round(figures.per_forward, 4)


def print_goals(greedy: Mapping[str, Mapping[str, float | None]]) -> None:
    """What a trained drafter should reach, greedy."""
    total = greedy[_TOTAL]
    goals = [
        ("parallel, json", greedy["json"]["parallel"], 3.0),
        ("parallel, sql", greedy["sql"]["parallel"], 2.0),
        ("parallel, code", greedy["code"]["parallel"], 2.0),
        ("all, json", greedy["json"]["all"], 7.0),
        ("sequential / base, total", _ratio(total["sequential"], total["base"]), 1.1),
        ("parallel / sequential, total", _ratio(total["parallel"], total["sequential"]), 0.97),
    ]
    print("## Goals, greedy\n")
    for name, value, goal in goals:
        said = "not measured" if value is None else f"{value:.3f}, {'reached' if value >= goal else 'missed'}"
        print(f"{name}: {said} (goal {goal})")
    print()


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above and below else None


def main(given: list[str] | None = None) -> None:
    options = arguments(given)
    torch.set_num_threads(1)
    named = [options.drafter, "lookup"] if options.drafter else "auto"
    model = xs.load(options.model, drafter=named)
    selections = {
        name: select(name, getattr(options, name), options.limit, options.seed, model, options.max_new_tokens)
        for name in CATEGORIES
    }
    for name, chosen in selections.items():
        print(
            f"{name}: {len(chosen.questions)} documents from {chosen.source}: of {chosen.prompts} prompts "
            f"{chosen.held_out} are held out, with {chosen.schemas} schemas; {chosen.left_out} left out"
        )
    drafter = diffusion_of(model.drafter)
    print(f"drafter: {getattr(model.drafter, 'name', None)}{'' if drafter else ' (no trained one)'}\n")
    ways = Ways(model, drafter, options.max_new_tokens)
    rows, differing, compared = run_all(ways, selections, options.rules, options.seed)
    figures = figures_of(rows)
    print_table(figures, options.rules)
    print(f"Equal ids under the coupled rule: {compared - len(differing)} of {compared} documents.")
    for line in differing:
        print(f"  {line}")
    result: dict[str, Any] = {"equal_ids": compared - len(differing), "compared": compared}
    if "greedy" in options.rules:
        greedy = by_category(figures, "greedy")
        print_goals(greedy)
        result = greedy | result
    result["sampled"] = {rule: by_category(figures, rule) for rule in options.rules if rule != "greedy"}
    if options.out:
        Path(options.out).write_text(
            json.dumps({"arguments": vars(options), "result": result, "rows": [asdict(row) for row in rows]})
        )
    print("RESULT " + json.dumps(result))
    if differing:
        sys.exit(1)


if __name__ == "__main__":
    main()
