"""Equal ids: under the coupled rule, and greedily under any, a drafter changes no token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.matcher import FreeMatcher
from xpress_struct.lab.check.decoders import Ask, Decode, plain
from xpress_struct.lab.check.report import Section
from xpress_struct.model import Model
from xpress_struct.sampling import NoiseKey, SamplingParams, gumbel, process, unpack_mask

__all__ = ["Case", "check_equal_ids", "logit_gap"]

# A gap this small is a tie in float32 too: forwards of several tokens round otherwise than those of one.
_TIE = 1e-3
# In lower precision a logit is known to a few units in its last place.
_UNITS = 4


@dataclass(frozen=True, slots=True)
class Case:
    """A prompt, as ids, and what the output must be."""

    prompt: tuple[int, ...]
    constraint: Constraint | None


def check_equal_ids(
    model: Model, decode: Decode, cases: Sequence[Case], asks: Sequence[Ask], name: str
) -> Section:
    """Decodes every case as asked, with and without the drafter."""
    gaps: list[tuple[float, float, str]] = []
    compared = 0
    for case in cases:
        for ask in asks:
            mine = tuple(decode(model, case.prompt, case.constraint, ask))
            theirs = tuple(plain(model, case.prompt, case.constraint, ask))
            compared += 1
            if mine != theirs:
                pairs = enumerate(zip(mine, theirs, strict=False))
                at = next((i for i, (a, b) in pairs if a != b), min(len(mine), len(theirs)))
                gap, tie = logit_gap(model, case, ask, theirs[:at])
                where = f"token {at} at temperature {ask.temperature:g}, logit gap {gap:.2g}"
                gaps.append((gap, tie, where))
    if not gaps:
        return Section(name, "pass", 0.0, None, None, f"{compared} outputs, all equal")
    bugs = [each for each in gaps if each[0] > each[1]]
    _, tie, where = max(bugs or gaps)
    why = "no tie" if bugs else f"near-ties (up to {tie:.2g}): rounding may explain them"
    detail = f"{len(gaps)} of {compared} outputs differ: first at {where}; {why}"
    return Section(name, "fail" if bugs else "inconclusive", len(gaps), None, None, detail)


def logit_gap(model: Model, case: Case, ask: Ask, output: Sequence[int]) -> tuple[float, float]:
    """How clear the choice behind an output is: the best legal logit minus the second, with the noise of the
    place; and the gap up to which rounding can turn it."""
    target = model.target
    ids = [*case.prompt, *output]
    logits = target.score(target.new_cache(), ids, 1)[0]
    vocabulary = model.vocabulary
    matcher = FreeMatcher(vocabulary) if case.constraint is None else case.constraint.matcher(vocabulary)[0]
    matcher.commit(output)
    if matcher.ended:
        return float("inf"), 0.0
    mask = unpack_mask(torch.from_numpy(matcher.mask()).to(logits.device), len(logits))
    params = SamplingParams(ask.temperature)
    scores = process(logits, mask, params).double()
    if not params.greedy:
        noise = gumbel(NoiseKey(ask.seed), len(ids), len(logits), device=logits.device)
        scores = (scores + noise) * ask.temperature
    best = scores.topk(2).values
    dtype = getattr(getattr(target, "model", None), "dtype", torch.float32)
    tie = max(_TIE, _UNITS * torch.finfo(dtype).eps * float(logits.abs().max()))
    return float(best[0] - best[1]), tie
