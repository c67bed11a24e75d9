"""What the tests of Outlines share: output types by backend, and what Outlines answers by itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import outlines
import torch
from outlines.types import CFG, Regex
from pydantic import BaseModel

from tests.integrations.tiny import PROMPTS, TOKENIZER, inputs, network, output
from xpress_struct.integrations.outlines import OutlinesGenerate


class Record(BaseModel):
    name: Literal["abc", "b", "true"]
    ok: bool


GBNF = """root ::= item ("," item)*
item ::= "true" | "(" root ")" | [a-c] [a-d]? "c"
"""
LARK = """start: item ("," item)*
item: "true" | "(" start ")" | /[a-c][a-d]?c/
"""
TEXT = r"[a-c]{2,6}( [a-d]{1,4}){3,9}"
TYPES: dict[tuple[str, str], Any] = {
    ("outlines_core", "json"): Record,
    ("outlines_core", "regex"): Regex(TEXT),
    ("xgrammar", "json"): Record,
    ("xgrammar", "regex"): Regex(TEXT),
    ("xgrammar", "cfg"): CFG(GBNF),
    ("llguidance", "json"): Record,
    ("llguidance", "regex"): Regex(TEXT),
    ("llguidance", "cfg"): CFG(LARK),
}
"""Backend and kind -> output type. outlines_core has no CFG."""
SAME_MASKS = [key for key in TYPES if key[0] != "llguidance"]
LIMIT = 60


@cache
def theirs() -> outlines.models.Transformers:
    """The Outlines model of an existing script."""
    return outlines.from_transformers(network(), TOKENIZER)


@cache
def processor(backend: str, kind: str) -> Any:
    """The logits processor that Outlines compiles; its state is reset before each use."""
    return outlines.Generator(theirs(), TYPES[backend, kind], backend=backend).logits_processor


def decoding(**options: Any) -> OutlinesGenerate:
    return OutlinesGenerate(tokenizer=TOKENIZER, **options)


def run(wanted: Any, *prompts: str, others: Sequence[Any] = (), **options: Any) -> list[tuple[int, ...]]:
    """Output ids by row of `generate` under an Outlines processor.

    Args:
        wanted: the processor.
        others: processors beside it.
    """
    wanted.reset()
    read = inputs(*(prompts or PROMPTS[1:2]))
    # Outlines' own kernels are compiled, which takes longer than what is tested.
    with torch.compiler.set_stance("force_eager"):
        rows = network().generate(
            **read, logits_processor=[*others, wanted], **{"max_new_tokens": LIMIT, **options}
        )
    return [output(row, read["input_ids"].shape[1]) for row in rows]
