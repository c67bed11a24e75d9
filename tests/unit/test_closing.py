"""Closing a text at the end of its token budget."""

from __future__ import annotations

import json

import pytest

import xpress_struct as xs
from tests.stubs import ScriptedDrafter, prefers, stub_model
from xpress_struct.decoding.closing import reserve
from xpress_struct.errors import ArgumentError

ITEM = {
    "type": "object",
    "properties": {"n": {"type": "string"}, "k": {"enum": ["red", "blue"]}},
    "required": ["n", "k"],
    "additionalProperties": False,
}
ENDLESS = xs.json_schema({"type": "array", "items": ITEM})
TEXT = "[" + '{"n": "xyzw", "k": "red"}, ' * 60


@pytest.mark.parametrize("budget", [40, 64, 100, 131, 250])
@pytest.mark.parametrize("rule", ["coupled", "token", "block"])
def test_an_endless_text_is_closed_within_its_budget(budget, rule):
    """A model that never ends its array gives a whole, valid document that fits the budget."""
    model = stub_model(prefers(TEXT))
    out = model.generate([1], ENDLESS, max_new_tokens=budget, on_limit="close", acceptance=rule)
    assert out.finish_reason == "closed"
    assert len(out.token_ids) <= budget
    assert out.value == json.loads(out.text)
    # What was written freely is the model's.
    free = budget - reserve(budget)
    assert out.text[:free] == TEXT[:free]


@pytest.mark.parametrize("budget", range(30, 200, 17))
def test_drafts_do_not_change_how_a_text_is_closed(budget):
    """Ids of a closed text are equal with and without speculation."""
    drafter = ScriptedDrafter(lambda output: list(TEXT.encode()[len(output) : len(output) + 9]))
    ids = [
        stub_model(prefers(TEXT))
        .generate([1], ENDLESS, drafter=guess, max_new_tokens=budget, on_limit="close")
        .token_ids
        for guess in (None, drafter, "lookup")
    ]
    assert ids[0] == ids[1] == ids[2]


def test_a_text_that_ends_in_time_is_not_touched():
    """A document that the model ends within the budget has finish_reason "stop" and its own text."""
    text = '[{"n": "a", "k": "red"}]'
    out = stub_model(prefers(text)).generate([1], ENDLESS, max_new_tokens=40, on_limit="close")
    assert (out.text, out.finish_reason) == (text, "stop")


def test_a_budget_that_is_too_small_cuts():
    """Where no way of closing fits, the output is cut and has no value."""
    out = stub_model(prefers(TEXT)).generate([1], xs.regex("[a-z]{50}!"), max_new_tokens=20, on_limit="close")
    assert out.finish_reason == "length"
    with pytest.raises(xs.XPressError):
        _ = out.value


def test_a_text_that_is_whole_when_the_budget_ends_is_closed():
    """A text that could go on but is whole as it stands counts as closed, not as cut."""
    out = stub_model(prefers("x" * 99)).generate([1], xs.regex("[a-z]+"), max_new_tokens=20, on_limit="close")
    assert (out.text, out.finish_reason) == ("x" * 20, "closed")


def test_without_a_closing_the_text_goes_on():
    """Where no closing fits yet, the model goes on, and may end the text in time by itself."""
    text = "a" * 18 + "!"
    made = xs.regex("([a-z]{18}!|[a-z]{40})")
    out = stub_model(prefers(text)).generate([1], made, max_new_tokens=20, on_limit="close")
    assert out.text == text
    assert out.complete


@pytest.mark.parametrize("budget", [24, 37, 60])
def test_drafts_do_not_change_how_a_statement_is_closed(budget):
    """Ids of a closed SQL statement are equal with and without speculation."""
    wanted = "SELECT a FROM t WHERE b IN (SELECT c FROM d WHERE e = 'some text') ORDER BY a, b, c, d, e, f, g"
    drafter = ScriptedDrafter(lambda output: list(wanted.encode()[len(output) : len(output) + 9]))
    outs = [
        stub_model(prefers(wanted)).generate(
            [1], xs.lark("sqlite"), drafter=guess, max_new_tokens=budget, on_limit="close"
        )
        for guess in (None, drafter)
    ]
    assert outs[0].token_ids == outs[1].token_ids
    assert outs[0].finish_reason == "closed"


def test_an_unknown_way_of_ending_is_refused():
    """on_limit takes "cut" and "close" only."""
    with pytest.raises(ArgumentError, match="on_limit"):
        stub_model(prefers("a")).generate([1], on_limit="trim")
