"""The check can fail: every trap of the design, built in on purpose, moves the distribution.

Each trap stands next to the right way of doing the same, which does not.
"""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
import torch

from tests.exactness import drafters
from tests.exactness.helpers import (
    CONSTRAINTS,
    END,
    EXACT,
    LETTERS,
    PARAMS,
    V,
    autoregressive,
    decoded,
    legal_after,
    reference,
    table,
    total_variation,
)
from xpress_struct.constraints.matcher import GrammarMatcher
from xpress_struct.decoding import rows as rows_module
from xpress_struct.decoding.loop import Decoder
from xpress_struct.decoding.rows import Rows

RULES = ["token", "block"]
FOUND = 0.005
LOGITS = table(3)
Q = drafters.TWO


def distance(guess, rule, *, constraint=LETTERS, params=PARAMS["plain"], block=2, logits=LOGITS):
    """Total variation between what comes out and what was promised; exceptions are outcomes."""
    found = decoded(
        logits,
        constraint,
        guess,
        rule=rule,
        params=params,
        budget=3,
        block=block,
        errors=True,
    )
    return total_variation(found, autoregressive(logits, constraint, params, 3))


def draw(pick, output, length, *, seeds=(77,), choose=None, stop=None, q_of=None, params=Q):
    """Drafts from masked q rows, with a place for each mistake."""
    drafts = []
    for seed in seeds:
        tokens, given = [], []
        for _ in range(length):
            legal = legal_after(LETTERS, (*output, *tokens))
            if not any(legal):
                break
            row = drafters.q_row(seed, (*output, *tokens), legal, params)
            token = pick(row)
            if stop is not None and stop(row, token):
                break
            given.append(row if q_of is None else q_of(row, (*output, *tokens), legal))
            tokens.append(token)
        drafts.append((tokens, given))
    tokens, given = drafts[0] if choose is None else choose(drafts)
    return (tokens, torch.from_numpy(np.stack(given))) if tokens else ([], None)


@pytest.mark.parametrize("rule", RULES)
def test_cut_by_confidence(rule):
    """Cutting a draft by q of the token drawn is found; cutting by the largest q is exact."""
    wrong = distance(lambda o, pick: draw(pick, o, 2, stop=lambda row, token: row[token] < 0.4), rule)
    right = distance(lambda o, pick: draw(pick, o, 2, stop=lambda row, token: row.max() < 0.5), rule)
    assert wrong > FOUND
    assert right < EXACT


@pytest.mark.parametrize("rule", RULES)
def test_choice_of_drafter(rule):
    """Choosing among drafters by what they drew is found; choosing by their rows is exact."""

    def by_drawn(drafts):
        return max(drafts, key=lambda d: d[1][0][d[0][0]] if d[0] else 0)

    def by_rows(output, pick):
        legal = legal_after(LETTERS, output)
        seed = max((77, 78), key=lambda s: drafters.q_row(s, output, legal, Q).max())
        return draw(pick, output, 1, seeds=(seed,))

    wrong = distance(lambda o, p: draw(p, o, 1, seeds=(77, 78), choose=by_drawn), rule, block=1)
    assert wrong > FOUND
    assert distance(by_rows, rule, block=1) < EXACT


@pytest.mark.parametrize("rule", RULES)
def test_q_of_another_draw(rule):
    """A q at another temperature, or of another prefix, than the draw's is found."""

    def colder(row, prefix, legal):
        return row**2 / (row**2).sum()

    def stale(row, prefix, legal):
        return drafters.q_row(77, (*prefix, 0), legal, Q)

    for q_of in (colder, stale):
        assert distance(lambda o, p, q_of=q_of: draw(p, o, 2, q_of=q_of), rule) > FOUND
    assert distance(lambda o, p: draw(p, o, 2), rule) < EXACT


@pytest.mark.parametrize("rule", RULES)
def test_unmasked_q_of_masked_draw(rule):
    """A q without the mask, for a token drawn under the mask, is found."""

    def unmasked(row, prefix, legal):
        return drafters.q_row(77, prefix, drafters.EVERY, Q)

    assert distance(lambda o, p: draw(p, o, 2, q_of=unmasked), rule) > FOUND


@pytest.mark.parametrize("rule", RULES)
def test_drawn_token_called_certain(rule):
    """A sampled token may be passed off as deterministic: fewer stand, but it is exact."""
    assert distance(lambda o, p: draw(p, o, 2)[0], rule) < EXACT


@pytest.mark.parametrize("rule", RULES)
def test_illegal_token_cut(rule):
    """Cutting an illegal drawn token instead of refusing it is found."""
    propose = Decoder._propose

    def cut(self):
        block = propose(self)
        del block.tokens[block.legal :]
        block.guessed = [slot for slot in block.guessed if slot < block.legal]
        block.q = None if block.q is None else block.q[: block.legal]
        return block

    constraint = CONSTRAINTS["forcing"]
    guess = drafters.sampled(constraint, 2, masked=False, seed=78)
    assert distance(guess, rule, constraint=constraint) < EXACT
    with patch.object(Decoder, "_propose", cut):
        assert distance(guess, rule, constraint=constraint) > FOUND


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("stale", [False, True])
def test_bonus_row_mask(stale, rule):
    """A bonus row without a mask, or with the mask of the row before, is found."""
    mask = Rows.mask

    def wrong(self, slot):
        if slot == 0 or slot < len(self._draft):
            return mask(self, slot)
        return mask(self, slot - 1) if stale else torch.ones(V, dtype=torch.bool)

    guess = drafters.legal_fixed(LETTERS, 2)
    assert distance(guess, rule) < EXACT
    with patch.object(Rows, "mask", wrong):
        assert distance(guess, rule) > FOUND


@pytest.mark.parametrize("params", ["top_p", "min_p", "hot-top_k"])
def test_cut_before_mask(params):
    """Top-p, min-p or top-k before the mask is found."""
    process = rows_module.process

    def wrong(logits, mask, params):
        return process(logits, None, params).masked_fill(~mask, -torch.inf)

    def likes_the_end(prefix):
        return [score + 2 * (v == END) for v, score in enumerate(LOGITS(prefix))]

    options = {"params": PARAMS[params], "logits": likes_the_end}
    assert distance(drafters.nothing, "token", **options) < EXACT
    with patch.object(rows_module, "process", wrong):
        assert distance(drafters.nothing, "token", **options) > FOUND


@pytest.mark.parametrize("rule", RULES)
def test_tokens_after_the_end(rule):
    """Going on behind an end token is found."""
    commit = Decoder._emit

    def deaf(self, token, origin, **options):
        commit(self, token, origin, **options)
        if self.finish == "stop":
            self.output.append(0)

    with patch.object(Decoder, "_emit", deaf):
        assert distance(drafters.sampled(LETTERS, 2), rule) > FOUND


@pytest.mark.parametrize("rule", RULES)
def test_double_commit(rule):
    """Committing the last token of a round twice is found."""
    commit = GrammarMatcher.commit

    def twice(self, tokens):
        commit(self, tokens)
        if tokens and self.legal(tokens[-1]):
            commit(self, tokens[-1:])

    with patch.object(GrammarMatcher, "commit", twice):
        assert distance(drafters.nothing, rule) > FOUND


@pytest.mark.parametrize("rule", RULES)
def test_rejected_tokens_in_cache(rule):
    """A cache that keeps refused draft tokens is found."""
    with patch("tests.stubs.StubCache.rollback_to", lambda self, lengths: None):
        assert distance(drafters.fixed(2), rule, constraint=None) > FOUND


def test_shared_coins():
    """Coins that are the draft's own noise are found (why streams of noise are apart)."""
    p, q = reference(LOGITS((0,)), drafters.EVERY, PARAMS["plain"]), np.full(V, 1 / V)
    edges = np.concatenate([[0], np.cumsum(q)])
    kept = np.array(
        [
            max(0.0, min(edges[v + 1], p[v] / q[v]) - edges[v])  # u draws v and is its coin
            for v in range(V)
        ]
    )
    residual = np.maximum(p - q, 0)
    found = kept + (1 - kept.sum()) * residual / residual.sum()
    assert 0.5 * np.abs(found - p).sum() > FOUND


def test_every_constraint_is_hit():
    """The constraints of these checks bar a likely token somewhere, so that masks matter."""
    for constraint in CONSTRAINTS.values():
        if constraint is not None:
            assert not all(legal_after(constraint, ()))
