"""Scripts for targets: what a stub model wants to write, and small vocabularies around bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np

from tests.stubs import END, ScriptedDrafter, prefers, stub_model
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.model import Model

PROMPT = [65]


def bytes_and(*tokens: bytes, end_ids: Sequence[int] = (END,), width: int | None = None) -> Vocabulary:
    """256 bytes, the end token, then the given tokens from id 257 on."""
    every = [bytes([i]) for i in range(256)] + [b""] + list(tokens)
    return Vocabulary.from_tokens(every, end_ids=list(end_ids), width=width)


def wants(*ids: int, width: int) -> Callable[[tuple[int, ...]], list[float]]:
    """Logits that fall from the first id to the last, at every place; 0 for the rest."""
    row = [0.0] * width
    for rank, token in enumerate(ids):
        row[token] = 20.0 - rank
    return lambda prefix: row


def wants_text(*texts: str) -> Callable[[tuple[int, ...]], list[float]]:
    """As `wants`, for single bytes."""
    return wants(*(text.encode()[0] for text in texts), width=257)


def noisy(seed: int = 0, width: int = 257, scale: float = 2.0) -> Callable[..., list[float]]:
    """Logits that look random but are a function of the prefix."""

    def logits(prefix: tuple[int, ...]) -> list[float]:
        digest = hashlib.blake2b(repr((seed, prefix)).encode(), digest_size=8).digest()
        rng = np.random.default_rng(int.from_bytes(digest, "little"))
        return (rng.standard_normal(width) * scale).tolist()

    return logits


def writer(text: str, drafter: object = None) -> Model:
    """A byte model that wants to write a text after a prompt of one token."""
    return stub_model(prefers(text), drafter=drafter)


def drafts(*texts: str) -> ScriptedDrafter:
    """A drafter that always offers the same bytes."""
    return ScriptedDrafter(lambda output: list("".join(texts).encode()))


def right_then_wrong(text: str, right: int, wrong: int = 0x7E) -> ScriptedDrafter:
    """A drafter that knows a text but errs after `right` bytes of each draft."""
    data = text.encode()

    def guess(output: tuple[int, ...]) -> list[int]:
        known = list(data[len(output) : len(output) + right])
        return [*known, wrong, wrong]

    return ScriptedDrafter(guess)
