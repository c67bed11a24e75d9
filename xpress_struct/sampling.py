"""How a token is drawn: masks, logit processing, and noise that is a function of its place.

The order is fixed: mask, temperature, top-k, top-p, min-p. A mask after top-p could leave nothing legal.

Noise is counter-based: every number is a hash of (seed, stream, row, place, token), so that the draw
at a place does not depend on how many drafts came before it, nor on the device. The hash is the
finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from xpress_struct.errors import ArgumentError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "COIN",
    "DRAFT",
    "RESIDUAL",
    "Noise",
    "NoiseKey",
    "Rule",
    "SamplingParams",
    "draw",
    "gumbel",
    "gumbel_rows",
    "probabilities",
    "process",
    "uniform",
    "unpack_mask",
]

Rule = Literal["coupled", "token", "block"]

# Streams of noise. The coupled rule shares DRAFT between drafter and target on purpose; the other
# rules must draw coins and residuals that are independent of the noise that drew the draft.
DRAFT, COIN, RESIDUAL, _FRESH = 0, 1, 2, 3

_MASK64 = (1 << 64) - 1
_GOLDEN, _MIX1, _MIX2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Sampling arguments under the names of `transformers.generate`.

    Attributes:
        temperature: 0 is greedy, above 0 samples.
        top_k: keep the k likeliest legal tokens; 0 keeps all.
        top_p: keep the smallest set of legal tokens whose probability reaches this; 1 keeps all.
        min_p: keep legal tokens at least this fraction as likely as the likeliest; 0 keeps all.

    Raises:
        ArgumentError: a value is outside its range.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    def __post_init__(self) -> None:
        checks = (
            ("temperature", self.temperature, 0 <= self.temperature < math.inf, "0 or more"),
            ("top_k", self.top_k, self.top_k >= 0 and self.top_k == int(self.top_k), "0 or more"),
            ("top_p", self.top_p, 0 < self.top_p <= 1, "above 0 and at most 1"),
            ("min_p", self.min_p, 0 <= self.min_p <= 1, "between 0 and 1"),
        )
        for name, value, good, wanted in checks:
            if not good:
                raise ArgumentError(f"{name}={value!r}: it must be {wanted}.")

    @property
    def greedy(self) -> bool:
        """True when no noise is used."""
        return self.temperature == 0

    @property
    def cuts(self) -> bool:
        """True when top-k, top-p or min-p can make a legal token impossible."""
        return not self.greedy and (self.top_k > 0 or self.top_p < 1 or self.min_p > 0)


@dataclass(frozen=True, slots=True)
class NoiseKey:
    """Names a source of noise: a 64-bit seed and the row of the batch."""

    seed: int
    row: int = 0

    def at(self, place: int, stream: int) -> int:
        """64-bit counter origin of the noise at a place of the sequence."""
        state = _mix((self.seed + _GOLDEN) & _MASK64)
        for part in (self.row, stream, place):
            state = _mix((state + (part + 1) * _GOLDEN) & _MASK64)
        return state

    def fresh(self, number: int) -> NoiseKey:
        """A key whose noise is independent of this one's, one for each number."""
        return NoiseKey(self.at(number, _FRESH), self.row)


def _mix(value: int) -> int:
    value = ((value ^ (value >> 30)) * _MIX1) & _MASK64
    value = ((value ^ (value >> 27)) * _MIX2) & _MASK64
    return value ^ (value >> 31)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def uniform(key: NoiseKey, place: int, stream: int = COIN) -> float:
    """One number in (0, 1) for a place: the coin of the token-level and block rules."""
    return ((_mix(key.at(place, stream)) >> 11) + 0.5) * 2.0**-53


def gumbel(key: NoiseKey, place: int, width: int, *, stream: int = DRAFT, device: object = None) -> Tensor:
    """Standard Gumbel noise [width], float64, for the tokens at a place; equal on every device."""
    return gumbel_rows(key, range(place, place + 1), width, stream, device)[0]


def gumbel_rows(key: NoiseKey, places: Sequence[int], width: int, stream: int, device: object) -> Tensor:
    """The noise of several places, [places, width]; see `gumbel`."""
    import torch

    origins = torch.tensor([_signed(key.at(place, stream)) for place in places], dtype=torch.int64)
    state = torch.arange(1, width + 1, dtype=torch.int64, device=device)  # type: ignore[call-overload]
    state = state.mul_(_signed(_GOLDEN)) + origins.to(state.device, non_blocking=True).unsqueeze(-1)
    for shift, factor in ((30, _MIX1), (27, _MIX2)):
        # torch shifts arithmetically; the mask drops the copies of the sign bit.
        state ^= (state >> shift) & ((1 << (64 - shift)) - 1)
        state.mul_(_signed(factor))
    state ^= (state >> 31) & ((1 << 33) - 1)
    open_unit = ((state >> 11) & ((1 << 53) - 1)).to(torch.float64).add_(0.5).mul_(2.0**-53)
    noise: Tensor = open_unit.log_().neg_().log_().neg_()
    return noise


class Noise:
    """Gumbel noise by place under one key, for the drafter and for the target.

    A row is computed once and kept while it may be asked for again: a place that a round leaves open
    comes back in the next one.

    Args:
        key: names the source.
        width: number of token ids, V.
        device: where the rows are.
    """

    def __init__(self, key: NoiseKey, width: int, device: object = None) -> None:
        self.key, self.width, self.device = key, width, device
        self._rows: dict[int, Tensor] = {}

    def rows(self, start: int, count: int) -> Tensor:
        """Rows of the places start .. start + count - 1, float64 [count, V]."""
        import torch

        places = range(start, start + count)
        new = [place for place in places if place not in self._rows]
        if new:
            drawn = gumbel_rows(self.key, new, self.width, DRAFT, self.device)
            self._rows.update(zip(new, drawn.unbind(0), strict=True))
        return torch.stack([self._rows[place] for place in places])

    def forget(self, before: int) -> None:
        """Drops the rows of places that are decided."""
        for place in [place for place in self._rows if place < before]:
            del self._rows[place]


def unpack_mask(packed: Tensor, width: int) -> Tensor:
    """Packed masks [..., ceil(n/8)] of uint8, lowest bit first, as booleans [..., width].

    Logits wider than the mask (padding ids of the model) are barred.
    """
    import torch

    bits = torch.arange(8, dtype=torch.uint8, device=packed.device)
    flat = ((packed.unsqueeze(-1) >> bits) & 1).flatten(-2).bool()
    if flat.shape[-1] >= width:
        return flat[..., :width]
    return torch.nn.functional.pad(flat, (0, width - flat.shape[-1]))


def process(logits: Tensor, mask: Tensor | None, params: SamplingParams) -> Tensor:
    """Logits after mask, temperature, top-k, top-p and min-p.

    Args:
        logits: [..., V], any float type.
        mask: [..., V] booleans, True where legal, or None.
        params: what to apply. Greedy leaves the masked logits as they are.

    Returns:
        float32 [..., V]; minus infinity where a token cannot be drawn. Up to a constant per row
        these are log-probabilities of the processed distribution when temperature > 0.
    """
    import torch

    scores = logits.float()
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    if params.greedy:
        return scores
    # The largest float32 keeps a tiny temperature from turning into infinity minus infinity.
    scores = (scores - scores.amax(-1, keepdim=True)) / params.temperature
    if 0 < params.top_k < scores.shape[-1]:
        smallest = scores.topk(params.top_k, dim=-1).values[..., -1:]
        scores = scores.masked_fill(scores < smallest, -math.inf)
    if params.top_p < 1:
        ordered, order = scores.sort(dim=-1, descending=True, stable=True)
        weights = ordered.softmax(-1)
        before = weights.cumsum(-1) - weights
        cut = torch.zeros_like(weights, dtype=torch.bool).scatter(-1, order, before >= params.top_p)
        scores = scores.masked_fill(cut, -math.inf)
    if params.min_p > 0:
        # The likeliest token stands at 0, so its fraction is a plain logarithm.
        scores = scores.masked_fill(
            scores - scores.amax(-1, keepdim=True) < math.log(params.min_p), -math.inf
        )
    return scores


def probabilities(scores: Tensor) -> Tensor:
    """Processed scores [..., V] as float64 probabilities."""
    return scores.double().softmax(-1)


def draw(weights: Tensor, key: NoiseKey, place: int, stream: int = RESIDUAL) -> int:
    """Draws an index with probability proportional to weights [V] (float64, not all zero)."""
    noise = gumbel(key, place, weights.shape[-1], stream=stream, device=weights.device)
    return int((weights.log() + noise).argmax())
