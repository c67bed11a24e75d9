"""Several drafters at once: which one is asked, and what is handed on."""

from __future__ import annotations

import pytest

import xpress_struct as xs
from tests.drafting.random_drafters import random_drafter
from tests.stubs import ScriptedDrafter, StubTarget, byte_vocabulary, prefers, stub_model
from tests.unit.models import tiny_model
from xpress_struct.constraints.matcher import FreeMatcher
from xpress_struct.drafting.asking import Asking
from xpress_struct.drafting.drafter import DraftContext
from xpress_struct.drafting.lookup import LookupDrafter
from xpress_struct.drafting.several import SeveralDrafter
from xpress_struct.errors import ArgumentError
from xpress_struct.sampling import Noise, NoiseKey, SamplingParams

VOCABULARY = byte_vocabulary()
TEXT = [*b"the quick brown fox jumps over the lazy dog " * 4]


class Asked(ScriptedDrafter):
    """Notes at which places it was asked."""

    def __init__(self, guess, resumes=False):
        super().__init__(guess, resumes)
        self.places = []

    def propose(self, output, room, matcher, noise, drafted=0):
        self.places.append((len(output), drafted))
        return super().propose(output, room, matcher, noise, drafted)


def session_of(*drafters):
    target = StubTarget(lambda prefix: [0.0] * 257, 257)
    context = DraftContext((1,), VOCABULARY, SamplingParams(), "coupled", target)
    return SeveralDrafter(drafters).begin(context)


def ask(session, output, drafted=0):
    noise = Noise(NoiseKey(0), 257)
    return session.propose(output, 4, FreeMatcher(VOCABULARY), noise, drafted).tokens


def right(output):
    return TEXT[len(output) : len(output) + 4]


def wrong(output):
    return [0, 0, 0, 0]


def test_the_better_one_is_asked():
    """After a few rounds the drafter whose guesses stand is asked, and the other one now and then."""
    bad, good = Asked(wrong), Asked(right)
    session = session_of(bad, good)
    for place in range(60):
        ask(session, TEXT[:place])
    assert len(good.places) > 50
    assert 1 < len(bad.places) < 10
    # It is tried again: not only at the start.
    assert bad.places[-1][0] > 10


def test_an_empty_guess_passes_on():
    """One that has nothing to say leaves the round to the next."""
    silent, good = Asked(lambda output: []), Asked(right)
    session = session_of(silent, good)
    assert ask(session, TEXT[:3]) == TEXT[3:7]
    assert ask(session_of(silent, silent), TEXT[:3]) == []


def test_the_draft_goes_on_with_one_that_can():
    """Behind a draft its own drafter is asked if it resumes, else another one that does."""
    whole, by_token = Asked(right), Asked(right, resumes=True)
    session = session_of(whole, by_token)
    first = ask(session, TEXT[:2])
    assert first == TEXT[2:6]
    assert ask(session, TEXT[:8], drafted=6) == TEXT[8:12]
    assert by_token.places == [(8, 6)]
    assert whole.places == [(2, 0)]
    assert ask(session_of(whole, whole), TEXT[:8], drafted=6) == []


def test_lookup_is_known_before_the_choice():
    """Lookup's credit goes by how long its match is: a long one wins over a drafter that is often wrong."""
    bad = Asked(wrong)
    session = session_of(bad, LookupDrafter())
    taken = [ask(session, TEXT[:place]) for place in range(60, 100)]
    assert taken[-1] == TEXT[99:103]
    assert sum(tokens[:1] != [0] for tokens in taken) > 30


def test_lists_that_are_refused():
    """A list of one, and two drafters that read hidden states, are refused."""
    with pytest.raises(ArgumentError, match="two or more"):
        SeveralDrafter([LookupDrafter()])
    with pytest.raises(ArgumentError, match="Only one"):
        SeveralDrafter([random_drafter(), random_drafter(seed=1)])
    with pytest.raises(ArgumentError, match="two or more"):
        stub_model(prefers("a")).generate([1], drafter=["lookup", None])


def test_the_name_and_the_options_are_those_of_all():
    """Statistics name every member; an option is taken when one of them knows it."""
    drafter = SeveralDrafter([random_drafter(), LookupDrafter()])
    out = tiny_model("llama").generate([1, 2], drafter=drafter, refine_passes=1, max_new_tokens=12)
    assert out.stats.drafter == "xpress+lookup"
    assert out.stats.proposed > 0
    assert drafter.taps == (0,)


class Telling(Asked):
    """Reads hidden states, and tells how much of its draft should stand."""

    taps = (0,)

    def __init__(self, guess, expected):
        super().__init__(guess)
        self.expected = expected

    def propose(self, output, room, matcher, noise, drafted=0):
        draft = super().propose(output, room, matcher, noise, drafted)
        return draft._replace(expected=self.expected(output))


@pytest.mark.parametrize("rule", ["coupled", "token"])
def test_what_a_draft_expects_decides_under_the_coupled_rule_alone(rule):
    """A drafter that knows when it is right is taken then, and only then; the other rules never ask it."""

    def knows(output):
        return len(output) % 2 == 0

    other = Asked(lambda output: [*right(output)[:2], 0, 0])
    telling = Telling(
        lambda output: (right if knows(output) else wrong)(output), lambda o: 4.0 * knows(o) + 0.1
    )
    target = StubTarget(lambda prefix: [0.0] * 257, 257)
    context = DraftContext((1,), VOCABULARY, SamplingParams(temperature=1.0), rule, target)
    session = SeveralDrafter([telling, other]).begin(context)
    stood = [ask(session, TEXT[:place]) == right(TEXT[:place]) for place in range(100, 140)]
    if rule == "coupled":
        assert stood == [place % 2 == 0 for place in range(100, 140)]
    else:
        assert len(telling.places) < 40


@pytest.mark.parametrize(("timed", "most"), [(True, 12), (False, 60)])
def test_a_drafter_whose_time_is_worth_more_is_left_out(timed, most):
    """Where a forward of the target takes next to no time, no guess is worth asking for; it is asked now and
    then, and always where seconds must not decide."""
    telling = Telling(right, lambda output: 4.0)
    target = StubTarget(lambda prefix: [0.0] * 257, 257)
    context = DraftContext((1,), VOCABULARY, SamplingParams(), "coupled", target, timed=timed)
    session = SeveralDrafter([telling, Asked(lambda output: [])]).begin(context)
    for place in range(60):
        ask(session, TEXT[:place])
        context.stats.score_s += 1e-9
    assert 4 <= len(telling.places) <= most
    assert timed or len(telling.places) == 60


def test_asking_pays_by_what_it_gains_and_costs():
    """A sixth of a forward is worth a sixth of what a round gives; what did not pay is tried again."""
    asking = Asking()
    assert asking.pays("unknown", 8.0)
    for _ in range(30):
        asking.took(0.01, 0.06)
        asking.gained("idle", 0)
        asking.gained("good", 1)
    assert asking.pays("good", 4.0) and not asking.pays("good", 6.0)
    assert sum(asking.pays("idle", 0.0) for _ in range(64)) == 4
    for _ in range(10):
        asking.gained("idle", 1)
    assert all(asking.pays("idle", 0.0) for _ in range(64))


def test_a_slow_first_time_is_soon_forgotten():
    """What took a forward's time at first, and then a sixth of it, is asked where a sixth pays."""
    asking = Asking()
    asking.took(0.06, 0.06)
    assert not asking.pays("new", 1.0)
    asking.took(0.01, 0.9)
    asking.took(0.01, 0.06)
    assert asking.pays("new", 1.0) and not asking.pays("new", 6.0)


def test_forced_tokens_are_no_guesses_of_a_draft():
    """A drafter has credit for the guesses that stood, not for what the grammar wrote behind them."""
    model = stub_model(prefers("axyzaxyz"))
    constraint = xs.regex("([ab]xyz){2}")
    half = Asked(lambda output: [*b"axyzbxyz"[len(output) :]])
    session = SeveralDrafter([half, Asked(lambda output: [])]).begin(
        DraftContext((1,), model.vocabulary, SamplingParams(), "coupled", model.target)
    )
    matcher, _ = constraint.matcher(model.vocabulary)
    noise = Noise(NoiseKey(0), 257)
    session.propose([], 8, matcher, noise)
    matcher.commit([*b"axyzaxyz"])
    session.propose([*b"axyzaxyz"], 8, matcher, noise)
    assert session._credit[0, 0] == 1.0
