"""Cleaning the definitions: what can match nothing goes, what is used once moves to its place."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .emit import Definition
from .strings import joined

__all__ = ["prune"]

_MAX_INLINE_DEPTH = 24


def _target(schema: Any) -> str | None:
    if isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
        return str(schema["$ref"]).rpartition("/")[2]
    return None


class _Pruner:
    def __init__(self, definitions: dict[str, Definition]) -> None:
        self.definitions = definitions
        self.good: set[str] = set()

    def possible(self, schema: Any) -> bool:
        """Whether `schema` holds a finite value, by what is known so far."""
        if schema is False:
            return False
        name = _target(schema)
        if name is not None:
            return name in self.good
        if "anyOf" in schema:
            return any(self.possible(s) for s in schema["anyOf"])
        if schema.get("type") == "object":
            members = schema.get("properties", {})
            if not all(self.possible(members[n]) for n in schema.get("required", ())):
                return False
            if schema.get("minProperties", 0) > len(schema.get("required", ())):
                return any(self.possible(s) for s in schema.get("patternProperties", {}).values())
        if schema.get("type") == "array":
            low, prefix = schema.get("minItems", 0), schema.get("prefixItems", [])
            if not all(self.possible(s) for s in prefix[:low]):
                return False
            return low <= len(prefix) or self.possible(schema["items"])
        return True

    def find(self) -> None:
        while True:
            more = {
                name
                for name, made in self.definitions.items()
                if name not in self.good and any(self.possible(s) for s in made.alternatives)
            }
            if not more:
                return
            self.good |= more

    def clean(self, schema: Any) -> Any:
        """`schema` without members that hold nothing; False when it holds nothing itself."""
        if not self.possible(schema):
            return False
        if "anyOf" in schema:
            return joined([c for c in map(self.clean, schema["anyOf"]) if c is not False])
        out = dict(schema)
        for keyword in ("properties", "patternProperties"):
            if keyword in out:
                cleaned = {n: self.clean(s) for n, s in out[keyword].items()}
                out[keyword] = {n: s for n, s in cleaned.items() if s is not False}
        if out.get("type") == "array":
            prefix = [self.clean(s) for s in out.get("prefixItems", [])]
            rest = self.clean(out["items"])
            if False in prefix:
                prefix = prefix[: prefix.index(False)]
                out["maxItems"] = min(out.get("maxItems", len(prefix)), len(prefix))
                rest = False
            elif rest is False:
                out["maxItems"] = min(out.get("maxItems", len(prefix)), len(prefix))
            out["items"] = rest
            if prefix:
                out["prefixItems"] = prefix
            else:
                out.pop("prefixItems", None)
        return out


def _count(schema: Any, counts: Counter[str]) -> None:
    stack = [schema]
    while stack:
        value = stack.pop()
        name = _target(value)
        if name is not None:
            counts[name] += 1
        elif isinstance(value, dict):
            for keyword in ("properties", "patternProperties"):
                stack += value.get(keyword, {}).values()
            stack += value.get("anyOf", ())
            stack += value.get("prefixItems", ())
            stack.append(value.get("items", False))


class _Inliner:
    def __init__(self, bodies: dict[str, Any], once: set[str]) -> None:
        self.bodies, self.once = bodies, once

    def put(self, schema: Any, depth: int) -> Any:
        name = _target(schema)
        if name is not None:
            if name in self.once and depth < _MAX_INLINE_DEPTH:
                self.once.discard(name)
                return self.put(self.bodies.pop(name), depth + 1)
            return schema
        if not isinstance(schema, dict):
            return schema
        out = dict(schema)
        for keyword in ("properties", "patternProperties"):
            if keyword in out:
                out[keyword] = {n: self.put(s, depth + 1) for n, s in out[keyword].items()}
        for keyword in ("anyOf", "prefixItems"):
            if keyword in out:
                out[keyword] = [self.put(s, depth + 1) for s in out[keyword]]
        if "items" in out:
            out["items"] = self.put(out["items"], depth + 1)
        return out


def prune(root: Any, definitions: dict[str, Definition]) -> tuple[Any, list[Definition]]:
    """The whole schema for the engine (False when nothing matches), and the definitions that it uses."""
    pruner = _Pruner(definitions)
    pruner.find()
    if not pruner.possible(root):
        return False, []
    bodies: dict[str, Any] = {}
    counts: Counter[str] = Counter()
    queue = [str(_target(root))]
    for name in queue:
        kept = [c for c in map(pruner.clean, definitions[name].alternatives) if c is not False]
        bodies[name] = joined(kept)
        found: Counter[str] = Counter()
        _count(bodies[name], found)
        counts += found
        queue += [n for n in found if n not in bodies and n not in queue]
    used = [definitions[name] for name in queue]
    start = queue[0]
    once = {n for n in queue if counts[n] == 1 and n != start}
    inliner = _Inliner(bodies, once)
    for name in queue:
        if name in bodies:
            body = bodies[name]
            once.discard(name)
            bodies[name] = inliner.put(body, 0)
    if counts[start] == 0:
        schema = bodies.pop(start)
    else:
        schema = {"$ref": f"#/$defs/{start}"}
    return ({**schema, "$defs": bodies} if bodies else schema), used
