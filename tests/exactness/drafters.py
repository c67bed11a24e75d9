"""Drafters whose draws are picks of the oracle: sampled with a mask, without one, or not random."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from tests.exactness.helpers import END, Guess, Ids, Pick, V, legal_after, reference, table
from xpress_struct.constraints.constraint import Constraint
from xpress_struct.sampling import SamplingParams

EVERY = (True,) * V
# Two tokens a slot keep the number of branches small.
TWO = SamplingParams(1.2, top_k=2)


@cache
def q_row(seed: int, output: Ids, legal: tuple[bool, ...], params: SamplingParams) -> np.ndarray:
    return reference(table(seed)((9, *output)), legal, params)


def sampled(
    constraint: Constraint | None,
    length: int,
    *,
    seed: int = 77,
    masked: bool = True,
    params: SamplingParams = TWO,
) -> Guess:
    """Draws left to right from q, and returns that q.

    Args:
        masked: q is masked by the grammar; otherwise illegal tokens are offered too.
    """

    def guess(output: Ids, pick: Pick) -> object:
        tokens: list[int] = []
        rows: list[np.ndarray] = []
        for _ in range(length):
            legal = legal_after(constraint, (*output, *tokens)) if masked else EVERY
            if not any(legal) or END in tokens:
                break
            rows.append(q_row(seed, (*output, *tokens), legal, params))
            tokens.append(pick(rows[-1]))
            if not legal_after(constraint, (*output, *tokens[:-1]))[tokens[-1]]:
                # Behind an illegal token nothing may be used, so nothing is branched on.
                unused = length - len(tokens)
                tokens += [0] * unused
                rows += [np.full(V, 1 / V)] * unused
                break
        if not tokens:
            return []
        return tokens, torch.from_numpy(np.stack(rows))

    return guess


def fixed(length: int, *, seed: int = 77) -> Guess:
    """The likeliest token of an unmasked q: deterministic, often illegal, may pass the end."""

    def guess(output: Ids, pick: Pick) -> object:
        tokens: list[int] = []
        for _ in range(length):
            tokens.append(int(np.argmax(table(seed)((9, *output, *tokens)))))
        return tokens

    return guess


def legal_fixed(constraint: Constraint | None, length: int, *, seed: int = 77) -> Guess:
    """The likeliest legal token of q."""

    def guess(output: Ids, pick: Pick) -> object:
        tokens: list[int] = []
        for _ in range(length):
            legal = legal_after(constraint, (*output, *tokens))
            if not any(legal):
                break
            row = q_row(seed, (*output, *tokens), legal, SamplingParams(0.0))
            tokens.append(int(row.argmax()))
        return tokens

    return guess


def nothing(output: Ids, pick: Pick) -> object:
    return []
