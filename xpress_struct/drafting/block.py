"""A block's base logits -> what a session offers, as the request asks for it."""

from __future__ import annotations

from torch import Tensor

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.drafting.drafter import Draft, DraftContext, draft_params
from xpress_struct.drafting.refinement import Bias, Plan, refine
from xpress_struct.results import timed
from xpress_struct.sampling import Noise

__all__ = ["draft_block"]

# On a GPU this many of a slot's best tokens come down together, so that a repair needs no round trip.
_CANDIDATES = 32


def draft_block(
    context: DraftContext,
    base: Tensor,
    bias: Bias | None,
    matcher: Matcher,
    noise: Noise,
    place: int,
    room: int,
    plan: Plan,
    draft_ids: Tensor | None = None,
) -> tuple[Draft, list[list[int]]]:
    """Refines a block under the mask, and counts it in the statistics.

    Args:
        base: [K, Vd], logits of the places from `place` on.
        noise: of the round.
        room: open slots at most; the draft ends in front of the next one.
        plan, bias, draft_ids: see `refine`.

    Returns:
        The draft, and its history; see `Refined`.
    """
    params = draft_params(context, independent=bias is None or plan.kind == "none")
    with timed(context.stats, "refine_s"):
        refined = refine(
            base,
            bias,
            matcher,
            None if params.greedy else noise.rows(place, len(base)).to(base.device),
            plan._replace(temperature=params.temperature, confidence=context.control.draft_confidence or 0.0),
            params,
            room=room,
            width=context.target.width,
            draft_ids=draft_ids,
            wants_q=context.rule != "coupled" and not params.greedy,
            candidates=1 if base.device.type == "cpu" else _CANDIDATES,
        )
        context.stats.note_draft(refined.passes, refined.repairs, 0, 0.0, 0.0)
        sums = refined.certainty.sum(-1)
        # On the target's device the round's own wait brings them along.
        sums = sums.to("cpu", non_blocking=sums.device == context.target.device)
    report = len(refined.tokens), sums
    stand = refined.certainty[0].cumprod(0) if refined.certainty.device.type == "cpu" else None
    draft = Draft(
        refined.tokens,
        refined.q,
        report=report,
        expected=None if stand is None else float(stand[refined.chosen].sum()),
        repaired=refined.changed,
    )
    return draft, refined.history
