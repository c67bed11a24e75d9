"""Heads that refine a block: a bias on each slot's logits from the tokens to its left.

Modules are named as in `speculators`, without its prefix.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, silu

from xpress_struct.drafting.config import DiffusionConfig, HeadConfig

__all__ = ["Head", "MarkovHead", "XPressHead", "make_head"]


class Head(Protocol):
    """A refiner of blocks of up to B slots."""

    def prepare(self, hidden: Tensor) -> Tensor:
        """What does not change from pass to pass.

        Args:
            hidden: [B, d], hidden states of the whole block.

        Returns:
            [B, x], one row per slot.
        """

    def bias(self, prev: Tensor, prepared: Tensor) -> Tensor:
        """What is added to the logits of n slots in a row; row k depends on prev[: k + 1] only.

        Args:
            prev: int64 [n], the target id to the left of each slot.
            prepared: [n, x], the rows of these slots.

        Returns:
            [n, Vd].
        """


class XPressHead(nn.Module):
    """Causal refiner of xPress (arXiv 2608.02438).

    Args:
        head: its sizes.
        hidden_size: d.
        block_size: B, the longest run of slots.
        vocab_size: V, ids of previous tokens.
        draft_vocab_size: Vd, width of the bias.
    """

    def __init__(
        self, head: HeadConfig, hidden_size: int, block_size: int, vocab_size: int, draft_vocab_size: int
    ) -> None:
        super().__init__()
        rank = head.rank
        self.token_embed = nn.Embedding(vocab_size, rank)
        self.down_h = nn.Linear(hidden_size, rank, bias=False)
        self.down_g = nn.Linear(hidden_size, rank, bias=False)
        self.in_proj = nn.Linear(3 * rank, rank, bias=False)
        self.mix_l = nn.Parameter(torch.zeros(rank, block_size, block_size))
        self.mlp_gate = nn.Linear(rank, head.mlp_hidden, bias=False)
        self.mlp_up = nn.Linear(rank, head.mlp_hidden, bias=False)
        self.mlp_down = nn.Linear(head.mlp_hidden, rank, bias=False)
        self.readout = nn.Linear(rank, draft_vocab_size, bias=False)
        for name, parameter in self.named_parameters():
            if name != "mix_l":
                nn.init.normal_(parameter, std=0.02)

    def prepare(self, hidden: Tensor) -> Tensor:
        """The share of the slot's and the block's hidden states in `in_proj`, [.., B, r]."""
        whole = hidden.mean(dim=-2, keepdim=True)
        down = torch.cat((self.down_h(hidden), self.down_g(whole).expand(*hidden.shape[:-1], -1)), dim=-1)
        return linear(down, self.in_proj.weight[:, : down.shape[-1]])

    def bias(self, prev: Tensor, prepared: Tensor) -> Tensor:
        """See `Head`; leading dimensions are blocks."""
        slots, rank = prepared.shape[-2:]
        x = prepared + linear(self.token_embed(prev), self.in_proj.weight[:, -rank:])
        mixer = self.mix_l[:, :slots, :slots].tril()
        x = x + torch.einsum("ckj,...jc->...kc", mixer, x)
        x = x + self.mlp_down(silu(self.mlp_gate(x)) * self.mlp_up(x))
        bias: Tensor = self.readout(x)
        return bias


class MarkovHead(nn.Module):
    """Markov head of DSpark (arXiv 2607.05147).

    The bias comes from the previous token ("vanilla"), gated by the slot's hidden state ("gated"), or is
    read out of a state that runs along the slots ("rnn"). Arguments as for `XPressHead`.
    """

    def __init__(self, head: HeadConfig, hidden_size: int, vocab_size: int, draft_vocab_size: int) -> None:
        super().__init__()
        self.kind, self.rank, rank = head.kind, head.rank, head.rank
        self.markov_w1 = nn.Embedding(vocab_size, rank)
        self.markov_w2 = nn.Linear(rank, draft_vocab_size, bias=False)
        if head.kind == "gated":
            self.gate_proj = nn.Linear(hidden_size + rank, rank)
        elif head.kind == "rnn":
            self.joint_proj = nn.Linear(2 * rank + hidden_size, 3 * rank)
        nn.init.normal_(self.markov_w1.weight, std=0.01)

    def prepare(self, hidden: Tensor) -> Tensor:
        """The share of the slots' hidden states in the gates, [.., B, x]."""
        if self.kind == "vanilla":
            return hidden[..., :0]
        if self.kind == "gated":
            return linear(hidden, self.gate_proj.weight[:, : -self.rank], self.gate_proj.bias)
        return linear(hidden, self.joint_proj.weight[:, 2 * self.rank :], self.joint_proj.bias)

    def bias(self, prev: Tensor, prepared: Tensor) -> Tensor:
        """See `Head`; leading dimensions are blocks."""
        x = self.markov_w1(prev)
        if self.kind == "gated":
            gate = prepared + linear(x, self.gate_proj.weight[:, -self.rank :])
            x = torch.sigmoid(gate) * x
        elif self.kind == "rnn":
            x = self._run(prepared + linear(x, self.joint_proj.weight[:, self.rank : 2 * self.rank]))
        bias: Tensor = self.markov_w2(x)
        return bias

    def _run(self, joint: Tensor) -> Tensor:
        """Outputs [.., n, r] of a gated state that runs along the slots, from its inputs [.., n, 3r]."""
        state = torch.zeros_like(joint[..., 0, : self.rank])
        outputs = []
        for slot in joint.unbind(-2):
            slot = slot + linear(state, self.joint_proj.weight[:, : self.rank])
            gate, candidate, output = slot.chunk(3, dim=-1)
            gate = torch.sigmoid(gate)
            state = gate * state + (1 - gate) * torch.tanh(candidate)
            outputs.append(torch.tanh(output))
        return torch.stack(outputs, dim=-2)


def make_head(config: DiffusionConfig, vocab_size: int) -> XPressHead | MarkovHead:
    """The head that a config names.

    Args:
        config: with a `head`.
        vocab_size: V, of the target.

    Raises:
        ValueError: it names none.
    """
    head, width = config.head, config.layers.hidden_size
    if head is None:
        raise ValueError("the drafter has no head")
    draft_vocab_size = config.draft_vocab_size or vocab_size
    if head.kind == "xpress":
        return XPressHead(head, width, config.block_size, vocab_size, draft_vocab_size)
    return MarkovHead(head, width, vocab_size, draft_vocab_size)
