"""What is kept out of training: by schema, the same in every run."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from xpress_struct.training.reserved import RESERVED

__all__ = ["group_of", "is_held_out"]

_ONE_IN = 4
_WORDS_ONLY = ("description", "title", "$schema", "$id", "$comment", "default", "examples")


def group_of(content: Any) -> str:
    """What a prompt is held out by: a hash, 16 hexadecimal digits, of its schema.

    Args:
        content: a JSON Schema, of which the order of keys and what only readers need do not count; or any
            other JSON value, a database's text say.
    """
    text = json.dumps(_plain(content), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_held_out(group: str) -> bool:
    """Whether prompts of this group serve evaluation only: a fixed quarter of all hashes, and the schemas
    of the function-calling tasks that `python -m benchmarks.speed --limit 40` runs."""
    return int(group, 16) % _ONE_IN == 0 or group in RESERVED


def _plain(node: Any, *, names: bool = False) -> Any:
    """Without words for readers; keys of `properties` are names and stay."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _plain(value, names=key in ("properties", "$defs", "definitions") and not names)
        for key, value in node.items()
        if names or key not in _WORDS_ONLY
    }
