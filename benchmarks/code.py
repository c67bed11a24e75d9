"""Python from a small model: how much of it parses, with and without a constraint.

    python -m benchmarks.code --tasks code_tasks.jsonl --limit 40

Tasks are JSON lines with id, kind and prompt, drawn evenly over the kinds. "completion": the prompt is the
beginning of a function, and the model goes on with it as raw text, under `xs.code("python", prefix=prompt)`.
"instruction": the prompt asks for a function; the answer begins in a Markdown fence, which is part of the
prompt, and is a module, under `xs.code("python")`. One greedy run, interleaved with the same prompts
unconstrained. Stop strings end a completion at the next thing at the margin, as harnesses do, and an
unconstrained answer with its fence. parses: `ast.parse` takes prefix and text. Nothing is executed. Ends with
one line `RESULT {json}`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

import xpress_struct as xs
from benchmarks.judges import JUDGES
from benchmarks.tasks import read_rows
from benchmarks.trials import Judge, Request, arguments, evenly, print_trials, run_all
from xpress_struct.lab.bench.tasks.programs import FENCE, NEXT, start_of
from xpress_struct.prompt import encode_prompt

SYSTEMS = ("unconstrained", "code")
_ASKED = "{}\n\nAnswer with Python code only."


def main(given: list[str] | None = None, model: xs.Model | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.code", description=__doc__.split("\n\n")[0])
    parser.add_argument("--tasks", required=True, help="JSON lines with id, kind and prompt")
    parser.add_argument("--max-new-tokens", type=int, default=160)
    options = arguments(parser, SYSTEMS, given)
    torch.set_num_threads(1)
    rows = read_rows(options.tasks)
    model = model or xs.load(options.model)
    systems = {name: partial(_request, name, options, model) for name in options.systems}
    trials = run_all(model, systems, evenly(rows, "kind", options.limit, options.seed), _judges)
    print("\nRESULT " + json.dumps(print_trials(trials, ("parses",))))


def _request(system: str, options: argparse.Namespace, model: xs.Model, row: dict[str, Any]) -> Request:
    limits = {"max_new_tokens": options.max_new_tokens, "seed": options.seed}
    prefix = start_of(row)
    if prefix:
        prompt, stops = encode_prompt(prefix, model.tokenizer, chat=False), NEXT
    else:
        prompt = encode_prompt(_ASKED.format(row["prompt"]), model.tokenizer) + model.vocabulary.encode(FENCE)
        stops = ("```",)
    if system == "unconstrained":
        return Request(prompt, None, {**limits, "stop_strings": stops})
    constraint = xs.code("python", prefix=prefix)
    return Request(prompt, constraint, {**limits, "stop_strings": stops, "on_limit": "close"})


def _judges(row: dict[str, Any]) -> Mapping[str, Judge]:
    return {"parses": lambda text: JUDGES["python"](start_of(row) + text)}


if __name__ == "__main__":
    main()
