"""Traps of the design inside a diffusion drafter: built in on purpose, the whole decoder's count finds them.

Each patches the shipped code in one place. As shipped the same passes: here, or in `test_diffusion_rules`.
"""

from __future__ import annotations

from unittest.mock import patch

import pytest
import torch
from torch import nn

from tests.exactness.helpers import SIX, V, table
from tests.exactness.six import ALWAYS, count, knowing, model, on_six
from tests.stubs import StubTarget
from xpress_struct.decoding.proposer import Proposer
from xpress_struct.decoding.request import Block
from xpress_struct.drafting import block, diffusion, refinement, several
from xpress_struct.drafting.autoregressive import AutoregressiveDrafter
from xpress_struct.drafting.denoising import MASKED
from xpress_struct.drafting.drafter import Draft
from xpress_struct.drafting.several import SeveralDrafter
from xpress_struct.sampling import NoiseKey, probabilities, process

RUNS = 700
RIGHT, WRONG = 1e-3, 1e-6
RULES = ["token", "block"]
AC = torch.tensor([0, 2])

pytestmark = pytest.mark.slow


class Scripted(nn.Module):
    """A backbone that is a function of the block's embeddings."""

    def __init__(self, hidden_of):
        super().__init__()
        self.fc, self.hidden_of = nn.Linear(1, 1), hidden_of  # fc tells device and dtype

    def fuse(self, states):
        return states

    def forward(self, features, embedded, start, cache):
        return self.hidden_of(embedded)

    def logits(self, raw):
        return raw


def scripted(hidden_of, head):
    """A drafter of two slots that knows the tokens a and c, and the target that is even between them."""
    drafter = on_six(None, block_size=3, ids=AC, own_head=True)
    drafter.weights.backbone, drafter.weights.lm_head = Scripted(hidden_of), head
    return drafter


def even(prefix):
    return [0.0] * V


@pytest.mark.parametrize("rule", RULES)
def test_denoising_with_noise(rule):
    """Denoising steps that fill in what the noise of the round draws are found."""
    propose = diffusion._Session.propose
    rows = []

    def noting(self, output, room, matcher, noise, drafted=0):
        rows[:] = noise.rows(1 + len(output), drafter.longest)
        return propose(self, output, room, matcher, noise, drafted)

    def noisy(score, room, steps, target_ids):
        """TRAP: each step draws."""
        filled = torch.full((room,), MASKED)
        base = score(filled)
        for _ in range(1, min(steps, room)):
            slot = base.amax(-1).masked_fill(filled != MASKED, -torch.inf).argmax()
            filled[slot] = target_ids((base[slot] + rows[slot][AC]).argmax(-1))
            base = torch.where((filled != MASKED)[:, None], base, score(filled))
        return base

    embeddings = model(even).target.embed(torch.arange(V + 1))

    def neighbour(embedded):
        """Each slot says what its right neighbour is; the last one is a little surer than none."""
        return torch.cat([embedded[1:], 0.1 * embeddings[:1]])

    drafter = scripted(neighbour, 3 * torch.linalg.pinv(embeddings)[:, AC].T)
    asked = {"denoising_steps": 2, "draft_temperature": 1.0, "grammar": "pairs", "scores": even, **ALWAYS}
    assert count(drafter, rule, RUNS, **asked)[0] > RIGHT
    with (
        patch.object(diffusion._Session, "propose", noting),
        patch.object(diffusion, "denoise", noisy),
    ):
        assert count(drafter, rule, RUNS, **asked)[0] < WRONG


def liked(self, output, room, matcher, noise, drafted=0):
    """TRAP: all members draft, and the draft that begins with the highest id is taken."""
    if drafted:
        return Draft([])
    drafts = [session.propose(output, room, matcher, noise) for _, session in self._members]
    return max((d for d in drafts if d.tokens), key=lambda d: d.tokens[0], default=Draft([]))


@pytest.mark.parametrize("rule", RULES)
def test_choice_by_what_was_drawn(rule):
    """A drafter that is chosen for its draw is found."""
    small = [AutoregressiveDrafter(StubTarget(table(seed), V), SIX) for seed in range(9, 13)]
    drafter = SeveralDrafter([on_six(seed=3), *small])
    asked = {"guard": False, "block_length": 1, "scores": table(3, spread=0.7)}
    assert count(drafter, rule, RUNS, **asked)[0] > RIGHT
    with patch.object(several._Session, "propose", liked):
        assert count(drafter, rule, RUNS, **asked)[0] < WRONG


def cut_by_drawn(refined, sure, least):
    """TRAP: the draft ends before a token that was unlikely to be drawn."""
    kept = [float(refined.q[slot, token]) >= least for slot, token in enumerate(refined.tokens)]
    return refined.before(next((slot for slot, good in enumerate(kept) if not good), len(kept)))


@pytest.mark.parametrize("rule", RULES)
def test_cut_by_the_draw(rule):
    """A confidence that looks at the token drawn is found."""
    drafter, asked = knowing(), {"draft_confidence": 0.5, **ALWAYS}
    with patch.object(refinement, "_cut_unsure", cut_by_drawn):
        assert count(drafter, rule, RUNS, **asked)[0] < WRONG


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("rule", RULES)
def test_q_of_the_final_tokens(rule, passes):
    """A q computed once more, on tokens that had not converged, is found."""
    refine = block.refine

    def again(base, bias, matcher, noise, plan, params, **options):
        refined = refine(base, bias, matcher, noise, plan, params, **options)
        if refined.q is not None:
            shown = [*refined.tokens, *[0] * (len(base) - len(refined.tokens))]
            logits = base + bias(torch.tensor(shown))
            path, legal = matcher.fork(), []
            for token in refined.tokens:
                legal.append([path.legal(v) for v in range(V)])
                path.commit([token])
            mask = torch.tensor(legal, dtype=torch.bool).reshape(-1, V)
            refined.q[:] = probabilities(process(logits[: len(legal)], mask, params))
        return refined

    drafter, asked = knowing(), {"refine": "parallel", "refine_passes": passes, **ALWAYS}
    with patch.object(block, "refine", again):
        assert count(drafter, rule, RUNS, **asked)[0] < WRONG


def test_noise_of_an_earlier_round():
    """The block rule with noise that belongs to a place, and comes back in the next round, is found."""
    head = torch.zeros(2, 8)
    head[0] = 0.37  # c is drafted one time in twenty, and wanted every second time
    drafter = scripted(lambda embedded: torch.ones(len(embedded), 8), head)
    asked = {"draft_temperature": 1.0, "grammar": "pairs", "scores": even, **ALWAYS}
    assert count(drafter, "block", RUNS, **asked)[0] > RIGHT
    with patch.object(NoiseKey, "fresh", lambda self, number: self):
        assert count(drafter, "block", RUNS, **asked)[0] < WRONG


@pytest.mark.parametrize("rule", RULES)
def test_a_length_that_looks_at_the_draft(rule):
    """A round that is held back, or cut short, for what was drawn in it is found."""
    propose = Proposer.propose

    def looking(self, matcher, output, left, noise):
        found = propose(self, matcher, output, left, noise)
        drawn = [q is None or q[token] >= 0.5 for token, q in zip(found.tokens, found.q, strict=True)]
        return found if all(drawn) else Block()

    with patch.object(Proposer, "propose", looking):
        assert count(knowing(), rule, RUNS, **ALWAYS)[0] < WRONG
