"""Plan: in which order which prompts are answered, and how; the same in every run."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xpress_struct.training.prompts import CATEGORIES, Category, TrainPrompt

__all__ = ["SHARES", "Job", "Plan"]

SHARES: dict[Category, float] = {"calls": 0.35, "extraction": 0.25, "sql": 0.15, "code": 0.15, "chat": 0.10}
"""What part of the documents each category has, where all categories have prompts."""

_HELD_OUT_ONE_IN = 8
_GREEDY = 0.4
_WARM = (0.7, 0.7, 1.0)


@dataclass(frozen=True, slots=True)
class Job:
    """A prompt to answer, the temperature, and the seed of the response."""

    prompt: TrainPrompt
    temperature: float
    seed: int

    @property
    def key(self) -> str:
        """Names the document that comes out."""
        return f"{self.prompt.id} t{self.temperature:g} s{self.seed}"


class Plan:
    """Jobs without end: every eighth prompt of a category is a held-out one.

    Held-out prompts are answered greedily, once. Others are answered greedily with probability 0.4, else at
    temperature 0.7 or 1, and again when all had their turn.
    """

    def __init__(self, prompts: Sequence[TrainPrompt], seed: int = 0) -> None:
        rng = random.Random(seed)
        queues = {name: _Queue(name, prompts, rng) for name in CATEGORIES}
        self._queues = {name: queue for name, queue in queues.items() if queue.training}

    def next(self, counts: Mapping[str, int]) -> Job | None:
        """The next job of the category that most lacks documents; None without prompts to train on.

        Args:
            counts: documents by category so far.
        """
        if not self._queues:
            return None
        return self._queues[min(self._queues, key=lambda name: (counts[name] + 1) / SHARES[name])].next()


class _Queue:
    def __init__(self, name: Category, prompts: Sequence[TrainPrompt], rng: random.Random) -> None:
        mine = [prompt for prompt in prompts if prompt.category == name]
        self.training = [prompt for prompt in mine if not prompt.held_out]
        self.held_out = [prompt for prompt in mine if prompt.held_out]
        rng.shuffle(self.training)
        rng.shuffle(self.held_out)
        self.asked = self.trained = 0

    def next(self) -> Job:
        self.asked += 1
        if self.asked % _HELD_OUT_ONE_IN == 0 and self.held_out:
            return Job(self.held_out.pop(), 0.0, 0)
        lap, place = divmod(self.trained, len(self.training))
        self.trained += 1
        prompt = self.training[place]
        own = random.Random(f"{prompt.id} {lap}")
        temperature = 0.0 if own.random() < _GREEDY else own.choice(_WARM)
        # A second greedy answer would be the same.
        if temperature == 0.0 and lap:
            temperature = _WARM[0]
        return Job(prompt, temperature, lap)
