"""The heads against those of speculators 0.9.0."""

from __future__ import annotations

import pytest
import torch
from speculators.models.dspark.model_definitions import MarkovHead as TheirMarkovHead
from speculators.models.xpress.model_definitions import XPressRefinerHead

from tests.drafting.tiny import FULL, D, V, diffusion_config, head_config, randomize
from xpress_struct.drafting.heads import make_head

pytestmark = pytest.mark.parity

SIZES = {"verifier_vocab_size": V, "hidden_size": D}


def same(a, b):
    torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


def pair(kind, block=8, draft_vocab=V, rank=6):
    """Our head and theirs, with the same weights."""
    sizes = {**SIZES, "draft_vocab_size": draft_vocab}
    if kind == "xpress":
        theirs = XPressRefinerHead(block_size=block, rank=rank, mlp_ratio=2, **sizes)
    else:
        theirs = TheirMarkovHead(markov_rank=rank, head_type=kind, **sizes)
    randomize(theirs)
    fields = {"block_size": block, "draft_vocab_size": draft_vocab}
    ours = make_head(diffusion_config(FULL, head=head_config(kind, rank, 2 * rank), **fields), V)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def their_bias(theirs, prev, hidden):
    if isinstance(theirs, XPressRefinerHead):
        return theirs.block_bias(prev[None], hcache=theirs.hidden_cache(hidden[None]))[0]
    return theirs.block_bias(prev_token_ids=prev[None], hidden_states=hidden[None])[0]


@pytest.mark.parametrize("draft_vocab", [V, 20])
@pytest.mark.parametrize("block", [4, 8, 16])
@pytest.mark.parametrize("kind", ["xpress", "vanilla", "gated", "rnn"])
@torch.inference_mode()
def test_bias(kind, block, draft_vocab):
    """The bias of a block equals theirs, for any previous tokens."""
    ours, theirs = pair(kind, block, draft_vocab)
    generator = torch.Generator().manual_seed(block)
    hidden = torch.randn(block, D, generator=generator)
    prepared = ours.prepare(hidden)
    for _ in range(3):
        prev = torch.randint(V, (block,), generator=generator)
        same(ours.bias(prev, prepared), their_bias(theirs, prev, hidden))


@pytest.mark.parametrize("kind", ["xpress", "vanilla", "gated", "rnn"])
@torch.inference_mode()
def test_passes(kind):
    """Parallel passes draft what a loop written with their head drafts, pass after pass (formats.md 1.3)."""
    block = 8
    ours, theirs = pair(kind, block)
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        hidden = torch.randn(block, D, generator=generator)
        base = torch.randn(block, V, generator=generator)
        before, anchor = torch.randint(V, (2, 1), generator=generator)
        prepared, mine = ours.prepare(hidden), base[1:].argmax(-1)
        blocks = torch.cat([anchor, base.argmax(-1)[1:]])
        for _ in range(6):
            refined = base + their_bias(theirs, torch.cat([before, blocks[:-1]]), hidden)
            blocks = torch.cat([anchor, refined.argmax(-1)[1:]])
            prev = torch.cat([before, anchor, mine[:-1]])
            logits = base + ours.bias(prev, prepared)
            same(logits, refined)
            mine = logits[1:].argmax(-1)
            assert torch.equal(mine, blocks[1:])
