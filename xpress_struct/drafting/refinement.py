"""Refinement: base logits of a block become a draft whose tokens depend on those to their left.

The draft that is wanted is left to right, under the grammar's mask, with the noise of each place:

    x_k = argmax over legal v of  y_k(x_<k)[v] / T + G_k[v],     y_k(x_<k) = base_k + bias_k(x_<k),

and parallel passes find it: each computes all y from the last pass's tokens and walks the winners from
left to right, with repairs (xPress, arXiv 2608.02438, under a mask). Slot k is final after k + 1 passes
at the latest; an unconverged tail is a draft like any other.

For the token-level and block rules y_k, and with it q_k, is a function of x_<k and G_<k alone: it is that
of the very pass whose winner was taken, and nothing is decided by what was drawn at slot k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from torch import Tensor

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.drafting.control import Refine
from xpress_struct.drafting.path import Path
from xpress_struct.drafting.scores import BlockScores
from xpress_struct.drafting.settling import Settling
from xpress_struct.drafting.shortlist import Shortlist
from xpress_struct.sampling import SamplingParams

__all__ = ["CHUNK", "LOW_CONFIDENCE", "Bias", "Plan", "Refined", "refine"]

Bias = Callable[[Tensor], Tensor]
"""int64 [K] target ids, one a slot -> [K, Vd]; row k depends on the ids of slots < k only."""

CHUNK = 4
"""Slots of a chunk of `chunked`."""

LOW_CONFIDENCE = 0.5
"""`low-confidence` refines the slots whose likeliest token by the base logits is less likely than this."""


class Plan(NamedTuple):
    """How a block is refined.

    Attributes:
        kind: "none" walks the base logits. "sequential" computes one slot's bias after the other.
            "parallel" all at once, again and again. "low-confidence" is parallel, and leaves the base
            logits of the other slots as they are. "chunked" finishes one chunk before the next.
        passes: R, parallel passes at most (in each chunk); 1 or more.
        temperature: T; 0 drafts by argmax.
        confidence: the draft ends before the first slot whose likeliest token is less likely than this;
            0 never cuts.
    """

    kind: Refine
    passes: int
    temperature: float = 0.0
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Refined:
    """A draft, and how it came about.

    Attributes:
        tokens: k <= K legal ids. They end early behind an end token, at a dead end, where the drafter knows
            no legal token, where the room is used up, or by confidence.
        q: float64 [k, V], what each token was drawn from, one-hot where the grammar forced it; None
            when the draft is not random or nobody asked.
        passes: how often the bias was computed.
        history: the tokens before the first pass (the base's winners, no grammar asked) and after
            each pass; the walked draft alone when there was no pass.
        repairs: slots of the draft where the winner of the last pass was illegal.
        certainty: [2, k] on the logits' device, or on the host: max_v q_k of
            each slot, and the entropy of q_k in nats.
            q_k is that of `q`; where it was not asked for, the softmax of the slot's logits over all
            tokens, at the draft's temperature (1 for a draft by argmax), and one-hot where the grammar
            forced the token.
        chosen: slots of the draft whose token the grammar did not force.
    """

    tokens: list[int]
    q: Tensor | None
    certainty: Tensor
    chosen: list[int]
    passes: int
    history: list[list[int]]
    repairs: list[int]

    @property
    def changed(self) -> list[int]:
        """Slots of the draft whose token is not the base's winner."""
        if not self.passes:
            return self.repairs
        pairs = enumerate(zip(self.tokens, self.history[0], strict=False))
        return [slot for slot, (token, first) in pairs if token != first]

    def before(self, slot: int) -> Refined:
        """The draft without the slots from this one on."""
        return replace(
            self,
            tokens=self.tokens[:slot],
            q=None if self.q is None else self.q[:slot],
            repairs=[s for s in self.repairs if s < slot],
            certainty=self.certainty[:, :slot],
            chosen=[s for s in self.chosen if s < slot],
        )


def refine(
    base: Tensor,
    bias: Bias | None,
    matcher: Matcher,
    noise: Tensor | None,
    plan: Plan,
    params: SamplingParams,
    *,
    room: int | None = None,
    width: int,
    draft_ids: Tensor | None = None,
    wants_q: bool = False,
    candidates: int = 1,
) -> Refined:
    """Turns the base logits of a block into a draft under the grammar's mask.

    A forced token is written also when the drafter does not know it.

    Args:
        base: [K, Vd].
        bias: None leaves the base logits as they are.
        matcher: in front of slot 0; it is read and not moved.
        noise: float64 [K, V], G of each place; None when greedy.
        params: of the request; its top-k, top-p and min-p cut the draft too.
        room: open slots at most, those that the grammar does not force; None takes all.
        width: V.
        draft_ids: int64 [Vd], the target's id of each column of the logits, for a reduced draft vocabulary;
            None when they are the same.
        wants_q: report what the tokens were drawn from (token-level and block rules).
        candidates: how many tokens of a slot come down from the device in each pass, which waits for it once.
            1 is for the CPU: a slot whose winner is illegal is worked out under its mask. Above 1, a slot
            where none of them is legal is masked in the next pass, and ends the draft in the last; where
            q is wanted, it is drawn from the legal ones among that many likeliest tokens (`Shortlist`).
    """
    temperature = 0.0 if noise is None else plan.temperature
    drawn = replace(params, temperature=temperature)
    random = wants_q and not drawn.greedy
    scores = BlockScores(base, None if drawn.greedy else noise, drawn, width, draft_ids, random)
    kind = Shortlist if random and candidates > 1 else Settling
    block = kind(
        scores,
        Path(matcher, room),
        candidates,
        exact=candidates == 1,
        random=random,
        asks_confidence=plan.confidence > 0,
    )
    if bias is None or plan.kind == "none":
        block.walk_base()
    elif plan.kind == "sequential":
        block.refine(bias, chunk=1, passes=1)
    elif plan.kind == "parallel":
        block.refine(bias, chunk=block.slots, passes=plan.passes)
    elif plan.kind == "low-confidence":
        block.refine(_where_unsure(bias, scores), chunk=block.slots, passes=plan.passes)
    else:
        block.refine(bias, chunk=CHUNK, passes=plan.passes)
    tokens = list(block.path.tokens)
    chosen = [slot for slot in range(len(tokens)) if block.path.forced(slot) is None]
    refined = Refined(tokens, *block.report(), chosen, block.passes, block.history, block.repairs)
    if plan.confidence == 0:
        return refined
    exact_q = refined.q is not None and candidates == 1
    sure = refined.certainty[0].tolist() if exact_q else block.confidences()
    return _cut_unsure(refined, sure, plan.confidence)


def _cut_unsure(refined: Refined, sure: list[float], least: float) -> Refined:
    """Cuts by the probability of a slot's likeliest token, never by that of the drawn one."""
    return refined.before(next((slot for slot, share in enumerate(sure) if share < least), len(sure)))


def _where_unsure(bias: Bias, scores: BlockScores) -> Bias:
    """The bias at slots of low base confidence, 0 elsewhere. What is drawn there must not decide."""
    unsure = (scores.base_confidence() < LOW_CONFIDENCE).unsqueeze(-1)
    return lambda tokens: bias(tokens) * unsure
