"""Results: counters that add up, and values that are not there when the output was cut."""

from __future__ import annotations

import json

import pytest

import xpress_struct as xs
from tests.stubs import END, ScriptedDrafter, constant, prefers, stub_model
from xpress_struct.errors import IncompleteOutputError
from xpress_struct.results import Generation, Stats

ANSWER = '{"a": 1, "b": "xyz"}'
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


def ran(guess, rule="coupled", **options):
    drafter = None if guess is None else ScriptedDrafter(guess)
    model = stub_model(prefers(ANSWER), drafter=drafter)
    return model.generate([0], xs.json_schema(SCHEMA), acceptance=rule, seed=1, **options)


GUESSES = {
    "none": None,
    "garbage": lambda output: [65] * 4,
    "perfect": lambda output: [*ANSWER.encode(), END][len(output) : len(output) + 4],
    "half": lambda output: [*ANSWER.encode()[len(output) : len(output) + 2], 65],
}


@pytest.mark.parametrize("rule", ["coupled", "token", "block"])
@pytest.mark.parametrize("kind", GUESSES)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_counters_add_up(temperature, kind, rule):
    """Every output token is forced, an accepted guess, or the target's own: one per forward."""
    stats = ran(GUESSES[kind], rule, temperature=temperature, block_length=4).stats
    own = stats.output_tokens - stats.forced - stats.accepted
    # An accepted end token leaves no token of the target's own in the last round.
    assert own in (stats.forwards, stats.forwards - 1)
    assert sum(stats.rounds_by_accepted) == stats.forwards
    assert sum(i * n for i, n in enumerate(stats.rounds_by_accepted)) == stats.accepted
    assert sum(stats.proposed_by_slot) == stats.proposed
    assert sum(stats.accepted_by_slot) == stats.accepted
    pairs = zip(stats.accepted_by_slot, stats.proposed_by_slot, strict=False)
    assert all(kept <= offered for kept, offered in pairs)
    assert len(stats.accepted_by_slot) <= len(stats.proposed_by_slot)
    assert stats.proposed_by_slot == sorted(stats.proposed_by_slot, reverse=True)


def test_rates():
    """Rates are what their names say, and zero where nothing was counted."""
    stats = Stats(output_tokens=12, forwards=4, accepted=5, proposed=10, total_s=2.0)
    assert stats.tokens_per_forward == 3
    assert stats.acceptance_length == 1 + 5 / 4
    assert stats.acceptance_rate == 0.5
    assert stats.tokens_per_s == 6
    empty = Stats()
    assert empty.acceptance_rate == empty.tokens_per_s == empty.grammar_share == 0


def test_note_round():
    """Histograms grow by slot as rounds come in."""
    stats = Stats()
    for proposed, accepted in ((4, 2), (2, 2), (0, 0)):
        stats.note_round(proposed, accepted)
    assert stats.proposed_by_slot == [2, 2, 1, 1]
    assert stats.accepted_by_slot == [2, 2]
    assert stats.rounds_by_accepted == [1, 0, 2]
    assert (stats.forwards, stats.proposed, stats.accepted) == (3, 6, 4)


def test_as_dict_is_json():
    """Statistics survive a round trip through JSON."""
    stats = ran(GUESSES["perfect"], temperature=1.0).stats
    read = json.loads(json.dumps(stats.as_dict()))
    assert read["tokens_per_forward"] == stats.tokens_per_forward
    assert read["accepted_by_slot"] == stats.accepted_by_slot
    assert read["seed"] == 1


def test_greedy_has_no_seed():
    """A greedy result names no seed; a sampled one names the seed that draws it again."""
    assert ran(None).stats.seed is None
    assert ran(None, temperature=0.5).stats.seed == 1


@pytest.mark.parametrize("reason", ["length", "timeout", "cancelled"])
def test_cut_output_has_no_value(reason):
    """A cut output raises for its value, with the partial text."""
    cut = Generation("ab", (97, 98), reason, Stats())
    with pytest.raises(IncompleteOutputError) as caught:
        _ = cut.value
    assert caught.value.text == "ab"
    assert caught.value.token_ids == (97, 98)
    assert caught.value.finish_reason == reason


def test_value_without_constraint():
    """Without a constraint the value is the text."""
    result = stub_model(constant({END: 9.0})).generate([0])
    assert result.value == result.text == ""
    assert result.token_ids == (END,)


def test_value_is_parsed():
    """A finished output has its parsed value."""
    assert ran(None).value == {"a": 1, "b": "xyz"}
