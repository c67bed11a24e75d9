"""The examples, on the embedded model."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

pytestmark = pytest.mark.model

EXAMPLES: dict[str, Callable[[Any], bool]] = {
    "extraction": lambda order: (order.number, order.city, order.delivery) == (4711, "Oslo", "express"),
    "sql_database": lambda rows: {"Ada", "Bo", "Cleo"} <= {cell for row in rows for cell in row},
    "toml_config": lambda text: text.startswith("[server]") and "127.0.0.1" in text,
    "python_code": lambda source: isinstance(ast.parse(source).body[0], ast.FunctionDef),
    "hf_generate": lambda city: city == {"city": "Paris", "country": "France", "capital": True},
    "openai_client": lambda event: event.participants == ["Alice", "Bob"],
    "train_drafter": lambda name: name == "xpress",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_gives_what_it_says(name, capsys):
    """`python -m examples.NAME` prints its answer and returns it."""
    found = import_module(f"examples.{name}").main()
    assert EXAMPLES[name](found), found
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("name", ["tool_calls", "outlines_speedup"])
def test_example_holds_its_own_assertions(name, capsys):
    """These compare with and without speculation themselves: the same tokens or texts."""
    import_module(f"examples.{name}").main()
    assert "with" in capsys.readouterr().out
