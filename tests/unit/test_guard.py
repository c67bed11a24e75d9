"""Guard and block length: what a bad drafter may cost, and what past rounds decide."""

from __future__ import annotations

import random
import time
from types import SimpleNamespace

import pytest

import xpress_struct as xs
from tests.drafting.random_drafters import random_drafter
from tests.exactness.texts import hashed
from tests.stubs import ScriptedDrafter, prefers, stub_model
from tests.unit.models import tiny_model
from xpress_struct.decoding.costs import Costs
from xpress_struct.decoding.guard import Guard, History
from xpress_struct.decoding.proposer import BlockLength
from xpress_struct.errors import ArgumentError
from xpress_struct.results import Stats

TEXT = "abcdefghijklmnopqrstuvwxyz" * 6
BAD = ScriptedDrafter(lambda output: [*b"ZZZZZZZZ"])
GOOD = ScriptedDrafter(lambda output: [*TEXT.encode()][len(output) : len(output) + 8])
RULES = ["token", "block"]


def shares(drafter, rule, **options):
    model = stub_model(prefers(TEXT))
    out = model.generate([1], xs.regex("[a-zA-Z]{150}"), drafter=drafter, acceptance=rule, **options)
    assert out.text == TEXT[:150]
    return out.stats


@pytest.mark.parametrize("rule", RULES)
def test_a_drafter_that_always_fails_is_held_back(rule):
    """It is asked in few rounds; the share of the others is reported; it is looked at again."""
    asked = []

    def noting(output):
        asked.append(len(output))
        return [0] * 8

    # Lookup finds the alphabet again; before that there is nothing to fall back to.
    stats = shares(ScriptedDrafter(noting), rule)
    assert stats.guarded > stats.forwards / 2
    assert stats.guard_share == stats.guarded / stats.forwards
    assert stats.guarded + len(asked) == stats.forwards


@pytest.mark.parametrize("rule", ["coupled", "token"])
def test_a_request_starts_with_what_others_have_shown(rule):
    """Under the coupled rule a drafter that served others is not held back for a few bad rounds; under the
    others a request is judged by itself, so that it repeats itself."""
    history, costs, ladder = History(), Costs(), [SimpleNamespace(name="x")]
    for tokens in (1, 8):
        costs.note(tokens, 0.05 + 0.001 * tokens)

    def held_back(stood, rounds):
        stats = Stats()
        guard = Guard(True, rule, costs, stats, history)
        for number in range(rounds + 1):  # the first is over the prompt
            guard.choose(ladder)
            guard.learn(stood, 1, 7, 1.0 if number == 0 else 0.058, 0.005)
        return stats.guarded

    assert held_back(stood=0, rounds=8) > 0
    assert held_back(stood=3, rounds=60) == 0
    assert (held_back(stood=0, rounds=5) == 0) == (rule == "coupled")
    assert held_back(stood=0, rounds=60) > 20


@pytest.mark.parametrize("rule", RULES)
def test_it_is_looked_at_again(rule):
    """In a long text of nothing to look up, the drafter is tried again."""
    model, asked = stub_model(hashed(2)), []

    def noting(output):
        asked.append(len(output))
        return [0] * 4

    out = model.generate(
        [1],
        xs.regex("[a-zA-Z]{300}"),
        drafter=ScriptedDrafter(noting),
        acceptance=rule,
        temperature=1.0,
        seed=1,
        max_new_tokens=310,
    )
    assert asked[-1] > 20
    assert len(asked) < out.stats.forwards / 3


@pytest.mark.parametrize("rule", ["coupled", *RULES])
def test_a_good_drafter_is_never_held_back(rule):
    """Where every guess stands the guard does nothing."""
    stats = shares(GOOD, rule)
    assert stats.guarded == 0
    assert stats.accepted == stats.proposed


@pytest.mark.parametrize("rule", ["coupled", *RULES])
def test_without_guard(rule):
    """With guard=False even a drafter that always fails is asked in every round."""
    stats = shares(BAD, rule, guard=False)
    assert stats.guarded == 0
    assert stats.accepted == 0
    assert stats.proposed >= stats.forwards - 1


@pytest.mark.parametrize("rule", ["coupled", *RULES])
def test_no_clock_changes_a_token(rule, monkeypatch):
    """The same seed gives the same ids whatever the clock says; without the coupled rule, the same rounds."""
    model, drafter = tiny_model("llama"), random_drafter()
    asked = {"acceptance": rule, "temperature": 1.0, "seed": 3, "max_new_tokens": 60}
    plain = [model.generate([1, 2], xs.regex("[a-z]{90}"), drafter=drafter, **asked) for _ in range(2)]
    clock, rng = time.perf_counter, random.Random(7)
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + rng.uniform(0, 5))
    jumping = [model.generate([1, 2], xs.regex("[a-z]{90}"), drafter=drafter, **asked) for _ in range(2)]
    for out in [*plain, *jumping]:
        assert out.token_ids == plain[0].token_ids
        if rule != "coupled":
            assert out.stats.guarded == plain[0].stats.guarded
            assert out.stats.proposed == plain[0].stats.proposed


def test_block_length_follows_acceptance():
    """It grows to the longest while guesses stand, shrinks to two while they fail, and comes back."""
    length = BlockLength(None)
    for _ in range(40):
        length.learn(8, 8)
    assert length.ask(16, copied=False) == 16
    for _ in range(40):
        length.learn(8, 0)
    assert length.ask(16, copied=False) == 2
    for _ in range(40):
        length.learn(2, 2)
    assert length.ask(16, copied=False) > 10
    assert length.ask(5, copied=False) == 5


def test_copies_and_drafts_have_lengths_of_their_own():
    """Drafts that fail do not shorten what is looked up; where either may come, the longer one counts."""
    length = BlockLength(None)
    for _ in range(40):
        length.learn(8, 8, copied=True)
        length.learn(8, 0)
    assert (length.ask(16, copied=True), length.ask(16, copied=False), length.ask(16)) == (16, 2, 16)


def test_rounds_without_guesses_say_nothing():
    """A round in which nothing was guessed does not count."""
    length, same = BlockLength(None), BlockLength(None)
    for _ in range(20):
        length.learn(0, 0)
    assert length.ask(64) == same.ask(64)


def test_a_fixed_length_stays():
    """A fixed length is asked for, whatever stands."""
    length = BlockLength(7)
    for stood in (0, 7, 0):
        length.learn(7, stood)
        assert length.ask(3) == 7


@pytest.mark.parametrize(
    ("drafter", "asked"),
    [
        ("lookup", {"denoising_steps": 2}),
        ("lookup", {"draft_temperature": 0.5}),
        (random_drafter(None), {"refine": "parallel"}),
        (random_drafter(None), {"refine_passes": "auto"}),
    ],
)
def test_options_that_a_drafter_has_not(drafter, asked):
    """An option that the drafter does not know is refused by its name."""
    with pytest.raises(ArgumentError, match=next(iter(asked))):
        tiny_model("llama").generate([1], drafter=drafter, **asked)
