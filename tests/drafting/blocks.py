"""Random blocks: logits, a causal bias, a grammar, noise; and the draft that is wanted, slot by slot."""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from torch import Tensor

from tests.unit.grammars import make_grammar, make_vocabulary
from xpress_struct.constraints.matcher import FreeMatcher, Matcher
from xpress_struct.drafting.refinement import Plan, Refined, refine
from xpress_struct.errors import DeadEndError
from xpress_struct.sampling import SamplingParams, process, unpack_mask


class PairBias:
    """bias_k is a sum of one row for each token to the left: the simplest causal head. Counts its calls."""

    def __init__(self, slots: int, width: int, columns: int, generator: torch.Generator, scale: float = 2.0):
        self._rows = scale * torch.randn(slots, slots, width, columns, generator=generator)
        self._left = torch.ones(slots, slots).tril(-1).unsqueeze(-1)
        self.calls = 0

    def __call__(self, tokens: Tensor) -> Tensor:
        self.calls += 1
        return (self._rows[:, torch.arange(len(tokens)), tokens] * self._left).sum(1)


@dataclass
class Case:
    """One block to be refined."""

    base: Tensor
    bias: PairBias
    matcher: Matcher
    noise: Tensor | None
    params: SamplingParams
    temperature: float
    width: int
    draft_ids: Tensor | None

    @property
    def slots(self) -> int:
        return len(self.base)

    @property
    def drawn(self) -> SamplingParams:
        """The request's parameters at the draft's temperature."""
        p = self.params
        return SamplingParams(0.0 if self.noise is None else self.temperature, p.top_k, p.top_p, p.min_p)

    def refined(self, kind: str, passes: int = 6, **options: object) -> Refined:
        plan = Plan(kind, passes, self.temperature, options.pop("confidence", 0.0))
        return refine(
            self.base,
            options.pop("bias", self.bias),
            self.matcher,
            self.noise,
            plan,
            self.params,
            width=self.width,
            draft_ids=self.draft_ids,
            **options,
        )

    def wanted(self, *, wants_q: bool = False, refined: object = None) -> list[int]:
        """The draft of the definition: left to right, each slot under its mask.

        Args:
            refined: slots that the bias counts for; all by default.
        """
        ids = torch.arange(self.base.shape[1]) if self.draft_ids is None else self.draft_ids
        known = ids < self.width
        path, tokens = self.matcher.fork(), []
        while len(tokens) < self.slots and not path.ended:
            try:
                forced, mask = path.forced(), torch.from_numpy(path.mask())
            except DeadEndError:
                break
            slot = len(tokens)
            if forced:
                token = forced[0]
            else:
                legal = unpack_mask(mask, self.width)[ids[known]]
                if not legal.any():
                    break
                left = torch.tensor(tokens + [0] * (self.slots - slot))
                y = self.base[slot].float()
                if refined is None or slot in refined:
                    y = y + self.bias(left)[slot]
                token = int(ids[known][self._winner(y[known], ids[known], slot, legal, wants_q)])
            tokens.append(token)
            path.commit([token])
        return tokens

    def _winner(self, y: Tensor, ids: Tensor, slot: int, legal: Tensor, wants_q: bool) -> int:
        noise = 0.0 if self.noise is None else self.noise[slot, ids]
        plain = SamplingParams(self.drawn.temperature)
        if wants_q:
            return int((process(y, legal, self.drawn) + noise).argmax())
        if self.drawn.cuts:
            first = int((process(y, None, self.drawn) + noise).argmax())
            if legal[first]:
                return first
        return int((process(y, legal, plain) + noise).argmax())


def random_case(seed: int) -> Case:
    """A block of 3 to 8 slots somewhere in a random text of a random small grammar."""
    rng = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    vocabulary = make_vocabulary(rng, end=rng.random() < 0.8)
    kind = rng.choice(["regex", "choice", "lark", "free"])
    if kind == "free":
        matcher: Matcher = FreeMatcher(vocabulary)
    else:
        matcher = make_grammar(rng, kind)[0].matcher(vocabulary)[0]
    width = len(vocabulary.tokens) + rng.choice([0, 0, 3])
    slots, columns, draft_ids = rng.randint(3, 8), width, None
    if rng.random() < 0.3:
        columns = rng.choice([width - 6, width + 5])
    elif rng.random() < 0.4:
        draft_ids = torch.tensor(sorted(rng.sample(range(width), round(0.7 * width))))
        columns = len(draft_ids)
    temperature = rng.choice([0.0, 0.7, 1.4])
    params = SamplingParams(1.0, top_k=rng.choice([0, 0, 4]), top_p=rng.choice([1.0, 1.0, 0.8]))
    noise = -(-torch.rand(slots, width, generator=generator, dtype=torch.float64).log()).log()
    return Case(
        torch.randn(slots, columns, generator=generator),
        PairBias(slots, width, columns, generator),
        matcher,
        noise if temperature else None,
        params,
        temperature,
        width,
        draft_ids,
    )
