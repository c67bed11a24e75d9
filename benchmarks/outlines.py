"""Outlines scripts as they are, and with one argument more, over its three backends.

    python -m benchmarks.outlines --limit 5

JSON by Pydantic, regex and CFG on the embedded model, greedy, one torch thread. Each prompt is answered by
both, one after the other; who goes first changes. Generators are made, and Outlines' kernels compiled, before
the clock starts. Ends with one line `RESULT {json}`. Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import time
from dataclasses import dataclass
from typing import Annotated, Any

import outlines
import torch
from outlines.types import CFG, Regex
from pydantic import BaseModel, Field
from tqdm import tqdm

import xpress_struct as xs
from xpress_struct.integrations.outlines import OutlinesGenerate

__all__ = ["main"]

BACKENDS = ("outlines_core", "xgrammar", "llguidance")
KINDS = ("json", "regex", "cfg")


class Person(BaseModel):
    """What is asked for as JSON. Bounds keep a small model from endless strings."""

    name: Annotated[str, Field(max_length=30)]
    age: Annotated[int, Field(ge=0, le=120)]
    profession: Annotated[str, Field(max_length=20)]
    city: Annotated[str, Field(max_length=20)]


WORD = "[A-Z][a-z]{1,12}"
RECORD = rf"name: {WORD} {WORD}\nage: [0-9]{{1,2}}\ncity: {WORD}\nprofession: [a-z]{{3,12}}"
LARK = """start: call (";" call)*
call: NAME "(" argument ("," " " argument)* ")"
argument: NAME "=" (STRING | NUMBER)
NAME: /[a-z]{1,12}/
STRING: /"[A-Za-z ]{1,30}"/
NUMBER: /[0-9]{1,4}/
"""
GBNF = r"""root ::= call (";" call)*
call ::= name "(" argument (", " argument)* ")"
argument ::= name "=" (string | number)
name ::= [a-z]{1,12}
string ::= "\"" [A-Za-z ]{1,30} "\""
number ::= [0-9]{1,4}
"""
ARGUMENT = r'[a-z]{1,12}=("[A-Za-z ]{1,30}"|[0-9]{1,4})'
CALL = rf"[a-z]{{1,12}}\({ARGUMENT}(, {ARGUMENT})*\)"
CALLS = rf"{CALL}(;{CALL})*"


@dataclass
class Run:
    """One answer.

    Attributes:
        ended: the text ended by itself, before the limit.
        cpu_s: seconds in processor time, which other processes on the machine do not stretch.
    """

    ids: list[int]
    valid: bool
    ended: bool
    seconds: float
    cpu_s: float
    forwards: int


def prompts(kind: str, count: int) -> list[str]:
    """Made-up prompts, the same in each run."""
    drawn = random.Random(0)
    found = []
    for _ in range(count):
        name = (
            f"{drawn.choice(['Maria', 'Peter', 'Aisha', 'Tom'])} {drawn.choice(['Lopez', 'Novak', 'Okoro'])}"
        )
        job, city = drawn.choice(["teacher", "nurse", "lawyer"]), drawn.choice(["Madrid", "Prague", "Lagos"])
        text = f"{name} is a {drawn.randint(20, 79)} year old {job}. The {job} lives in {city}."
        found.append(_ASKED[kind] + text)
    return found


_ASKED = {
    "json": "Extract the person as JSON with name, age, profession and city.\n\n",
    "regex": "Write name, age, city and profession of the person, each on a line like 'name: ...'.\n\n",
    "cfg": 'Write a call like person(name="...", age=..., job="...", city="...") for this text.\n\n',
}


def output_type(kind: str, backend: str) -> Any:
    if kind == "cfg":
        return CFG(GBNF if backend == "xgrammar" else LARK)
    return Person if kind == "json" else Regex(RECORD)


def is_valid(kind: str, text: str) -> bool:
    if kind != "json":
        return re.fullmatch(RECORD if kind == "regex" else CALLS, text) is not None
    try:
        Person.model_validate_json(text)
    except ValueError:
        return False
    return True


class Recorder:
    """Stands in for the model in Outlines: hands all on, counts forwards, and keeps the output ids."""

    def __init__(self, model: Any) -> None:
        self.model, self.forwards, self.ids = model, 0, [0]
        model.register_forward_hook(self._count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def _count(self, *_: Any) -> None:
        self.forwards += 1

    def generate(self, input_ids: torch.Tensor, **options: Any) -> torch.Tensor:
        found: torch.Tensor = self.model.generate(input_ids=input_ids, **options)
        self.ids = found[0, input_ids.shape[1] :].tolist()
        return found


def ask(generator: Any, recorder: Recorder, kind: str, prompt: str, limit: int, **one: Any) -> Run:
    recorder.forwards, started, started_cpu = 0, time.perf_counter(), time.process_time()
    text = generator(prompt, max_new_tokens=limit, do_sample=False, **one)
    seconds, cpu_s = time.perf_counter() - started, time.process_time() - started_cpu
    ended = recorder.ids[-1] == recorder.model.generation_config.eos_token_id
    return Run(recorder.ids, is_valid(kind, text), ended, seconds, cpu_s, recorder.forwards)


def compare(
    recorder: Recorder,
    model: Any,
    fast: OutlinesGenerate,
    backend: str,
    kind: str,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Both ways over the prompts of a kind; sums."""
    started = time.perf_counter()
    generator = outlines.Generator(model, output_type(kind, backend), backend=backend)
    compile_s = time.perf_counter() - started
    ways: dict[str, dict[str, Any]] = {"outlines": {}, "ours": {"custom_generate": fast}}
    asked = prompts(kind, options.limit)
    for given in ways.values():
        ask(generator, recorder, kind, asked[0], 4, **given)
    runs: dict[str, list[Run]] = {way: [] for way in ways}
    for place, prompt in enumerate(tqdm(asked, desc=f"{backend} {kind}", file=sys.stderr)):
        order = sorted(ways, reverse=bool(place % 2))
        for way in order:
            runs[way].append(ask(generator, recorder, kind, prompt, options.max_new_tokens, **ways[way]))
    before, after = runs["outlines"], runs["ours"]
    seconds = [sum(run.seconds for run in way) for way in (before, after)]
    cpu_s = [sum(run.cpu_s for run in way) for way in (before, after)]
    pairs = list(zip(before, after, strict=True))
    return {
        "backend": backend,
        "kind": kind,
        "documents": len(asked),
        "ended": [sum(run.ended for run in way) for way in (before, after)],
        "valid": [sum(run.valid for run in way) for way in (before, after)],
        "tokens": [sum(len(run.ids) for run in way) for way in (before, after)],
        "forwards": [sum(run.forwards for run in way) for way in (before, after)],
        "seconds": [round(spent, 3) for spent in seconds],
        "cpu_s": [round(spent, 3) for spent in cpu_s],
        "speed_up": round(seconds[0] / seconds[1], 2),
        "speed_up_cpu": round(cpu_s[0] / cpu_s[1], 2),
        "equal_ids": sum(one.ids == other.ids for one, other in pairs),
        "compile_s": round(compile_s, 3),
    }


def main(given: list[str] | None = None, model: xs.Model | None = None) -> list[dict[str, Any]]:
    parser = argparse.ArgumentParser(prog="benchmarks.outlines", description=__doc__.split("\n\n")[0])
    parser.add_argument("--limit", type=int, default=5, help="prompts of each kind")
    parser.add_argument("--max-new-tokens", type=int, default=120)
    parser.add_argument("--backends", default=",".join(BACKENDS), help="comma-separated names")
    parser.add_argument("--drafter", default="auto", help="as of xs.load")
    options = parser.parse_args(given)
    torch.set_num_threads(1)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    model = model or xs.load()
    recorder = Recorder(model.target.model)
    outlined = outlines.from_transformers(recorder, model.tokenizer)
    fast = OutlinesGenerate(tokenizer=model.tokenizer, drafter=options.drafter)
    rows = [
        compare(recorder, outlined, fast, backend, kind, options)
        for backend in options.backends.split(",")
        for kind in KINDS
        if (backend, kind) != ("outlines_core", "cfg")  # Outlines refuses it
    ]
    names = ("valid", "forwards", "seconds", "cpu_s")
    print("\n" + " " * 22 + "".join(f"{name:>17}" for name in names) + "  speed-up (cpu)  equal ids")
    for row in rows:
        pairs = "".join(f"{f'{row[name][0]} / {row[name][1]}':>17}" for name in names)
        speed = f"{row['speed_up']} ({row['speed_up_cpu']})"
        equal = f"{row['equal_ids']}/{row['documents']}"
        print(f"{row['backend']:14}{row['kind']:8}{pairs}{speed:>16}{equal:>11}")
    print("Pairs: Outlines alone / with custom_generate. A document that the limit cuts is not valid.")
    print("RESULT " + json.dumps({"drafter": options.drafter, "rows": rows}))
    return rows


if __name__ == "__main__":
    main()
