"""A target and a drafter as random conditional tables, a set distance apart; no model.

A place has one of P kinds, and the target's row there depends on the kind and on the token to the left.
The drafter of a block knows the kinds of all its places and the token in front of it. What it cannot know
before it drafts are the tokens to the left inside the block: its base logits are mixtures over them, and
refinement gives them back as a bias, as xPress does (arXiv 2608.02438).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from xpress_struct.drafting.refinement import Bias
from xpress_struct.errors import ArgumentError
from xpress_struct.lab.simulate.grammar import Masks
from xpress_struct.sampling import NoiseKey, gumbel_rows

__all__ = ["Recipe", "Tables"]

# Streams of the tables' noise; rows of other keys than any round's.
_PLACES, _LEFTS, _TILTS, _MASKS, _FORCED = range(5)
# Rows [P, V, V] of one table at most, in numbers.
_LARGEST = 1 << 20
# Of the noise that tells the drafter's logits from the target's: found by halving between 0 and this.
_MOST_TILT, _HALVINGS = 32.0, 30


@dataclass(frozen=True, slots=True)
class Recipe:
    """What the tables are like.

    Attributes:
        vocabulary: V, 8 to 2,000.
        divergence: total variation between the target's row and the drafter's, in every context and before
            a mask, once the drafter knows the token to the left.
        temperature: of the target; 0 is greedy over rows made for 1.
        dependence: 0 to 1, how much of a row the token to the left decides, against the place.
        fidelity: 0 to 1, how much of the way from the base logits refinement goes.
        spread: of the logits; larger rows are sharper.
        illegal: share of tokens that a grammar bars in a context.
        forced: share of contexts in which it leaves one token.
        seed: of the tables.

    Raises:
        ArgumentError: a value is outside its range.
    """

    vocabulary: int = 128
    divergence: float = 0.1
    temperature: float = 1.0
    dependence: float = 0.4
    fidelity: float = 1.0
    spread: float = 1.6
    illegal: float = 0.0
    forced: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        checks = (
            ("vocabulary", 8 <= self.vocabulary <= 2000, "8 to 2,000"),
            ("divergence", 0 <= self.divergence <= 0.5, "between 0 and 0.5"),
            ("temperature", 0 <= self.temperature < math.inf, "0 or more"),
            ("dependence", 0 <= self.dependence <= 1, "between 0 and 1"),
            ("fidelity", 0 <= self.fidelity <= 1, "between 0 and 1"),
            ("spread", 0 < self.spread < math.inf, "above 0"),
            ("illegal", 0 <= self.illegal < 1, "0 or more and below 1"),
            ("forced", 0 <= self.forced < 1, "0 or more and below 1"),
        )
        for name, good, wanted in checks:
            if not good:
                raise ArgumentError(f"{name}={getattr(self, name)!r}: it must be {wanted}.")


class Tables:
    """The tables of one recipe.

    Attributes:
        recipe: as given.
        target: float32 [P, V, V], log-probabilities by kind of place and token to the left, no mask.
        drafter: the same of the drafter that knows the token to the left.
        legal: booleans [P, V, V], or None without a grammar.
        masks: the same, packed.
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        size = recipe.vocabulary
        self.kinds = max(4, min(64, _LARGEST // size**2))
        mine = math.sqrt(1 - recipe.dependence) * self._noise(_PLACES, self.kinds)[:, None]
        mine = mine + math.sqrt(recipe.dependence) * self._noise(_LEFTS, size)[None]
        target = (recipe.spread / (recipe.temperature or 1.0) * mine).softmax(-1)
        tilt = self._noise(_TILTS, self.kinds * size).view(self.kinds, size, size)
        drafter = _apart(target, tilt, recipe.divergence)
        self._drafter = drafter
        self.target, self.drafter = target.log(), drafter.log()
        legal = self._masks(target) if recipe.illegal or recipe.forced else None
        self.masks = Masks(np.packbits(np.ones(size, dtype=bool), bitorder="little")[None, None])
        if legal is not None:
            self.masks = Masks(np.packbits(legal.numpy(), axis=-1, bitorder="little"))
        self.legal = legal

    def base(self, place: int, left: int, slots: int) -> Tensor:
        """Base log-probabilities float32 [slots, V] of a block that begins at a place, behind a token."""
        rows = [self._drafter[place % self.kinds, left]]
        for slot in range(1, slots):
            rows.append(rows[-1] @ self._drafter[(place + slot) % self.kinds])
        return torch.stack(rows).log()

    def bias(self, base: Tensor, place: int, left: int) -> Bias:
        """What the tokens to the left add to the base logits of that block."""
        kinds = torch.arange(place, place + len(base)) % self.kinds
        front = torch.tensor([left])

        def bias(tokens: Tensor) -> Tensor:
            known = self.drafter[kinds, torch.cat([front, tokens[:-1]])]
            return self.recipe.fidelity * (known - base)

        return bias

    def _noise(self, stream: int, rows: int) -> Tensor:
        """Gumbel noise, float32 [rows, V]."""
        key = NoiseKey(self.recipe.seed)
        return gumbel_rows(key, range(rows), self.recipe.vocabulary, 16 + stream, None).float()

    def _masks(self, target: Tensor) -> Tensor:
        size = self.recipe.vocabulary
        numbers = self._noise(_MASKS, self.kinds * size).neg().exp().neg().exp()  # uniform again
        legal = numbers.view(self.kinds, size, size) >= self.recipe.illegal
        # A context keeps its likeliest token, so that there is no dead end.
        best = target.argmax(-1, keepdim=True)
        legal.scatter_(-1, best, True)
        alone = self._noise(_FORCED, self.kinds).neg().exp().neg().exp() < self.recipe.forced
        only = torch.zeros_like(legal).scatter_(-1, best, True)
        return torch.where(alone.unsqueeze(-1), only, legal)


def _apart(target: Tensor, noise: Tensor, divergence: float) -> Tensor:
    """Rows [P, V, V] at this total variation from the target's: its logits, and as much noise as it takes."""
    # Noise that leaves the likeliest token alone can move the row as far as may be asked for.
    noise = noise.scatter(-1, target.argmax(-1, keepdim=True), 0.0)
    logits = target.log()
    low, high = torch.zeros_like(target[..., :1]), torch.full_like(target[..., :1], _MOST_TILT)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        distance = ((logits + middle * noise).softmax(-1) - target).abs().sum(-1, keepdim=True) / 2
        low, high = (
            torch.where(distance < divergence, middle, low),
            torch.where(distance < divergence, high, middle),
        )
    return (logits + low * noise).softmax(-1)
