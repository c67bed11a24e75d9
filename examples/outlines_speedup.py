"""An Outlines script as it is, then with one argument more: same answers, fewer forward passes.

python -m examples.outlines_speedup
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Literal

import outlines
from outlines.types import Regex
from pydantic import BaseModel, Field

import xpress_struct as xs
from xpress_struct.integrations.outlines import OutlinesGenerate, from_transformers

TEXT = "Maria Lopez is a 34 year old teacher. She lives in Madrid, Spain. Her badge is TX-4471."


class Person(BaseModel):
    """Somebody in a text."""

    name: Annotated[str, Field(max_length=30)]
    age: int
    profession: Literal["nurse", "lawyer", "engineer", "teacher"]
    city: Annotated[str, Field(max_length=30)]


def main() -> None:
    """Runs both, and compares answers and costs."""
    loaded = xs.load()
    network, tokenizer = loaded.target.model, loaded.tokenizer
    forwards: list[None] = []
    network.register_forward_hook(lambda *_: forwards.append(None))

    model = outlines.from_transformers(network, tokenizer)
    fast = OutlinesGenerate(tokenizer=tokenizer)
    tasks = (
        (f"Extract the person from this text as JSON.\n\n{TEXT}", Person),
        (f"What is the number of the badge?\n\n{TEXT}", Regex(r"The badge is [A-Z]{2}-[0-9]{4}\.")),
    )
    for prompt, wanted in tasks:
        generator = outlines.Generator(model, wanted)  # outlines_core; other backends work as well
        generator(prompt, max_new_tokens=2)  # Outlines compiles its kernels in the first call
        before = _ask(forwards, lambda: generator(prompt, max_new_tokens=100))  # noqa: B023
        after = _ask(forwards, lambda: generator(prompt, max_new_tokens=100, custom_generate=fast))  # noqa: B023
        print(f"{after[0]}\n  Outlines alone:    {before[1]:3} forwards, {before[2]:.2f} s")
        print(f"  with one argument: {after[1]:3} forwards, {after[2]:.2f} s\n")
        assert before[0] == after[0], "speculation changed a token"
        assert after[1] < before[1]

    print("The model class streams:")
    for piece in from_transformers(network, tokenizer).stream(tasks[0][0], Person, max_new_tokens=100):
        print(piece, end="", flush=True)
    print()


def _ask(forwards: list[None], ask: Callable[[], str]) -> tuple[str, int, float]:
    """The answer, the forward passes and the seconds of a call."""
    forwards.clear()
    started = time.perf_counter()
    answer = ask()
    return answer, len(forwards), time.perf_counter() - started


if __name__ == "__main__":
    main()
