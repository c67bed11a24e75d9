"""Outlines' own generator with its default backend (outlines_core)."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from xpress_struct.lab.bench.meter import GREEDY, Answer, Draw, TimedProcessor
from xpress_struct.lab.bench.systems.plain import Plain, Setting
from xpress_struct.lab.bench.tasks.task import Category, Task, prompt_ids, prompt_of

__all__ = ["Outlines"]


class Outlines(Plain):
    """Outlines over the common prompt. Its default backend knows JSON Schema, and no grammars."""

    name = "outlines"
    label = "transformers, Outlines masks"
    takes: tuple[Category, ...] = ("json",)
    constrains = True
    blanks = "[ ]?"
    """Outlines has one pattern for blanks at every place: this one takes our layout, and others."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        import outlines

        self.recorder = _Recorder(self.hf)
        # Outlines changes its tokenizer (padding side, padding token).
        self.outlined = outlines.from_transformers(self.recorder, copy.deepcopy(self.tokenizer))
        spell = self.outlined.tokenizer.convert_token_to_string
        self.tokens: dict[str, list[int]] = {}
        for token, index in self.outlined.tokenizer.get_vocab().items():
            self.tokens.setdefault(spell(token), []).append(index)
        self.tokens.pop(spell(self.outlined.tokenizer.eos_token), None)
        self.refused: dict[str, str] = {}

    def prepare(self, task: Task) -> None:
        """Builds the index in another process first: one that takes too long can't be stopped here."""
        timeout = self.setting.compile_timeout
        given = {
            "schema": json.dumps(task.schema),
            "whitespace": self.blanks,
            "end_id": self.outlined.tokenizer.eos_token_id,
            "tokens": self.tokens,
        }
        worker = [sys.executable, str(Path(__file__).with_name("index_worker.py"))]
        try:
            done = subprocess.run(
                worker,
                input=json.dumps(given),
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            self.refused[task.id] = f"no index after {timeout:g} s"
            return
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "Error" in line]
            self.refused[task.id] = (lines or [f"exit code {done.returncode}"])[-1][:160]

    def run(self, task: Task, draw: Draw = GREEDY) -> Answer:
        import outlines
        from outlines.inputs import Chat
        from outlines.types import JsonSchema

        if task.id in self.refused:
            raise RuntimeError(self.refused[task.id])
        self.recorder.prompt = prompt_ids(task, self.model)
        prompt = prompt_of(task, self.model)
        started = time.perf_counter()
        wanted = JsonSchema(task.schema, whitespace_pattern=self.blanks)
        generator = outlines.Generator(self.outlined, wanted)
        compile_s = time.perf_counter() - started
        clock = generator.logits_processor = TimedProcessor(generator.logits_processor)
        asked = prompt if isinstance(prompt, str) else Chat(list(prompt))
        torch.manual_seed(draw.seed)
        generator(asked, generation_config=self.config(draw))
        answer = self.answer(task, self.recorder.output or [], self.recorder.ended_at)
        answer.compile_s, answer.mask_s = compile_s, clock.seconds
        return answer


@dataclass
class _Recorder:
    """Stands in for the model in Outlines: hands on `generate`, over the common prompt, and keeps ids."""

    model: Any
    prompt: list[int] | None = None
    output: list[int] | None = None
    ended_at: float = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def generate(self, input_ids: torch.Tensor, **options: Any) -> torch.Tensor:
        if input_ids[0].tolist() != self.prompt:  # another template option, a doubled first token
            input_ids = torch.tensor([self.prompt], device=input_ids.device)
            options["attention_mask"] = torch.ones_like(input_ids)
        output: torch.Tensor = self.model.generate(input_ids=input_ids, **options)
        self.ended_at = time.perf_counter()
        self.output = output[0, input_ids.shape[1] :].tolist()
        return output
