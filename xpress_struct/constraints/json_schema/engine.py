"""Asking the engine whether it compiles a piece of schema."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from llguidance import LLMatcher, LLParserLimits

__all__ = ["limits", "refusal"]

_FUEL = 10
"""Times the engine's default lexer fuel: patterns of many repeated classes need more than the default."""


def limits() -> LLParserLimits:
    """Limits under which rewritten schemas are compiled and matched."""
    usual = LLParserLimits()
    return LLParserLimits(
        initial_lexer_fuel=usual.initial_lexer_fuel * _FUEL,
        step_lexer_fuel=usual.step_lexer_fuel * _FUEL,
    )


def refusal(schema: Any) -> str:
    """Why the engine refuses `schema` (one line), or "" when it compiles it."""
    return _refusal(json.dumps(schema, sort_keys=True))


@lru_cache(maxsize=4096)
def _refusal(text: str) -> str:
    why = LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(text), limits=limits())
    return " ".join(why.split())[:160]
