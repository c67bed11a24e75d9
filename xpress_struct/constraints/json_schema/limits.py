"""Budgets that keep the rewriting of a hostile schema short."""

from __future__ import annotations

from xpress_struct.errors import CompileLimitError

__all__ = [
    "ASK_ENGINE",
    "COARSE_BRANCHES",
    "MAX_BRANCHES",
    "MAX_COARSE_OUTPUT",
    "MAX_DEPTH",
    "MAX_NAMES",
    "MAX_NODES",
    "MAX_OUTPUT",
    "MAX_WORK",
    "WORK_PER_VALUE",
    "BlowupError",
    "Budget",
    "CircularError",
    "measure",
]

MAX_NODES = 400_000
"""JSON values in one schema document."""
MAX_NAMES = 10_000
"""Properties that one object may declare."""
MAX_DEPTH = 200
"""Levels of nesting in one schema document."""
MAX_BRANCHES = 400
"""Alternatives of one product of subschemas; beyond it, the factor is checked after generation."""
COARSE_BRANCHES = 24
"""The same when the exact rewriting was too large."""
MAX_WORK = 60_000
"""Intersections of alternatives in one rewriting; beyond it, the coarse one, then CompileLimitError."""
WORK_PER_VALUE = 10
"""Intersections that every value of the document adds to that limit."""
MAX_OUTPUT = 1_000_000
"""Characters of an exact result; beyond it, the coarse one."""
MAX_COARSE_OUTPUT = 4_000_000
"""Characters of a coarse result; beyond it, CompileLimitError."""
ASK_ENGINE = 150_000
"""Characters of an exact result from which on the engine is asked whether it takes it."""


class BlowupError(Exception):
    """A product has too many alternatives."""


class CircularError(Exception):
    """A schema refers to itself in place; `pointer` says where."""

    def __init__(self, pointer: str) -> None:
        self.pointer = pointer
        super().__init__(pointer)


class Budget:
    """Counts work.

    Raises:
        CompileLimitError: from `spend`, when `limit` units are spent.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.spent = limit, 0

    def spend(self, units: int = 1) -> None:
        self.spent += units
        if self.spent > self.limit:
            raise CompileLimitError(
                f"the schema combines too many alternatives (more than {self.limit} intersections)"
            )


def measure(schema: object) -> int:
    """The number of values in a document; documents that are too large or too deep are refused.

    Raises:
        CompileLimitError: more than MAX_NODES values or MAX_DEPTH levels.
    """
    stack, count = [(schema, 1)], 0
    while stack:
        value, depth = stack.pop()
        count += 1
        if count > MAX_NODES:
            raise CompileLimitError(f"the schema has more than {MAX_NODES} values")
        if depth > MAX_DEPTH:
            raise CompileLimitError(f"the schema is nested more than {MAX_DEPTH} levels deep")
        if isinstance(value, dict):
            stack += [(v, depth + 1) for v in value.values()]
        elif isinstance(value, list):
            stack += [(v, depth + 1) for v in value]
    return count
