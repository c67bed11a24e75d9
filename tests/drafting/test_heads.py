"""The heads that refine a block."""

from __future__ import annotations

import pytest
import torch

from tests.drafting.tiny import FULL, D, V, diffusion_config, head_config, randomize
from xpress_struct.drafting.heads import MarkovHead, XPressHead, make_head

KINDS = ["xpress", "vanilla", "gated", "rnn"]
B, VD = 8, 20


@pytest.fixture(params=KINDS)
def head(request):
    made = make_head(diffusion_config(FULL, head=head_config(request.param), draft_vocab_size=VD), V)
    randomize(made)
    return made


def random(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def tokens(*shape, seed=1):
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(seed))


def close(a, b):
    torch.testing.assert_close(a, b, atol=1e-5, rtol=0)


def test_make_head(head):
    """The head is of the class its config names, as wide as the draft vocabulary."""
    prepared = head.prepare(random(B, D))
    assert prepared.shape[0] == B
    assert head.bias(tokens(B), prepared).shape == (B, VD)


def test_make_head_of_the_target_vocabulary():
    """Without a draft vocabulary the bias is as wide as the target's logits."""
    for kind, made in (("xpress", XPressHead), ("gated", MarkovHead)):
        head = make_head(diffusion_config(FULL, head=head_config(kind)), V)
        assert isinstance(head, made)
        assert head.bias(tokens(B), head.prepare(random(B, D))).shape == (B, V)


def test_no_head():
    """A config without a head makes none."""
    with pytest.raises(ValueError, match="no head"):
        make_head(diffusion_config(FULL), V)


def xpress(w, prev, hidden):
    """The formulas of formats.md 1.2, slot by slot."""
    whole = hidden.mean(0)
    x = [
        w["in_proj.weight"]
        @ torch.cat((w["down_h.weight"] @ h, w["down_g.weight"] @ whole, w["token_embed.weight"][token]))
        for token, h in zip(prev, hidden, strict=True)
    ]
    mixed = [row + sum(w["mix_l"][:, k, j] * x[j] for j in range(k + 1)) for k, row in enumerate(x)]
    refined = []
    for row in mixed:
        gate = w["mlp_gate.weight"] @ row
        row = row + w["mlp_down.weight"] @ (gate * gate.sigmoid() * (w["mlp_up.weight"] @ row))
        refined.append(w["readout.weight"] @ row)
    return torch.stack(refined)


def markov(w, prev, hidden):
    """The Markov heads slot by slot; which one, the weights tell."""
    state, biases = torch.zeros(w["markov_w1.weight"].shape[1]), []
    for token, h in zip(prev, hidden, strict=True):
        x = w["markov_w1.weight"][token]
        if "gate_proj.weight" in w:
            x = x * (w["gate_proj.weight"] @ torch.cat((h, x)) + w["gate_proj.bias"]).sigmoid()
        elif "joint_proj.weight" in w:
            joint = w["joint_proj.weight"] @ torch.cat((state, x, h)) + w["joint_proj.bias"]
            keep, candidate, out = joint.chunk(3)
            state = keep.sigmoid() * state + (1 - keep.sigmoid()) * candidate.tanh()
            x = out.tanh()
        biases.append(w["markov_w2.weight"] @ x)
    return torch.stack(biases)


def test_formula(head):
    """The bias is what the format's description says, written out slot by slot."""
    hidden, prev = random(B, D), tokens(B)
    expected = (xpress if isinstance(head, XPressHead) else markov)(head.state_dict(), prev, hidden)
    close(head.bias(prev, head.prepare(hidden)), expected)


def test_causal(head):
    """Row k of the bias depends on the token to the left of slot k, and on none to the right of that."""
    prepared, prev = head.prepare(random(B, D)), tokens(B)
    before = head.bias(prev, prepared)
    for slot in range(B):
        other = prev.clone()
        other[slot] = (other[slot] + 1) % V
        changed = (head.bias(other, prepared) - before).abs().amax(-1)
        assert (changed[:slot] == 0).all()
        assert changed[slot] > 1e-4


@pytest.mark.parametrize("kind", ["xpress", "rnn"])
def test_reaches_far(kind):
    """The first token reaches the last slot in the heads that mix or carry along."""
    head = make_head(diffusion_config(FULL, head=head_config(kind)), V)
    randomize(head)
    prepared, prev = head.prepare(random(B, D)), tokens(B)
    other = prev.clone()
    other[0] = (other[0] + 1) % V
    assert (head.bias(other, prepared) - head.bias(prev, prepared))[-1].abs().max() > 1e-5


def test_shorter_blocks(head):
    """A shorter run of slots gets the first rows of the longer one's bias."""
    prepared, prev = head.prepare(random(B, D)), tokens(B)
    whole = head.bias(prev, prepared)
    for n in range(1, B):
        close(head.bias(prev[:n], prepared[:n]), whole[:n])


def test_blocks_at_once(head):
    """Several blocks at once get what each gets alone."""
    hidden, prev = random(3, B, D), tokens(3, B)
    together = head.bias(prev, head.prepare(hidden))
    for i in range(3):
        close(together[i], head.bias(prev[i], head.prepare(hidden[i])))


def test_upper_triangle_is_ignored():
    """What stands above the diagonal of the mixer does not count, and the diagonal does."""
    head = make_head(diffusion_config(FULL, head=head_config("xpress")), V)
    randomize(head)
    hidden, prev = random(B, D), tokens(B)
    before = head.bias(prev, head.prepare(hidden))
    with torch.no_grad():
        head.mix_l += torch.ones(B, B).triu(1)
    assert torch.equal(head.bias(prev, head.prepare(hidden)), before)
    with torch.no_grad():
        head.mix_l += torch.eye(B)
    assert (head.bias(prev, head.prepare(hidden)) - before).abs().amax(-1).min() > 1e-4


def test_starts_without_mixing():
    """A new xPress head mixes no slots: a token changes its own slot alone."""
    head = make_head(diffusion_config(FULL, head=head_config("xpress")), V)
    prepared, prev = head.prepare(random(B, D)), tokens(B)
    other = prev.clone()
    other[2] = (other[2] + 1) % V
    changed = (head.bias(other, prepared) - head.bias(prev, prepared)).abs().amax(-1)
    assert (changed > 0).tolist() == [slot == 2 for slot in range(B)]


def test_whole_block_counts():
    """The block's last hidden state reaches the first slot of the xPress head, and of no Markov head."""
    for kind in KINDS:
        head = make_head(diffusion_config(FULL, head=head_config(kind)), V)
        randomize(head)
        hidden = random(B, D)
        other = hidden.clone()
        other[-1] += 1
        prev = tokens(B)
        changed = head.bias(prev, head.prepare(hidden)) - head.bias(prev, head.prepare(other))
        assert bool((changed[0] != 0).any()) == (kind == "xpress")


def test_gradients(head):
    """Every weight gets a gradient."""
    head.bias(tokens(B), head.prepare(random(B, D))).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in head.parameters())


def test_state_dict_keys():
    """The weights have the names that `speculators` gives them."""
    xpress = "token_embed readout down_h down_g in_proj mlp_gate mlp_up mlp_down"
    markov = ["markov_w1.weight", "markov_w2.weight"]
    expected = {
        "xpress": [f"{name}.weight" for name in xpress.split()] + ["mix_l"],
        "vanilla": markov,
        "gated": [*markov, "gate_proj.weight", "gate_proj.bias"],
        "rnn": [*markov, "joint_proj.weight", "joint_proj.bias"],
    }
    for kind, names in expected.items():
        assert set(make_head(diffusion_config(FULL, head=head_config(kind)), V).state_dict()) == set(names)
