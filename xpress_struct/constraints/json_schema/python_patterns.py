"""Patterns that ECMA-262 has and Python's `re` does not (`\\p{L}`, `\\cC`), written for Python.

The final validator is jsonschema, which hands patterns to `re` as they are.
"""

from __future__ import annotations

import re
from typing import Any

from .ecma_nodes import PatternError
from .regex_text import language, written
from .regular import TooComplexError

__all__ = ["readable"]

_VALUES = ("const", "enum", "default", "examples")
_MAPS = ("properties", "$defs", "definitions", "dependentSchemas", "dependencies")


def readable(schema: Any) -> Any:
    """The schema with every pattern in Python's syntax; patterns that Python reads stay as they are."""
    if isinstance(schema, list):
        return [readable(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = {}
    for key, value in schema.items():
        if key == "pattern" and isinstance(value, str):
            value = _python(value)
        elif key == "patternProperties" and isinstance(value, dict):
            value = {_python(pattern): readable(part) for pattern, part in value.items()}
        elif key in _MAPS and isinstance(value, dict):
            value = {name: readable(part) for name, part in value.items()}
        elif key not in _VALUES:
            value = readable(value)
        found[key] = value
    return found


def _python(pattern: str) -> str:
    try:
        re.compile(pattern)
        return pattern
    except re.error:
        pass
    try:
        text = written(language(pattern, either=True))
    except (PatternError, TooComplexError):
        return pattern
    if text is None:
        return "(?!)"
    plain = re.sub(r"\\x\{([0-9a-fA-F]+)\}", lambda code: f"\\U{int(code[1], 16):08x}", text)
    return plain.removesuffix("$") + r"\Z"
