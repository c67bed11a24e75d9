"""`generate` of transformers, unconstrained: the baseline, and with prompt lookup."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Any

import torch

from xpress_struct.lab.bench.meter import GREEDY, Answer, Draw, Meter, TimedProcessor
from xpress_struct.lab.bench.tasks.task import Category, Task, prompt_ids
from xpress_struct.model import Model

__all__ = ["Plain", "PromptLookup", "Setting", "unfenced"]


@dataclass(frozen=True)
class Setting:
    """What all systems share.

    Attributes:
        limit: tokens of an answer, at most.
        compile_timeout: seconds that an index of Outlines may take.
        unfence: of an unconstrained answer only what stands in its first Markdown fence is judged.
        meter: of the model's forward, where a system reads its counts.
        drafter: a trained block-diffusion drafter, or None.
        gguf: file of the model for llama.cpp, or None.
    """

    model: Model
    limit: int
    compile_timeout: float = 30.0
    unfence: bool = False
    meter: Meter | None = None
    drafter: Any = None
    gguf: str | None = None


class Plain:
    """Unconstrained `generate`.

    Attributes:
        label: of the system, in words.
        takes: categories that it can write.
    """

    name = "plain"
    label = "transformers, plain"
    takes: tuple[Category, ...] = ("json", "sql", "code", "text")
    constrains = False

    def __init__(self, setting: Setting) -> None:
        self.setting, self.model = setting, setting.model
        self.hf: Any = self.model.target.model  # type: ignore[attr-defined]
        self.tokenizer: Any = self.model.tokenizer
        self.ends = list(self.model.vocabulary.end_ids)

    def config(self, draw: Draw) -> Any:
        from transformers import GenerationConfig

        # Written out, because `generate` fills gaps from the model's own generation config.
        sampled = {"do_sample": True, "temperature": draw.temperature, "top_k": 0, "top_p": 1.0}
        return GenerationConfig(
            max_new_tokens=self.setting.limit,
            num_beams=1,
            repetition_penalty=1.0,
            no_repeat_ngram_size=0,
            eos_token_id=self.ends,
            pad_token_id=self.ends[0],
            **(sampled if draw.temperature else {"do_sample": False}),
            **self.options(),
        )

    def run(self, task: Task, draw: Draw = GREEDY) -> Answer:
        prompt = prompt_ids(task, self.model)
        started = time.perf_counter()
        processor = self.processor(task)
        compile_s = time.perf_counter() - started
        clock = TimedProcessor(processor) if processor is not None else None
        torch.manual_seed(draw.seed)
        ids = torch.tensor([prompt], device=self.hf.device)
        output = self.hf.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            generation_config=self.config(draw),
            logits_processor=[clock] if clock else None,
            stopping_criteria=[_StopTexts(self.model, len(prompt), task.stops)] if task.stops else None,
        )
        ended_at = time.perf_counter()
        answer = self.answer(task, output[0, len(prompt) :].tolist(), ended_at)
        answer.compile_s, answer.mask_s = compile_s, clock.seconds if clock else 0.0
        self.count(answer)
        return answer

    def processor(self, task: Task) -> Any:
        """The logits processor for a task; None for none."""
        return None

    def options(self) -> dict[str, Any]:
        """Further fields of the generation config."""
        return {}

    def count(self, answer: Answer) -> None:
        """Adds what the system knows of its drafts."""

    def answer(self, task: Task, ids: list[int], ended_at: float) -> Answer:
        ended = bool(ids) and ids[-1] in self.ends
        text = self.tokenizer.decode(ids[:-1] if ended else ids, skip_special_tokens=True)
        text, stopped = cut(text, task.stops)
        if self.setting.unfence and not self.constrains and task.constrained:
            text = unfenced(text)
        return Answer(ids, text, ended or stopped, ended_at)


class PromptLookup(Plain):
    """`generate` with prompt lookup, unconstrained."""

    name = "plain-lookup"
    label = "transformers, prompt lookup"

    def options(self) -> dict[str, Any]:
        return {"prompt_lookup_num_tokens": 10}

    def count(self, answer: Answer) -> None:
        meter = self.setting.meter
        if meter is not None:
            answer.proposed = sum(length - 1 for length in meter.lengths[1:])
            answer.accepted = max(0, len(answer.ids) - meter.forwards)


class _StopTexts:
    """Ends `generate` where the answer has one of the stop texts."""

    def __init__(self, model: Model, start: int, stops: tuple[str, ...]) -> None:
        self.model, self.start, self.stops = model, start, stops

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        text = self.model.vocabulary.decode(input_ids[0, self.start :].tolist()).decode(errors="replace")
        found = any(stop in text for stop in self.stops)
        return torch.full((len(input_ids),), found, device=input_ids.device, dtype=torch.bool)


def cut(text: str, stops: tuple[str, ...]) -> tuple[str, bool]:
    """The text in front of the first stop text, and whether there is one."""
    places = [place for place in (text.find(stop) for stop in stops) if place >= 0]
    return (text[: min(places)], True) if places else (text, False)


_FENCE = re.compile(r"```[a-zA-Z]*\n(.*?)(?:```|\Z)", re.DOTALL)


def unfenced(text: str) -> str:
    """The first block in a Markdown fence, else the whole text."""
    found = _FENCE.search(text)
    return found[1] if found else text
