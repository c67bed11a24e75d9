"""The room of a round counts guesses: what the grammar forces inside a drafted block takes none of it."""

from __future__ import annotations

import pytest

import xpress_struct as xs
from tests.drafting.blocks import random_case
from tests.drafting.random_drafters import random_drafter
from tests.stubs import ScriptedDrafter, prefers, stub_model
from tests.unit.models import tiny_model
from xpress_struct.decoding.guard import Guard
from xpress_struct.drafting.several import SeveralDrafter

UNITS = xs.regex("([ab]xyz){8}")
TEXT = "axyzbxyz" * 4


class WholeBlock(ScriptedDrafter):
    """Offers so many tokens of the text, forced ones included, whatever the room."""

    def __init__(self, slots):
        super().__init__(lambda output: [])
        self.slots = slots

    def propose(self, output, room, matcher, noise, drafted=0):
        draft = super().propose(output, room, matcher, noise, drafted)
        return draft._replace(tokens=[*TEXT.encode()][len(output) : len(output) + self.slots])


def sizes(model):
    """Tokens of each forward of the target."""
    return [len(ids) for ids, _ in model.target.seen]


@pytest.mark.parametrize("rule", ["coupled", "token", "block"])
@pytest.mark.parametrize(("length", "forwards"), [(1, 4), (3, 2), (7, 1)])
def test_forced_tokens_take_no_room(rule, length, forwards):
    """A block of 32 slots, 24 of them forced, gives as many guesses as were asked for."""
    model = stub_model(prefers(TEXT))
    out = model.generate(
        [1], UNITS, drafter=WholeBlock(32), block_length=length, guard=False, acceptance=rule
    )
    assert out.text == TEXT
    assert out.stats.forwards == forwards
    assert out.stats.accepted == out.stats.proposed == length * forwards
    assert len(out.stats.proposed_by_slot) == length
    # Scored: what was pending, the guesses, and the forced run behind each.
    assert sizes(model)[0] == 1 + 4 * length


def test_a_long_draft_is_cut_in_front_of_a_guess():
    """Nothing that was drafted behind the last guess's forced run goes to the target."""
    model = stub_model(prefers(TEXT))
    model.generate([1], UNITS, drafter=WholeBlock(11), block_length=2, guard=False)
    assert sizes(model)[0] == 1 + 2 * len("axyz")


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("refine", ["none", "sequential", "parallel", "chunked"])
def test_a_diffusion_block_has_as_many_guesses(refine, several):
    """A block of eleven slots where every other token is forced offers five guesses, not three."""
    drafter = random_drafter("xpress", block_size=12)
    drafter = SeveralDrafter([drafter, WholeBlock(0)]) if several else drafter
    constraint = xs.regex("([ab]x){20}")
    asked = {"temperature": 1.0, "seed": 3}
    model = tiny_model("llama")
    plain = model.generate([1, 2], constraint, drafter=None, **asked)
    out = model.generate(
        [1, 2], constraint, drafter=drafter, block_length=5, refine=refine, guard=False, **asked
    )
    assert out.token_ids == plain.token_ids
    assert len(out.stats.proposed_by_slot) == 5
    # But for the first round, where no state was read yet, and the last, where less was left.
    assert out.stats.proposed_by_slot[4] >= out.stats.forwards - 3


@pytest.mark.parametrize("kind", ["none", "sequential", "parallel", "chunked"])
def test_a_refined_draft_ends_where_its_room_does(kind):
    """It is the draft without a bound, up to the slot that would be one open slot too many."""
    ended = 0
    for seed in range(120):
        case = random_case(seed)
        whole = case.refined(kind, case.slots).tokens
        for room in (1, 2):
            refined = case.refined(kind, case.slots, room=room)
            path, wanted, used = case.matcher.fork(), [], 0
            for token in whole:
                used += not path.forced()
                if used > room:
                    break
                wanted.append(token)
                path.commit([token])
            assert refined.tokens == wanted, (seed, room)
            assert refined.certainty.shape == (2, len(wanted))
            ended += len(wanted) < len(whole)
    assert ended > 80


def test_the_guard_is_charged_for_all_that_was_scored(monkeypatch):
    """Forced tokens in a block are no guesses, and cost their rows all the same."""
    told = []
    learn = Guard.learn

    def noting(self, stood, pending, sent, scored, overhead):
        told.append((stood, pending + sent))
        learn(self, stood, pending, sent, scored, overhead)

    monkeypatch.setattr(Guard, "learn", noting)
    model = stub_model(prefers(TEXT))
    model.generate([1], UNITS, drafter=WholeBlock(32), block_length=3)
    assert [size for _, size in told] == sizes(model)
    assert told[0] == (3, 13)
