"""The number of parallel passes: fixed, or as many as pay."""

from __future__ import annotations

from xpress_struct.drafting.passes import Gains, Passes

OUTPUT = [1, 2, 3, 4, 5, 6, 7]


def agreeing(*lengths):
    """Drafts that agree with the output for so many tokens each."""
    return [[*OUTPUT[:length], *[0] * (len(OUTPUT) - length)] for length in lengths]


def asked(passes, rounds, *lengths):
    """What is asked for, round by round, when more passes agree for longer."""
    found = []
    for _ in range(rounds):
        found.append(passes.ask())
        passes.note(agreeing(*lengths[: found[-1] + 1]))
        passes.learn(OUTPUT)
    return found


def test_passes_that_gain_nothing_are_left_out():
    """After the trial, the passes are those that lengthened the agreement; trials come back."""
    found = asked(Passes(6, Gains()), 40, 1, 3, 5, 5, 5, 5, 5)
    assert found[:4] == [6] * 4
    assert found[4:15] == [2] * 11
    assert found[15] == 6
    assert found[16:31] == [2] * 15


def test_all_passes_are_kept_while_each_gains():
    """Where each pass gains, all are asked for."""
    assert asked(Passes(5, Gains()), 20, 0, 1, 2, 3, 4, 5) == [5] * 20


def test_at_least_one():
    """Even where no pass gains, one is made."""
    assert asked(Passes(4, Gains()), 12, 2, 2, 2, 2, 2)[4:] == [1] * 8


def test_a_change_is_noticed():
    """When later passes begin to gain, the next trials find out."""
    passes = Passes(4, Gains())
    assert asked(passes, 15, 1, 3, 3, 3, 3)[-1] == 1
    assert asked(passes, 160, 1, 2, 3, 5, 7)[-1] == 4


def test_a_fixed_number_stays():
    """A fixed number is asked for, whatever is learnt."""
    assert asked(Passes(3), 20, 4, 4, 4, 4) == [3] * 20


def test_a_converged_block_counts_for_the_passes_it_left_out():
    """Drafts that were not made because nothing changed any more are those of the last pass."""
    passes = Passes(4, Gains())
    for _ in range(4):
        passes.ask()
        passes.note(agreeing(1, 5))
        passes.learn(OUTPUT)
    assert passes.ask() == 1


def test_requests_share_what_was_learnt():
    """A second request that shares the gains starts with the passes that paid in the first."""
    gains = Gains()
    asked(Passes(6, gains), 10, 1, 3, 5, 5, 5, 5, 5)
    assert Passes(6, gains).ask() == 2
    assert Passes(6, Gains()).ask() == 6
