"""The systems that ours is compared with: `generate` of transformers, free and under three masks.

All of them read the same prompt ids, decode greedily, and (as far as they can be told) write the layout of
`json.dumps`: ", " and ": ".
"""

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

from benchmarks.meter import Answer, TimedProcessor
from benchmarks.tasks import Task
from xpress_struct.model import Model
from xpress_struct.prompt import Prompt, encode_prompt, with_schema

__all__ = ["PEERS", "prompt_of"]


def prompt_of(task: Task, model: Model) -> Prompt:
    """What every system is asked: the messages (raw text without a chat template) and the schema."""
    has_template = bool(getattr(model.tokenizer, "chat_template", None))
    return with_schema(task.messages if has_template else task.prompt, task.schema)


class Plain:
    """Unconstrained greedy `generate`."""

    name = "plain"

    def __init__(self, model: Model, limit: int, compile_timeout: float) -> None:
        from transformers import GenerationConfig

        self.model, self.compile_timeout = model, compile_timeout
        self.hf, self.tokenizer = model.target.model, model.tokenizer
        self.ends = list(model.vocabulary.end_ids)
        # Written out, because `generate` fills gaps from the model's own generation config.
        self.config = GenerationConfig(
            max_new_tokens=limit,
            do_sample=False,
            num_beams=1,
            repetition_penalty=1.0,
            no_repeat_ngram_size=0,
            eos_token_id=self.ends,
            pad_token_id=self.ends[0],
        )

    def run(self, task: Task) -> Answer:
        prompt = encode_prompt(prompt_of(task, self.model), self.tokenizer)
        started = time.perf_counter()
        processor = self.processor(task.schema)
        compile_s = time.perf_counter() - started
        clock = TimedProcessor(processor) if processor is not None else None
        ids = torch.tensor([prompt], device=self.hf.device)
        output = self.hf.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            generation_config=self.config,
            logits_processor=[clock] if clock else None,
        )
        ended_at = time.perf_counter()
        return self.answer(output[0, len(prompt) :].tolist(), ended_at, compile_s, clock)

    def processor(self, schema: Any) -> Any:
        """The logits processor for a schema; None for none."""
        return None

    def answer(
        self, ids: list[int], ended_at: float, compile_s: float, clock: TimedProcessor | None
    ) -> Answer:
        completed = bool(ids) and ids[-1] in self.ends
        text = self.tokenizer.decode(ids[:-1] if completed else ids, skip_special_tokens=True)
        mask_s = clock.seconds if clock else 0.0
        return Answer(ids, text, completed, ended_at, compile_s, mask_s)


class LLGuidance(Plain):
    """`generate` under llguidance's masks."""

    name = "llguidance"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        from llguidance.hf import from_tokenizer

        self.width = self.model.target.width
        self.engine = from_tokenizer(self.tokenizer, n_vocab=self.width, eos_token=self.ends)

    def processor(self, schema: Any) -> Any:
        from llguidance import LLMatcher

        layout = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
        grammar = LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=layout)
        matcher = LLMatcher(self.engine, grammar, log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return _LLGuidanceProcessor(matcher, self.width)


class _LLGuidanceProcessor:
    """llguidance's own kernel needs a C++ compiler on CPU; this does the same in numpy, in place."""

    def __init__(self, matcher: Any, width: int) -> None:
        from llguidance.numpy import allocate_token_bitmask

        self.matcher, self.started = matcher, False
        self.bitmask = allocate_token_bitmask(1, width)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        import numpy as np
        from llguidance.numpy import fill_next_token_bitmask

        if self.started and not self.matcher.consume_token(int(input_ids[0, -1])):
            raise RuntimeError(f"llguidance: {self.matcher.get_error()}")
        self.started = True
        fill_next_token_bitmask(self.matcher, self.bitmask)
        bits = np.unpackbits(self.bitmask.view(np.uint8)[0], count=scores.shape[-1], bitorder="little")
        illegal = torch.from_numpy(bits == 0).to(scores.device)
        return scores.masked_fill_(illegal, -torch.inf)


class XGrammar(Plain):
    """`generate` under xgrammar's own logits processor."""

    name = "xgrammar"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        import xgrammar

        info = xgrammar.TokenizerInfo.from_huggingface(
            self.tokenizer, vocab_size=self.model.target.width, stop_token_ids=self.ends
        )
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1)

    def processor(self, schema: Any) -> Any:
        from xgrammar.contrib.hf import LogitsProcessor

        # A string is compiled with the members in their order; cleared, so nothing is compiled before.
        self.compiler.clear_cache()
        compiled = self.compiler.compile_json_schema(
            json.dumps(schema), any_whitespace=False, separators=(", ", ": "), strict_mode=False
        )
        return LogitsProcessor(compiled)


class Outlines(Plain):
    """Outlines' own generator with its default backend (outlines_core)."""

    name = "outlines"
    blanks = "[ ]?"
    """Outlines has one pattern for blanks at every place: this one takes our layout, and others."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
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
        given = {
            "schema": json.dumps(task.schema),
            "whitespace": self.blanks,
            "end_id": self.outlined.tokenizer.eos_token_id,
            "tokens": self.tokens,
        }
        worker = [sys.executable, str(Path(__file__).with_name("index_check.py"))]
        try:
            done = subprocess.run(
                worker,
                input=json.dumps(given),
                capture_output=True,
                text=True,
                timeout=self.compile_timeout,
            )
        except subprocess.TimeoutExpired:
            self.refused[task.id] = f"no index after {self.compile_timeout:g} s"
            return
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "Error" in line]
            self.refused[task.id] = (lines or [f"exit code {done.returncode}"])[-1][:160]

    def run(self, task: Task) -> Answer:
        import outlines
        from outlines.inputs import Chat
        from outlines.types import JsonSchema

        if task.id in self.refused:
            raise RuntimeError(self.refused[task.id])
        prompt = prompt_of(task, self.model)
        self.recorder.prompt = encode_prompt(prompt, self.tokenizer)
        started = time.perf_counter()
        wanted = JsonSchema(task.schema, whitespace_pattern=self.blanks)
        generator = outlines.Generator(self.outlined, wanted)
        compile_s = time.perf_counter() - started
        clock = generator.logits_processor = TimedProcessor(generator.logits_processor)
        asked = prompt if isinstance(prompt, str) else Chat(list(prompt))
        generator(asked, generation_config=self.config)
        return self.answer(self.recorder.output, self.recorder.ended_at, compile_s, clock)


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
        output = self.model.generate(input_ids=input_ids, **options)
        self.ended_at = time.perf_counter()
        self.output = output[0, input_ids.shape[1] :].tolist()
        return output


PEERS = {peer.name: peer for peer in (Plain, LLGuidance, XGrammar, Outlines)}
