"""A tiny model, tasks for it, and systems that do as they are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tests.training.tiny import SIZES, tiny_model, tokenizer
from xpress_struct.drafting.diffusion import DiffusionDrafter
from xpress_struct.drafting.lookup import LookupDrafter
from xpress_struct.drafting.several import SeveralDrafter
from xpress_struct.lab.bench.meter import GREEDY, Answer, Draw, Meter
from xpress_struct.lab.bench.systems.plain import Setting
from xpress_struct.lab.bench.tasks.task import Category, Task
from xpress_struct.model import Model
from xpress_struct.training.start import new_weights


def helped() -> Model:
    """The tiny target with an untrained block-diffusion drafter beside lookup."""
    tiny = tiny_model()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        drafter = SeveralDrafter([DiffusionDrafter(new_weights(tiny, [], SIZES)), LookupDrafter()])
    return Model(tiny.target, tokenizer(), tiny.vocabulary, drafter)


def setting(model: Model | None = None, limit: int = 12) -> Setting:
    """What systems share."""
    model = model or helped()
    return Setting(model, limit, unfence=True, meter=Meter(model.target.model), drafter=model.drafter)


def texts(count: int, category: Category = "text") -> list[Task]:
    """Tasks without a constraint."""
    return [Task(f"t{place}", category, f"abc {place}", group=str(place % 2)) for place in range(count)]


class Scripted:
    """A system that notes what it is asked, and answers by a function."""

    takes: tuple[Category, ...] = ("json", "sql", "code", "text")

    def __init__(self, name: str, heard: list[tuple[str, str]], answer: Callable[[Task], str] = str) -> None:
        self.name, self.heard, self.answer = name, heard, answer

    def run(self, task: Task, draw: Draw = GREEDY) -> Answer:
        self.heard.append((self.name, task.id))
        text = self.answer(task)
        return Answer([1, 2, 3], text, True, 0.0)


def broken(task: Task) -> Any:
    """An answer that is none."""
    raise RuntimeError("out of luck")
