"""Strings in the engine's schema language, and the patterns for keys that are not declared."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from . import charset as cs
from . import engine
from . import regular as rx
from .regex_text import written
from .shapes import Str

__all__ = ["emit_string", "joined", "outside", "string_language"]

_MAX_NAME = 60
"""Characters of a name that are told apart; texts that share them all are excluded with it."""
_MISCLOSED = cs.make((ord(c), ord(c)) for c in "\"'`:,={}[]\\")
_BLANK = cs.make([(0, 0x20), (0xA0, 0xA0)])


def outside(names: Iterable[str], *, as_keys: bool) -> rx.Regex:
    """Texts that are none of `names`.

    With `as_keys`, neither the empty text, nor a name followed, perhaps after blanks, by a character that
    would end a key in a careless hand (quote, colon, bracket): `forecast' : [{` is no key beside `forecast`.
    """
    return _outside(tuple(names), as_keys)


@lru_cache(maxsize=1024)
def _outside(names: tuple[str, ...], as_keys: bool) -> rx.Regex:
    tree: dict[str, Any] = {}
    for name in names:
        node = tree
        for ch in name[:_MAX_NAME]:
            node = node.setdefault(ch, {})
        node[""] = len(name) > _MAX_NAME
    return _beyond(tree, as_keys, root=True)


def _beyond(node: dict[str, Any], as_keys: bool, root: bool = False) -> rx.Regex:
    ends = "" in node
    if ends and node[""]:
        return rx.NOTHING
    children = {ch: sub for ch, sub in node.items() if ch}
    used = cs.make((ord(ch), ord(ch)) for ch in children)
    free = cs.complement(used)
    options: list[rx.Regex] = []
    if ends and as_keys:
        apart = rx.cat(rx.chars(cs.complement(cs.union(_MISCLOSED, _BLANK))), rx.ALL)
        blank = rx.chars(cs.intersect(free, _BLANK))
        more = rx.repeat(rx.chars(_BLANK), 0, None)
        options.append(rx.cat(blank, more, rx.alt(apart, rx.EPSILON)))
        free = cs.subtract(free, cs.union(_MISCLOSED, _BLANK))
    options.append(rx.cat(rx.chars(free), rx.ALL))
    for ch, sub in children.items():
        options.append(rx.cat(rx.literal(ch), _beyond(sub, as_keys)))
    if not ends and not (root and as_keys):
        options.append(rx.EPSILON)
    return rx.alt(*options)


def string_language(s: Str) -> rx.Regex:
    """All texts of `s` as one language."""
    if s.values is not None:
        return rx.alt(*map(rx.literal, s.values))
    parts = list(s.patterns)
    if s.low or s.high is not None:
        parts.append(rx.any_of_length(s.low, s.high))
    if s.excluded:
        parts.append(outside(sorted(s.excluded), as_keys=False))
    return rx.both(*parts)


def emit_string(s: Str) -> tuple[list[dict[str, Any]], str]:
    """Alternatives for the engine (none when nothing is left), and what had to be dropped, or ""."""
    if s.values is not None:
        return [{"enum": list(s.values)}], ""
    patterns = list(s.patterns)
    if s.excluded:
        patterns.append(outside(sorted(s.excluded), as_keys=False))
    texts: list[str] = []
    dropped = ""
    plain = [p for p in patterns if rx.is_plain(p)]
    others = [p for p in patterns if not rx.is_plain(p)]
    for pattern in plain + others:
        try:
            text = written(pattern)
        except (rx.TooComplexError, RecursionError) as why:
            dropped = f"a pattern has no regular expression of bounded size ({why})"
            continue
        if text is None:
            return [], ""
        texts.append(text)
    schema = _string(texts, s.low, s.high)
    if not texts:
        return [schema], dropped
    refused = engine.refusal(schema)
    if "nsatisfiable" in refused or "always empty" in refused:
        return [], dropped
    if refused:
        for weaker in (_string(texts, 0, None), _string(texts[:1], s.low, s.high)):
            if not engine.refusal(weaker):
                return [weaker], dropped or f"the engine refuses it: {refused}"
        return [_string([], s.low, s.high)], dropped or f"the engine refuses it: {refused}"
    return [schema], dropped


def _string(texts: list[str], low: int, high: int | None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if low:
        schema["minLength"] = low
    if high is not None:
        schema["maxLength"] = high
    if len(texts) == 1:
        schema["pattern"] = texts[0]
    elif texts:
        schema["allOf"] = [{"type": "string", "pattern": t} for t in texts]
    return schema


def joined(alternatives: list[Any]) -> Any:
    """One schema for a list of alternatives."""
    # Compared as text: the order of an object's members counts.
    unique = list({json.dumps(one): one for one in alternatives}.values())
    if not unique:
        return False
    return unique[0] if len(unique) == 1 else {"anyOf": unique}
