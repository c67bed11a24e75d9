"""Counting and timing, the same for every system: hooks on the model's forward."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from xpress_struct.lab.bench.tasks.task import Task
from xpress_struct.lab.machine import peak_memory, reset_peak_memory

__all__ = ["GREEDY", "Answer", "Draw", "Meter", "Run", "System", "TimedProcessor", "measure", "told"]


@dataclass(frozen=True)
class Draw:
    """How tokens are chosen.

    Attributes:
        temperature: 0 is greedy. Nothing else cuts the distribution.
        seed: of the draws.
    """

    temperature: float = 0.0
    seed: int = 0


GREEDY = Draw()


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
        draft_s: seconds of drafting.
        forced: tokens that took no choice. proposed, accepted: draft tokens.
        split: ours only: seconds by step.
        forwards, first_token_at: of systems that do not run the metered model.
        pieces: [text, origin] of each piece, where it is known who found it.
        guarded: ours only: rounds in which the guard held the drafter back.
    """

    ids: list[int]
    text: str
    completed: bool
    ended_at: float
    compile_s: float = 0.0
    mask_s: float = 0.0
    apply_s: float = 0.0
    draft_s: float = 0.0
    forced: int = 0
    proposed: int = 0
    accepted: int = 0
    proposed_by_slot: list[int] = field(default_factory=list)
    accepted_by_slot: list[int] = field(default_factory=list)
    closed: bool = False
    split: dict[str, float] | None = None
    guard_share: float | None = None
    forwards: int | None = None
    first_token_at: float | None = None
    pieces: list[list[str]] | None = None
    guarded: int = 0


class System(Protocol):
    """One way to generate. `run` does everything from the task to the text."""

    name: str

    def run(self, task: Task, draw: Draw = GREEDY) -> Answer: ...


@dataclass
class Run:
    """One task through one system, measured.

    Attributes:
        answer: None when the system raised.
        error: what it raised.
        reason: why the document is not valid, or None.
        score: whether the answer is right; None where nothing tells.
        forwards: forward passes of the model, the prefill included.
        prefilled: emitted tokens that were already known, and read, in the prefill.
        score_s: seconds inside the forwards.
        first_token_s: seconds to the end of the first forward.
        decode_s: seconds from the end of the first forward to the end of generation.
        decode_cpu_s: the same in processor time, which other processes on the machine do not stretch.
        total_s: seconds of the whole call: prompt, compilation, prefill, decoding, text.
        same_prompt: the first forward began with the common prompt.
    """

    task: Task
    answer: Answer | None = None
    error: str | None = None
    reason: str | None = None
    score: bool | None = None
    forwards: int = 0
    prefilled: int = 0
    score_s: float = 0.0
    first_token_s: float | None = None
    decode_s: float = 0.0
    decode_cpu_s: float = 0.0
    total_s: float = 0.0
    same_prompt: bool = True
    peak_memory: int | None = None

    @property
    def completed(self) -> bool:
        return self.answer is not None and self.answer.completed

    @property
    def valid(self) -> bool:
        return self.reason is None


@dataclass
class Meter:
    """Watches a model's forward: how often, how long, what the first one read, and when it was done.

    Attributes:
        lengths: tokens that each forward read.
    """

    model: torch.nn.Module
    forwards: int = 0
    seconds: float = 0.0
    lengths: list[int] = field(default_factory=list)
    first_ids: list[int] = field(default_factory=list)
    first_done: float = 0.0
    first_done_cpu: float = 0.0
    _began: float = 0.0

    def __post_init__(self) -> None:
        self.model.register_forward_pre_hook(self._before, with_kwargs=True)
        self.model.register_forward_hook(self._after)

    def reset(self) -> None:
        self.forwards, self.seconds, self.first_ids, self.first_done = 0, 0.0, [], 0.0
        self.lengths = []

    def _before(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.forwards += 1
        ids = kwargs["input_ids"] if "input_ids" in kwargs else args[0]
        self.lengths.append(ids.shape[-1])
        if self.forwards == 1:
            self.first_ids = ids[0].tolist()
        self._began = time.perf_counter()

    def _after(self, module: Any, args: tuple[Any, ...], output: Any) -> None:
        now = time.perf_counter()
        self.seconds += now - self._began
        if self.forwards == 1:
            self.first_done, self.first_done_cpu = now, time.process_time()


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


def told(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200] or '(no message)'}"


def measure(system: System, task: Task, prompt_ids: list[int], meter: Meter, draw: Draw = GREEDY) -> Run:
    """Runs one task through one system. Whatever the system raises becomes the run's error and reason."""
    run = Run(task)
    gc.collect()
    meter.reset()
    reset_peak_memory()
    started = time.perf_counter()
    try:
        answer = run.answer = system.run(task, draw)
    except Exception as error:
        run.total_s = time.perf_counter() - started
        run.error = run.reason = told(error)
        run.score = None if task.grade is None else False
        return run
    run.total_s = time.perf_counter() - started
    run.peak_memory = peak_memory()
    run.forwards = meter.forwards if answer.forwards is None else answer.forwards
    run.score_s = meter.seconds
    if meter.forwards:
        run.first_token_s = meter.first_done - started
        run.decode_s = answer.ended_at - meter.first_done
        run.decode_cpu_s = time.process_time() - meter.first_done_cpu
        run.prefilled = len(meter.first_ids) - len(prompt_ids)
        run.same_prompt = meter.first_ids[: len(prompt_ids)] == prompt_ids
    elif answer.first_token_at is not None:
        run.first_token_s = answer.first_token_at - started
        run.decode_s = answer.ended_at - answer.first_token_at
    if task.constrained and not (answer.completed or answer.closed):
        run.reason = f"cut at the limit of {len(answer.ids)} tokens"
    else:
        run.reason = task.problem(answer.text)
    if task.grade is not None:
        run.score = run.valid and task.grade(answer.text)
    return run
