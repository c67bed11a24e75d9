"""A target and drafters over bytes that spell digits, letters and blanks, sharp and far apart."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

import xpress_struct as xs
from tests.stubs import stub_model

WIDTH = 257


def logits(seed: int, spread: float = 2.0) -> Callable[[tuple[int, ...]], list[float]]:
    """Random logits as a function of the last two ids and the length."""

    @cache
    def row(context: tuple[int, ...]) -> list[float]:
        return (spread * np.random.default_rng([seed, *context]).normal(size=WIDTH)).tolist()

    return lambda prefix: row((len(prefix) % 7, *prefix[-2:]))


def pair(spread: float = 1.5) -> xs.Model:
    """A target with a smaller model that drafts, and is often wrong."""
    return stub_model(logits(1, spread), drafter=stub_model(logits(2, spread)))
