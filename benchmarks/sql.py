"""Text to SQL: how many queries parse and prepare, with and without a constraint.

    python -m benchmarks.sql --tasks sql_tasks.jsonl --limit 60

Tasks are JSON lines with id, db_id, schema (CREATE statements) and question, drawn evenly over the databases.
One greedy run, the systems interleaved task by task: unconstrained, any SQLite (`xs.lark("sqlite")`), and
SELECT over the task's own tables (`xs.sql`). prepares: SQLite compiles it against the task's tables. parses:
it does, or neither SQLite's parser nor sqlglot's finds a fault, whatever the tables are. Statements that are
no query count too; nothing is executed. With `--compile`, the seconds to compile `xs.sql` for each database
are measured too. Ends with one line `RESULT {json}`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import sqlglot
import torch
from tqdm import tqdm

import xpress_struct as xs
from benchmarks.judges import JUDGES
from benchmarks.soundness import quantile
from benchmarks.tasks import read_rows
from benchmarks.trials import Judge, Request, arguments, evenly, print_trials, run_all, unfenced
from xpress_struct.lab.bench.tasks.queries import unprepared
from xpress_struct.training.made_up.sql import sql_ask

SYSTEMS = ("unconstrained", "grammar", "sql")


def main(given: list[str] | None = None, model: xs.Model | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.sql", description=__doc__.split("\n\n")[0])
    parser.add_argument("--tasks", required=True, help="JSON lines with id, db_id, schema and question")
    parser.add_argument("--max-new-tokens", type=int, default=96)
    parser.add_argument("--compile", action="store_true", help="measure the compilation of xs.sql too")
    options = arguments(parser, SYSTEMS, given)
    torch.set_num_threads(1)
    rows = read_rows(options.tasks)
    model = model or xs.load(options.model)
    result: dict[str, Any] = {}
    if options.compile:
        result["compile"] = _compile({row["db_id"]: row["schema"] for row in rows}, model)
    systems = {name: partial(_request, name, options) for name in options.systems}
    trials = run_all(model, systems, evenly(rows, "db_id", options.limit, options.seed), _judges)
    result |= print_trials(trials, ("parses", "prepares"))
    print("\nRESULT " + json.dumps(result))


def _request(system: str, options: argparse.Namespace, row: dict[str, Any]) -> Request:
    prompt = sql_ask(row["schema"], row["question"])
    limits = {"max_new_tokens": options.max_new_tokens, "seed": options.seed}
    if system == "unconstrained":
        return Request(prompt, None, limits, unfenced)
    constraint = xs.lark("sqlite") if system == "grammar" else _own(row["schema"])
    return Request(prompt, constraint, {**limits, "on_limit": "close"})


def _own(schema: str) -> xs.Constraint:
    return xs.sql(schema, statements=("select",))


def _judges(row: dict[str, Any]) -> Mapping[str, Judge]:
    def unparsed(text: str) -> str | None:
        return unprepared(row["schema"], text) and (JUDGES["sqlite"](text) or _unread(text))

    return {"parses": unparsed, "prepares": partial(unprepared, row["schema"])}


def _unread(text: str) -> str | None:
    """Why sqlglot does not parse a text, or None: SQLite may stop at a name before the text breaks off."""
    try:
        sqlglot.parse_one(text, read="sqlite")
    except sqlglot.errors.SqlglotError as error:
        return f"sqlglot: {error}"
    return None


def _compile(schemas: Mapping[str, str], model: xs.Model) -> dict[str, float]:
    """Seconds from the tables to a matcher, by database."""
    seconds = {}
    for name, schema in tqdm(schemas.items(), desc="compile", file=sys.stderr):
        started = time.perf_counter()
        _own(schema).matcher(model.vocabulary)
        seconds[name] = time.perf_counter() - started
    for name, spent in seconds.items():
        print(f"compile {name:32}{spent:8.2f} s")
    values = list(seconds.values())
    return {
        "databases": len(values),
        "s_p50": round(quantile(values, 0.5), 2),
        "s_max": round(max(values), 2),
    }


if __name__ == "__main__":
    main()
