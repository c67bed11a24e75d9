"""Grammar-constrained structured output from Hugging Face models, made fast by speculative decoding.

    import xpress_struct as xs

    person = xs.generate_json("Extract: Maria Lopez, 34, lives in Madrid.", Person)

Output always satisfies the constraint, and its tokens are distributed exactly as autoregressive
sampling from the target's masked distribution.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xpress_struct.api import generate, generate_json, generate_many, load, stream
    from xpress_struct.constraints.code import code
    from xpress_struct.constraints.compiled import clear_cache
    from xpress_struct.constraints.constraint import Constraint
    from xpress_struct.constraints.json_schema import json_schema
    from xpress_struct.constraints.lark import lark
    from xpress_struct.constraints.regex import choice, regex
    from xpress_struct.constraints.sql import sql
    from xpress_struct.constraints.tools import tools
    from xpress_struct.errors import XPressError
    from xpress_struct.model import Model
    from xpress_struct.options import Options
    from xpress_struct.results import Generation, Stats
    from xpress_struct.streaming import Stream

__version__ = "0.1.0"

# torch and transformers take seconds to import, so a name is imported when it is first used.
_HOMES = {
    "Constraint": "constraints.constraint",
    "Generation": "results",
    "Model": "model",
    "Options": "options",
    "Stats": "results",
    "Stream": "streaming",
    "XPressError": "errors",
    "choice": "constraints.regex",
    "clear_cache": "constraints.compiled",
    "code": "constraints.code",
    "generate": "api",
    "generate_json": "api",
    "generate_many": "api",
    "json_schema": "constraints.json_schema",
    "lark": "constraints.lark",
    "load": "api",
    "regex": "constraints.regex",
    "sql": "constraints.sql",
    "stream": "api",
    "tools": "constraints.tools",
}

__all__ = [
    "Constraint",
    "Generation",
    "Model",
    "Options",
    "Stats",
    "Stream",
    "XPressError",
    "choice",
    "clear_cache",
    "code",
    "generate",
    "generate_json",
    "generate_many",
    "json_schema",
    "lark",
    "load",
    "regex",
    "sql",
    "stream",
    "tools",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
