"""The tests that `check` runs, and how small a fault they find. No scipy: torch has the gamma function."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import torch

__all__ = ["ChiSquare", "Permutation", "chi_square", "permutation_test"]

# A cell of the chi-square is expected to be filled this often.
_FULL = 8.0
_POWER = 0.9
# Divisions of a permutation test that are worked out together.
_AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """Counts against a distribution.

    Attributes:
        statistic, cells: chi-square, and over how many cells.
        distance: total variation between what was seen and expected, over these cells.
        p_value: 0 when something impossible was seen.
        smallest: any distribution at this total variation or more from the expected one, over the cells,
            would have failed with a probability of about 0.9; above 1 when none would.
    """

    statistic: float
    cells: int
    distance: float
    p_value: float
    smallest: float


def chi_square(counts: Mapping[Hashable, int], expected: Mapping[Hashable, float], level: float) -> ChiSquare:
    """Pearson's test. Cells are merged from the rarest on, by what is expected alone.

    Args:
        counts: draws by outcome.
        expected: probabilities, summing to 1.
        level: the p-value below which the test fails; for `smallest`.
    """
    total = sum(counts.values())
    impossible = any(expected.get(outcome, 0.0) <= 0 for outcome in counts)
    order = sorted((share * total, counts.get(outcome, 0)) for outcome, share in expected.items())
    order.sort(key=lambda cell: cell[0])
    cells: list[tuple[float, int]] = []
    share, seen = 0.0, 0
    for more, also in order:
        share, seen = share + more, seen + also
        if share >= _FULL:
            cells.append((share, seen))
            share, seen = 0.0, 0
    if cells:
        cells[-1] = (cells[-1][0] + share, cells[-1][1] + seen)
    freedom = len(cells) - 1
    if freedom < 1:
        return ChiSquare(0.0, len(cells), 0.0, 0.0 if impossible else 1.0, math.inf)
    statistic = sum((seen - share) ** 2 / share for share, seen in cells)
    p_value = 0.0 if impossible else _upper_tail(statistic, freedom)
    distance = sum(abs(seen - share) for share, seen in cells) / (2 * total)
    smallest = _smallest_distance(freedom, total, level)
    return ChiSquare(statistic, len(cells), distance, p_value, smallest)


def _upper_tail(statistic: float, freedom: int) -> float:
    halves = torch.tensor([freedom / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(halves[0], halves[1]))


def _smallest_distance(freedom: int, total: int, level: float) -> float:
    """A distance TV moves the statistic by 4 n TV^2 or more (Cauchy-Schwarz), so this one is always found.

    The statistic is then taken as normal: mean k + x, variance 2 k + 4 x.
    """
    low, high = 0.0, 10.0 * freedom + 1000
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _upper_tail(middle, freedom) > level else (low, middle)
    critical, margin = high, NormalDist().inv_cdf(_POWER)
    low, high = 0.0, 100 * critical
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        found = freedom + middle - margin * math.sqrt(2 * freedom + 4 * middle) >= critical
        low, high = (low, middle) if found else (middle, high)
    return math.sqrt(high / (4 * total))


@dataclass(frozen=True, slots=True)
class Permutation:
    """Two sets of texts, compared by their n-grams.

    Attributes:
        distance: total variation between the n-grams of the two sets.
        middle: what it is by chance, in the middle of random divisions.
        critical: the distance at which the test would have failed.
        p_value: share of random divisions of all texts whose distance is as large.
    """

    distance: float
    middle: float
    critical: float
    p_value: float


def permutation_test(
    mine: Sequence[Sequence[int]],
    theirs: Sequence[Sequence[int]],
    level: float,
    *,
    longest: int = 2,
    seed: int = 0,
) -> Permutation:
    """Whether two sets of token ids were drawn alike, by n-grams of 1 to `longest` tokens.

    Texts are exchanged as wholes, since the tokens of one are not independent. The p-value is exact for any
    length and any number of texts.

    Args:
        level: the p-value below which the test fails; enough divisions are drawn to get there.
    """
    counts = _ngram_counts([*mine, *theirs], longest)
    divisions = math.ceil(10 / level)
    sides = np.zeros(len(counts))
    sides[: len(mine)] = 1.0
    rng = np.random.default_rng(seed)
    distances = np.empty(divisions)
    for start in range(0, divisions, _AT_ONCE):
        drawn = rng.permuted(np.tile(sides, (min(_AT_ONCE, divisions - start), 1)), axis=1)
        distances[start : start + len(drawn)] = _distances(drawn, counts)
    found = float(_distances(sides[None], counts)[0])
    # Rounding must not tell a division from itself.
    as_large = int((distances >= found - 1e-12).sum())
    middle, critical = np.quantile(distances, [0.5, 1 - level])
    return Permutation(found, float(middle), float(critical), (1 + as_large) / (1 + divisions))


def _ngram_counts(texts: Sequence[Sequence[int]], longest: int) -> np.ndarray:
    """How often each text has each n-gram, [texts, n-grams]."""
    columns: dict[tuple[int, ...], int] = {}
    cells: list[tuple[int, int]] = []
    for row, text in enumerate(texts):
        for size in range(1, longest + 1):
            for start in range(len(text) - size + 1):
                gram = tuple(text[start : start + size])
                cells.append((row, columns.setdefault(gram, len(columns))))
    counts = np.zeros((len(texts), len(columns)))
    for cell in cells:
        counts[cell] += 1
    return counts


def _distances(sides: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Total variation for divisions [d, texts] of 0 and 1."""
    mine, theirs = sides @ counts, (1 - sides) @ counts
    mine /= np.maximum(1, mine.sum(-1, keepdims=True))
    theirs /= np.maximum(1, theirs.sum(-1, keepdims=True))
    return np.asarray(np.abs(mine - theirs).sum(-1) / 2)
