"""`generate` of transformers under the masks of llguidance and xgrammar.

JSON comes from the schema, as far as they can be told in the layout of `json.dumps`: ", " and ": ". Of SQL
and Python they get the grammar that this library has made; what it does besides (scopes of SQL) they lack.
"""

from __future__ import annotations

import json
from typing import Any

import torch

from xpress_struct.constraints.compiled import limits
from xpress_struct.lab.bench.systems.plain import Plain, Setting
from xpress_struct.lab.bench.tasks.task import Category, Task

__all__ = ["LLGuidance", "XGrammar"]


class LLGuidance(Plain):
    """`generate` under llguidance's masks."""

    name = "llguidance"
    label = "transformers, llguidance masks"
    takes: tuple[Category, ...] = ("json", "sql", "code")
    constrains = True

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        from llguidance.hf import from_tokenizer

        self.width = self.model.target.width
        self.engine = from_tokenizer(self.tokenizer, n_vocab=self.width, eos_token=self.ends)
        self.compiled: dict[str, Any] = {}

    def prepare(self, task: Task) -> None:
        """Compiles a grammar that several documents share."""
        if task.constraint is not None and task.constraint.grammar not in self.compiled:
            self.compiled[task.constraint.grammar] = self._matcher(task.constraint.grammar)

    def processor(self, task: Task) -> Any:
        from llguidance import LLMatcher

        if task.schema is not None:
            layout: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
            matcher = self._matcher(
                LLMatcher.grammar_from_json_schema(json.dumps(task.schema), overrides=layout)
            )
        elif task.constraint is not None:
            matcher = self.compiled[task.constraint.grammar].deep_copy()
            if not matcher.consume_tokens(self.model.vocabulary.encode(task.grammar_start)):
                raise ValueError(f"llguidance refuses the beginning: {matcher.get_error()}")
        else:
            return None
        return _LLGuidanceProcessor(matcher, self.width)

    def _matcher(self, grammar: str) -> Any:
        from llguidance import LLMatcher

        matcher = LLMatcher(self.engine, grammar, log_level=0, limits=limits())
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return matcher


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
    label = "transformers, xgrammar masks"
    # Its Lark has no intersections of terminals, which the grammar of Python needs.
    takes: tuple[Category, ...] = ("json", "sql")
    constrains = True

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        import xgrammar

        info = xgrammar.TokenizerInfo.from_huggingface(
            self.tokenizer, vocab_size=self.model.target.width, stop_token_ids=self.ends
        )
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1)
        self.compiled: dict[str, Any] = {}

    def prepare(self, task: Task) -> None:
        """Compiles a grammar that several documents share."""
        if task.constraint is not None and task.constraint.grammar not in self.compiled:
            self.compiled[task.constraint.grammar] = self.compiler.compile_lark(task.constraint.grammar)

    def processor(self, task: Task) -> Any:
        from xgrammar.contrib.hf import LogitsProcessor

        if task.constraint is not None:
            return LogitsProcessor(self.compiled[task.constraint.grammar])
        if task.schema is None:
            return None
        # A string is compiled with the members in their order; cleared, so nothing is compiled before.
        self.compiler.clear_cache()
        compiled = self.compiler.compile_json_schema(
            json.dumps(task.schema), any_whitespace=False, separators=(", ", ": "), strict_mode=False
        )
        return LogitsProcessor(compiled)
