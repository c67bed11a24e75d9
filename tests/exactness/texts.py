"""Drafters over bytes for the equality of ids: good, bad, illegal, and past the end."""

from __future__ import annotations

import functools

import numpy as np

import xpress_struct as xs
from tests.stubs import END, Logits, ScriptedDrafter

GRAMMARS = {
    "json": xs.json_schema(
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 5},
                "age": {"type": "integer", "minimum": 0, "maximum": 120},
                "kind": {"enum": ["red", "green", "rot"]},
            },
            "required": ["name", "age", "kind"],
            "additionalProperties": False,
        }
    ),
    "regex": xs.regex("(ab|[a-f]{2,9})-([0-9]{3}|x+é)"),
    "choice": xs.choice(["yes", "yesterday", "no", "not now", "née"]),
}

CUTS = {"none": {}, "top_k": {"top_k": 5}, "top_p": {"top_p": 0.8}, "min_p": {"min_p": 0.1}}


def hashed(seed: int) -> Logits:
    """Random logits over bytes and the end token, by the last four ids and the length."""

    @functools.cache
    def row(length: int, ids: tuple[int, ...]) -> list[float]:
        drawn = np.random.default_rng([seed, length, *ids]).normal(size=257)
        drawn[END] += 1.5
        return (2 * drawn).tolist()

    return lambda prefix: row(len(prefix), prefix[-4:])


def drafters(plain: tuple[int, ...]) -> dict[str, ScriptedDrafter]:
    """Drafters that know the answer, half of it, or nothing of it."""

    def random(output: tuple[int, ...]) -> list[int]:
        drawn = np.random.default_rng([len(output), *output[-3:]])
        return drawn.integers(0, 257, size=16).tolist()

    def half(output: tuple[int, ...]) -> list[int]:
        rest = plain[len(output) : len(output) + 16]
        return [token if slot % 3 < 2 else 97 for slot, token in enumerate(rest)]

    guesses = {
        "garbage": lambda output: [98] * 16,
        "perfect": lambda output: [*plain[len(output) :]],
        "random": random,
        "half-right": half,
        "illegal": lambda output: list(b"```json\n{"),
        "after-end": lambda output: [*plain[len(output) :], END, 97, END, 123],
        "wide": lambda output: [400, -1, 97],
    }
    return {name: ScriptedDrafter(guess) for name, guess in guesses.items()} | {
        "resuming": ScriptedDrafter(half, resumes=True)
    }
