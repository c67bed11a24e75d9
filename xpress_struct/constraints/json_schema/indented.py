"""The layout of `json.dumps(indent=2)`: a rewritten schema -> a Lark grammar of the engine.

The engine's own JSON compiler knows separators but no depth, so objects and arrays are written here, once
per depth; strings, numbers and constants stay the engine's (`%json`).
"""

from __future__ import annotations

import json
from typing import Any

from xpress_struct.errors import UnsupportedFeatureError

__all__ = ["DEEPEST", "indented_grammar"]

DEEPEST = 12
"""Containers nested deeper than this cannot be written: recursion is unrolled so far."""

_CONTAINERS = ("object", "array")


def indented_grammar(schema: Any) -> str:
    """A Lark grammar for a schema made by `rewrite`.

    Raises:
        UnsupportedFeatureError: every document is nested deeper than DEEPEST.
    """
    writer = _Writer(schema.get("$defs", {}))
    start = writer.value({key: part for key, part in schema.items() if key != "$defs"}, 0)
    if start is None:
        raise UnsupportedFeatureError(
            f"layout='indented' writes up to {DEEPEST} levels, and this schema needs more; take "
            "layout='spaced'.",
            feature="layout",
            pointer="",
        )
    return "\n".join([f"start: {start}", *writer.lines]) + "\n"


class _Writer:
    """Collects rules; every method returns an expression, or None when no text is possible."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._names: dict[tuple[str, int], str | None] = {}
        self.lines: list[str] = []

    def value(self, schema: Any, depth: int) -> str | None:
        """A value whose container, if it is one, stands at `depth`."""
        if schema is False:
            return None
        container = self._holds_containers(schema)
        key = (json.dumps(schema, sort_keys=False), depth if container else -1)
        if key not in self._names:
            body = self._body(schema, depth) if container else f"%json {key[0]}"
            self._names[key] = None if body is None else self._rule(body)
        return self._names[key]

    def _rule(self, body: str) -> str:
        name = f"r{len(self.lines)}"
        self.lines.append(f"{name}: {body}")
        return name

    def _holds_containers(self, schema: dict[str, Any]) -> bool:
        return (
            "$ref" in schema
            or schema.get("type") in _CONTAINERS
            or any(self._holds_containers(part) for part in schema.get("anyOf", ()))
        )

    def _body(self, schema: dict[str, Any], depth: int) -> str | None:
        if "$ref" in schema:
            return self.value(self._definitions[schema["$ref"].removeprefix("#/$defs/")], depth)
        if "anyOf" in schema:
            parts = [self.value(part, depth) for part in schema["anyOf"]]
            return " | ".join(dict.fromkeys(part for part in parts if part)) or None
        return self._object(schema, depth) if schema["type"] == "object" else self._array(schema, depth)

    def _object(self, schema: dict[str, Any], depth: int) -> str | None:
        required = set(schema.get("required", ()))
        low, high = schema.get("minProperties", 0), schema.get("maxProperties")
        between = ",\n" + "  " * (depth + 1)
        members = []
        for name, part in schema.get("properties", {}).items():
            inner = self.value(part, depth + 1) if depth < DEEPEST else None
            if inner is None and name in required:
                return None
            if inner is not None:
                # The colon stands apart: a longer literal would win over other keys of the same letters.
                key = _text(json.dumps(name, ensure_ascii=False))
                members.append((f"{key} {_text(': ')} {inner}", name in required))
        extra = self._extra(schema, depth)
        # The rewriter leaves counts only where every declared member is required.
        fixed = len(members)
        rest = _times(extra, between, max(0, low - fixed), None if high is None else high - fixed)
        full = self._members(members, extra, rest, between, max(1, low), high)
        empty = _text("{}") if not required and low == 0 else None
        return self._wrapped("{", full, "}", empty, depth)

    def _extra(self, schema: dict[str, Any], depth: int) -> str | None:
        """A member whose key is not declared."""
        parts = []
        for pattern, part in schema.get("patternProperties", {}).items():
            inner = self.value(part, depth + 1) if depth < DEEPEST else None
            if inner is not None:
                key = self.value({"type": "string", "pattern": pattern}, -1)
                parts.append(f"{key} {_text(': ')} {inner}")
        return self._rule(" | ".join(parts)) if parts else None

    def _members(
        self,
        members: list[tuple[str, bool]],
        extra: str | None,
        rest: str | None,
        between: str,
        low: int,
        high: int | None,
    ) -> str | None:
        """At least one member: `first` while none is written yet, `after` behind another."""
        after = rest
        first: str | None = None
        if extra is not None and (high is None or high >= 1):
            more = _times(extra, between, max(0, low - 1), None if high is None else high - 1)
            first = None if more is None else f"{extra} {more}".strip()
        for member, needed in reversed(members):
            if after is None:
                return None
            begun = f"{member} {after}".strip()
            step = self._rule(f"{_text(between)} {begun}")
            first = self._rule(begun) if needed or first is None else self._rule(f"{begun} | {first}")
            after = step if needed else f"{step}?" if after == "" else self._rule(f"{step} | {after}")
        return first

    def _array(self, schema: dict[str, Any], depth: int) -> str | None:
        low, high = schema.get("minItems", 0), schema.get("maxItems")
        between = ",\n" + "  " * (depth + 1)
        deeper = depth < DEEPEST
        prefix = [self.value(part, depth + 1) if deeper else None for part in schema.get("prefixItems", ())]
        rest = self.value(schema.get("items", False), depth + 1) if deeper else None
        if high is not None:
            prefix = prefix[:high]
        fixed = len(prefix)
        tail = _times(rest, between, max(0, low - fixed), None if high is None else high - fixed)
        # From the last place backwards: behind place i stands `tail`, needed while i is below minItems.
        for place in range(fixed - 1, 0, -1):
            item = prefix[place]
            if item is None or tail is None:
                tail = None if low > place else ""
                continue
            step = self._rule(f"{_text(between)} {item} {tail}".rstrip())
            tail = step if low > place else f"{step}?"
        if fixed:
            full = None if prefix[0] is None or tail is None else f"{prefix[0]} {tail}".strip()
        elif high == 0 or rest is None:
            full = None
        else:
            more = _times(rest, between, max(0, low - 1), None if high is None else high - 1)
            full = f"{rest} {more}".strip()
        return self._wrapped("[", full, "]", _text("[]") if low == 0 else None, depth)

    def _wrapped(
        self, opening: str, full: str | None, closing: str, empty: str | None, depth: int
    ) -> str | None:
        parts = [] if empty is None else [empty]
        if full is not None:
            start, end = opening + "\n" + "  " * (depth + 1), "\n" + "  " * depth + closing
            parts.append(f"{_text(start)} {self._rule(full)} {_text(end)}")
        return " | ".join(parts) or None


def _times(item: str | None, between: str, low: int, high: int | None) -> str | None:
    """`low` to `high` items, each with the separator in front; None when that is impossible."""
    if high is not None and high < low:
        return None
    if item is None or high == 0:
        return "" if low == 0 else None
    bounds = f"{{{low},{'' if high is None else high}}}"
    return f"({_text(between)} {item}){bounds}"


def _text(text: str) -> str:
    """A literal of the grammar."""
    return json.dumps(text, ensure_ascii=False)
