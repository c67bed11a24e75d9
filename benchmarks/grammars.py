"""Shipped grammars: what a random model writes under them, and what they take of what people wrote.

    python -m benchmarks.grammars --documents 500 --sql-tasks sql_tasks.jsonl --python-files 1000

For each grammar a random model writes documents under its mask, with random budgets, closed at the limit; the
real parser of the language judges each. `--sql-tasks` (JSON lines with schema and query) are given to
"sqlite" and to `xs.sql` of their own database; files of the standard library and of site-packages to
"python" (`python_files.py`). Prints a table, and last one line `RESULT {json}`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from typing import Any

import torch
from tqdm import tqdm

import xpress_struct as xs
from benchmarks.judges import JUDGES
from benchmarks.python_files import python_files
from benchmarks.random_documents import END, random_model
from benchmarks.tasks import read_rows
from xpress_struct.errors import OutputValidationError, XPressError
from xpress_struct.model import Model

CHECKED = ("python", "toml", "ini")


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.grammars", description=__doc__.split("\n\n")[0])
    parser.add_argument("--grammars", default=",".join(sorted(JUDGES)), help="separated by commas")
    parser.add_argument("--documents", type=int, default=500, help="of each grammar")
    parser.add_argument("--sql-tasks", help="JSON lines with schema and query")
    parser.add_argument("--python-files", type=int, default=0, help="files to draw")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    result: dict[str, Any] = {}
    if given.documents:
        print(
            f"{'grammar':10}{'compile s':>10}{'returned':>10}{'refused':>9}"
            f"{'resampled':>11}{'cut':>6}{'bytes':>8}"
        )
        for name in given.grammars.split(","):
            result[name] = row = _documents(name, given.documents, given.seed)
            print(
                f"{name:10}{row['compile_s']:>10.1f}{row['returned']:>10}{row['refused']:>9}"
                f"{row['resampled_share']:>11.1%}{row['cut']:>6}{row['mean_bytes']:>8.0f}"
            )
    if given.sql_tasks:
        result["gold"] = _gold(read_rows(given.sql_tasks))
    if given.python_files:
        result["python_files"] = python_files(given.python_files, given.seed)
    for name in ("gold", "python_files"):
        for key, value in result.get(name, {}).items():
            shown = value if isinstance(value, dict) else f"{value:.4g}"
            print(f"{name + ' ' + key:40}{shown!s:>12}")
    print("RESULT " + json.dumps(result))


def _documents(name: str, count: int, seed: int) -> dict[str, Any]:
    """Texts of a random model; cut ones (no way to close them fitted the budget) are drawn again."""
    started = time.perf_counter()
    constraint = xs.code(name) if name in CHECKED else xs.lark(name)
    compile_s = time.perf_counter() - started
    model, draw = _leaning_model(seed), random.Random(seed)
    counts: Counter[str] = Counter()
    length = 0
    for place in tqdm(range(10 * count), desc=name, file=sys.stderr):
        if counts["returned"] == count:
            break
        budget = draw.randint(20, 300)
        try:
            out = model.generate(
                [1],
                constraint,
                temperature=1.0,
                seed=1000 * seed + 10 * place,
                max_new_tokens=budget,
                on_limit="close",
            )
        except OutputValidationError:
            counts["failed"] += 1
            continue
        if not out.complete:
            counts["cut"] += 1
            continue
        counts["returned"] += 1
        counts["resampled"] += out.stats.retries > 0
        length += len(out.value.encode())
        refusal = JUDGES[name](out.value)
        if refusal is not None:
            counts["refused"] += 1
            tqdm.write(f"{name}: {refusal}: {out.value!r}"[:400], file=sys.stderr)
    returned = counts["returned"] or 1
    return {
        "compile_s": round(compile_s, 2),
        "returned": counts["returned"],
        "refused": counts["refused"],
        "failed": counts["failed"],
        "cut": counts["cut"],
        "resampled_share": round(counts["resampled"] / returned, 4),
        "mean_bytes": round(length / returned, 1),
    }


def _leaning_model(seed: int) -> Model:
    """The random model, leaning to ASCII and to what closes something: strings would go on for ever."""
    model = random_model(seed)
    lean = torch.zeros(END + 1)
    lean[128:END] = -4.0
    for character in "\n )]}'\":;,":
        lean[ord(character)] = 2.0
    lean[END] = 4.0
    score = model.target.score
    model.target.score = lambda cache, ids, rows: score(cache, ids, rows) + lean  # type: ignore[method-assign]
    return model


def _gold(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Shares of the queries that the masks take, and that pass the check of their own database too."""
    general = xs.lark("sqlite")
    counts: Counter[str] = Counter()
    for row in tqdm(rows, desc="gold", file=sys.stderr):
        counts["sqlite"] += general.accepts(row["query"])
        own = xs.sql(row["schema"])
        counts["sql"] += own.accepts(row["query"]) and _parses(own, row["query"])
    return {"queries": len(rows), **{f"{name}_share": counts[name] / len(rows) for name in ("sqlite", "sql")}}


def _parses(constraint: xs.Constraint, text: str) -> bool:
    try:
        constraint.parse(text)
    except XPressError:
        return False
    return True


if __name__ == "__main__":
    main()
