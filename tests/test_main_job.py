"""The main job on the real embedded model."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel

import xpress_struct as xs
from examples import demo

pytestmark = pytest.mark.model


class Order(BaseModel):
    customer: str
    quantity: int
    shipping: Literal["standard", "express"]


def test_the_demo_runs(capsys):
    """`make demo` extracts the values that matter; its assertions hold."""
    demo.main()
    printed = capsys.readouterr().out
    assert "Person(name='Maria Lopez', age=34" in printed
    assert "tokens per forward" in printed


@pytest.fixture(scope="module")
def model():
    return xs.load()


@pytest.mark.parametrize(
    "asked", [{}, {"temperature": 0.8, "seed": 4}, {"temperature": 1.0, "top_p": 0.9, "seed": 5}]
)
def test_speculation_changes_no_token(model, asked):
    """With the real model and tokenizer, ids with lookup equal ids without, and save forwards."""
    constraint = xs.json_schema(Order)
    prompt = model.prompt_with_schema("Order: 3 lamps for Jane Smith in Boston, by express.", constraint)
    asked = {"max_new_tokens": 100, "on_limit": "close", **asked}
    plain, helped = (model.generate(prompt, constraint, drafter=d, **asked) for d in (None, "lookup"))
    assert plain.token_ids == helped.token_ids
    assert isinstance(plain.value, Order)
    assert helped.stats.forwards <= plain.stats.forwards


def test_generate_json_uses_the_embedded_model():
    """The one-line call returns a typed value from the default model."""
    answer = xs.generate_json("Is 7 a prime number?", Literal["yes", "no"], max_new_tokens=10)
    assert answer in ("yes", "no")
