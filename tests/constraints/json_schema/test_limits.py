"""Hostile schemas end in bounded time (B34)."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

import pytest

from xpress_struct.constraints.json_schema.rewrite import rewrite
from xpress_struct.errors import ArgumentError, CompileLimitError


def deep(levels: int) -> Any:
    schema: Any = {"type": "integer"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def product(factors: int, width: int) -> Any:
    """An "and" of "or"s: width ** factors combinations."""
    options = [
        {"anyOf": [{"properties": {f"p{i}": {"const": j}}} for j in range(width)]} for i in range(factors)
    ]
    return {"type": "object", "allOf": options}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "(a{0,200}){0,200}"},
        {"type": "string", "not": {"pattern": "(a|b)*a(a|b){30}"}},
        {"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(50_000)}},
        {"enum": [f"{i:0100}" for i in range(10_000)]},
        deep(90),
        product(12, 6),
        {"oneOf": [{"required": [f"a{i}"]} for i in range(300)]},
        {"type": "object", "dependentRequired": {f"a{i}": [f"b{i}"] for i in range(60)}},
        {
            "type": "object",
            "patternProperties": {f"{chr(97 + i)}.*{chr(98 + i)}": {"minimum": i} for i in range(20)},
        },
        {"type": "object", "properties": {f"p{i}": {} for i in range(60)}, "minProperties": 30},
    ],
    ids=[
        "repeats",
        "states",
        "properties",
        "values",
        "deep",
        "product",
        "oneOf",
        "dependent",
        "patterns",
        "counts",
    ],
)
def test_time_is_bounded(schema: Any) -> None:
    threads = threading.active_count()
    start = time.perf_counter()
    with contextlib.suppress(CompileLimitError):
        rewrite(schema)
    assert time.perf_counter() - start < 10
    assert threading.active_count() == threads


def test_a_document_that_is_too_deep() -> None:
    with pytest.raises(CompileLimitError, match="levels deep"):
        rewrite(deep(400))


def test_a_document_that_is_too_large() -> None:
    with pytest.raises(CompileLimitError, match="values"):
        rewrite({"enum": list(range(500_000))})


def test_what_does_not_fit_is_reported_and_not_dropped() -> None:
    notes = rewrite(product(12, 6)).checked_after
    assert {n.keyword for n in notes} <= {"allOf", "anyOf"}
    assert notes


def test_a_large_plain_schema_compiles() -> None:
    leaf = {"enum": ["a" * 20, "b" * 20]}
    inner = {"type": "object", "properties": {f"x{j}": leaf for j in range(30)}}
    start = time.perf_counter()
    made = rewrite({"type": "object", "properties": {f"k{i}": dict(inner) for i in range(200)}})
    assert time.perf_counter() - start < 5
    assert made.checked_after == ()


def test_options_are_checked() -> None:
    with pytest.raises(ArgumentError, match="key_order"):
        rewrite({}, key_order="sorted")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="formats"):
        rewrite({}, formats="all")  # type: ignore[arg-type]
