"""Acceptance at its edges: nothing drafted, equal, disjoint and degenerate rows."""

from __future__ import annotations

import pytest
import torch

from xpress_struct.decoding.acceptance import (
    Accepted,
    accept_block,
    accept_coupled,
    accept_token_level,
)

RULES = [accept_token_level, accept_block]
P = torch.tensor([0.5, 0.25, 0.25, 0.0], dtype=torch.float64)
OTHER = torch.tensor([0.0, 0.0, 0.0, 1.0], dtype=torch.float64)


class Draws:
    """Remembers what was drawn from; draws the likeliest."""

    def __init__(self):
        self.seen = []

    def __call__(self, weights, slot):
        assert torch.isfinite(weights).all()
        assert weights.sum() > 0
        self.seen.append((weights, slot))
        return int(weights.argmax())


@pytest.mark.parametrize("rule", RULES)
def test_no_draft(rule):
    """Without a draft, the token is drawn from p and no coin is tossed."""
    draws = Draws()
    accepted = rule([], None, lambda slot: P, lambda slot: pytest.fail("a coin"), draws)
    assert accepted == Accepted(0, 0)
    assert torch.equal(draws.seen[0][0], P)


@pytest.mark.parametrize("rule", RULES)
def test_equal_rows(rule):
    """When p equals q, everything stands, for any coin (B46)."""
    accepted = rule([0, 1, 2], [P, P, P], lambda slot: P, lambda slot: 1 - 2.0**-53, Draws())
    assert accepted.count == 3


@pytest.mark.parametrize("rule", RULES)
def test_disjoint_rows(rule):
    """When p and q share no token, nothing stands and p is drawn from (B46)."""
    draws = Draws()
    accepted = rule([3, 3], [OTHER, OTHER], lambda slot: P, lambda slot: 2.0**-54, draws)
    assert accepted == Accepted(0, 0)
    assert torch.equal(draws.seen[0][0], P)


@pytest.mark.parametrize("rule", RULES)
def test_empty_residual(rule):
    """A residual that rounding emptied falls back on p instead of dividing by zero (B46)."""
    draws = Draws()
    q = P.clone()
    q[3] = 1e-12  # the only token of q that p cannot take
    accepted = rule([3], [q], lambda slot: P, lambda slot: 0.5, draws)
    assert accepted == Accepted(0, 0)
    assert torch.equal(draws.seen[0][0], P)


@pytest.mark.parametrize("rule", RULES)
def test_one_hot_refused(rule):
    """A refused token that is not random is taken out of p before the redraw."""
    draws = Draws()
    accepted = rule([0], None, lambda slot: P, lambda slot: 0.6, draws)
    assert accepted.count == 0
    assert draws.seen[0][0].tolist() == [0.0, 0.25, 0.25, 0.0]


@pytest.mark.parametrize("rule", RULES)
def test_inputs_unchanged(rule):
    """Rows of p and q are left as they were."""
    p, q = P.clone(), OTHER.clone()
    rule([3, 3], [q, q], lambda slot: p, lambda slot: 0.5, Draws())
    rule([0, 1], None, lambda slot: p, lambda slot: 0.5, Draws())
    assert torch.equal(p, P)
    assert torch.equal(q, OTHER)


def test_token_level_rows():
    """Token-level acceptance asks for no row behind the refused slot, and none twice."""
    asked = []

    def row(slot):
        asked.append(slot)
        return P

    accept_token_level([0, 3, 0], None, row, lambda slot: 2.0**-54, Draws())
    assert asked == [0, 1]


def test_block_rows():
    """Block acceptance asks for no row behind an impossible token."""
    asked = []

    def row(slot):
        asked.append(slot)
        return P

    accepted = accept_block([0, 3, 0], None, row, lambda slot: 2.0**-54, Draws())
    assert accepted.count == 1
    assert max(asked) == 1


def test_coupled_stops_asking():
    """Coupled acceptance asks for no choice behind the first difference."""
    asked = []

    def choice(slot):
        asked.append(slot)
        return [1, 2, 3, 4][slot]

    assert accept_coupled([1, 9, 3], choice) == Accepted(1, 2)
    assert asked == [0, 1]
    assert accept_coupled([1, 2, 3], choice) == Accepted(3, 4)
