"""Asking the engine whether it compiles a piece of schema."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from llguidance import LLMatcher

from xpress_struct.constraints.compiled import limits

__all__ = ["limits", "refusal"]


def refusal(schema: Any) -> str:
    """Why the engine refuses `schema` (one line), or "" when it compiles it."""
    return _refusal(json.dumps(schema, sort_keys=True))


@lru_cache(maxsize=4096)
def _refusal(text: str) -> str:
    why = LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(text), limits=limits())
    return " ".join(why.split())[:160]
