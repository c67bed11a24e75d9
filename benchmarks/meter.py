"""Counting and timing, the same for every system: hooks on the model's forward."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from benchmarks.tasks import Task, problem, score

__all__ = ["Answer", "Meter", "Run", "System", "TimedProcessor", "measure"]


@dataclass
class Answer:
    """What a system hands back.

    Attributes:
        ids: emitted tokens, end token included.
        text: the answer without its end token.
        completed: it ended by itself, before the token limit.
        closed: ours only: it was closed at the limit, so it is whole although it did not end by itself.
        ended_at: `time.perf_counter` when generation was over.
        compile_s: seconds from the schema to a mask engine.
        mask_s: seconds spent on masks while decoding.
        apply_s: ours only: seconds of choosing tokens, the application of masks included.
        proposed, accepted: draft tokens.
        guarded: ours only: rounds in which the guard held the drafter back.
    """

    ids: list[int]
    text: str
    completed: bool
    ended_at: float
    compile_s: float = 0.0
    mask_s: float = 0.0
    apply_s: float = 0.0
    proposed: int = 0
    accepted: int = 0
    closed: bool = False
    guarded: int = 0


class System(Protocol):
    """One way to generate. `run` does everything from the task to the text."""

    name: str

    def run(self, task: Task) -> Answer: ...


@dataclass
class Run:
    """One task through one system, measured.

    Attributes:
        answer: None when the system raised.
        reason: why the document is not valid, or None.
        score: the document makes the acceptable calls.
        forwards: forward passes of the model, the prefill included.
        prefilled: emitted tokens that were already known, and read, in the prefill.
        decode_s: seconds from the end of the first forward to the end of generation.
        decode_cpu_s: the same in processor time, which other processes on the machine do not stretch.
        total_s: seconds of the whole call: prompt, compilation, prefill, decoding, text.
        same_prompt: the first forward began with the common prompt.
    """

    task: Task
    answer: Answer | None = None
    reason: str | None = None
    score: bool = False
    forwards: int = 0
    prefilled: int = 0
    decode_s: float = 0.0
    decode_cpu_s: float = 0.0
    total_s: float = 0.0
    same_prompt: bool = True

    @property
    def completed(self) -> bool:
        return self.answer is not None and self.answer.completed

    @property
    def valid(self) -> bool:
        return self.reason is None


@dataclass
class Meter:
    """Watches a model's forward: how often, what the first one read, and when it was done."""

    model: torch.nn.Module
    forwards: int = 0
    first_ids: list[int] = field(default_factory=list)
    first_done: float = 0.0
    first_done_cpu: float = 0.0

    def __post_init__(self) -> None:
        self.model.register_forward_pre_hook(self._before, with_kwargs=True)
        self.model.register_forward_hook(self._after)

    def reset(self) -> None:
        self.forwards, self.first_ids, self.first_done = 0, [], 0.0

    def _before(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.forwards += 1
        if self.forwards == 1:
            ids = kwargs["input_ids"] if "input_ids" in kwargs else args[0]
            self.first_ids = ids[0].tolist()

    def _after(self, module: Any, args: tuple[Any, ...], output: Any) -> None:
        if self.forwards == 1:
            self.first_done, self.first_done_cpu = time.perf_counter(), time.process_time()


class TimedProcessor:
    """A logits processor of transformers with a clock around it."""

    def __init__(self, processor: Callable[..., torch.Tensor]) -> None:
        self.processor, self.seconds = processor, 0.0

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        started = time.perf_counter()
        scores = self.processor(input_ids, scores)
        self.seconds += time.perf_counter() - started
        return scores

    def reset(self) -> None:
        """Outlines calls this before each generation."""
        self.processor.reset()  # type: ignore[attr-defined]


def measure(system: System, task: Task, prompt_ids: list[int], meter: Meter) -> Run:
    """Runs one task through one system. Whatever the system raises becomes the run's reason."""
    run = Run(task)
    gc.collect()
    meter.reset()
    started = time.perf_counter()
    try:
        answer = run.answer = system.run(task)
    except Exception as error:
        run.reason = f"{type(error).__name__}: {str(error).strip()[:200] or '(no message)'}"
        return run
    run.total_s = time.perf_counter() - started
    run.forwards = meter.forwards
    if meter.forwards:
        run.decode_s = answer.ended_at - meter.first_done
        run.decode_cpu_s = time.process_time() - meter.first_done_cpu
        run.prefilled = len(meter.first_ids) - len(prompt_ids)
        run.same_prompt = meter.first_ids[: len(prompt_ids)] == prompt_ids
    if not (answer.completed or answer.closed):
        run.reason = f"cut at the limit of {len(answer.ids)} tokens"
    else:
        run.reason = problem(answer.text, task.schema)
    if run.valid:
        run.score = score(json.loads(answer.text), task.acceptable)
    return run
