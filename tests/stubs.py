"""Scripted models: a target whose logits are a function of the prefix, and drafters to match.

Most cases become exact and fast with them: no weights, no tokenizer, six tokens or 257.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.drafting.drafter import Draft, DraftContext
from xpress_struct.model import Model
from xpress_struct.sampling import Noise

Logits = Callable[[tuple[int, ...]], Sequence[float]]
"""Prefix (prompt and output ids) -> V logits of the next token."""

END = 256


def label(value: object) -> str:
    """A parameter's name in a test id: the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


class StubCache:
    """Remembers ids instead of keys and values."""

    def __init__(self) -> None:
        self.ids: list[int] = []

    @property
    def lengths(self) -> list[int]:
        return [len(self.ids)]

    def rollback_to(self, lengths: Sequence[int]) -> None:
        assert 0 <= lengths[0] <= len(self.ids)
        del self.ids[lengths[0] :]


class StubTarget:
    """A target computed from the prefix. `seen` lists every (ids, rows) that it was asked to score."""

    no_speculation = None

    def __init__(self, logits: Logits, width: int, max_length: int | None = None) -> None:
        self._logits, self.width, self.max_length = logits, width, max_length
        self.device = torch.device("cpu")
        self.seen: list[tuple[list[int], int]] = []

    def new_cache(self) -> StubCache:
        return StubCache()

    def score(self, cache: StubCache, ids: Sequence[int], rows: int) -> Tensor:
        assert 1 <= rows <= len(ids)
        self.seen.append((list(ids), rows))
        cache.ids += ids
        first = len(cache.ids) - rows + 1
        return torch.tensor(
            [list(self._logits(tuple(cache.ids[:end]))) for end in range(first, first + rows)],
            dtype=torch.float32,
        )


class TappedCache(StubCache):
    """Keeps the states of the last forward besides."""

    tapped: Tensor | None = None


class TappedStub(StubTarget):
    """A scripted target that a drafter can look into, with a row of embeddings more for a mask token.

    The state of a place is random, and a function of the prefix that ends there.

    Args:
        logits, width, max_length: as of `StubTarget`.
        depth: layers that are tapped.
    """

    hidden_size, num_layers = 8, 4

    def __init__(self, logits: Logits, width: int, max_length: int | None = None, depth: int = 1) -> None:
        super().__init__(logits, width, max_length)
        generator = torch.Generator().manual_seed(0)
        self._embeddings = torch.randn(width + 1, self.hidden_size, generator=generator)
        self._rows = torch.randn(width, self.hidden_size, generator=generator)
        self._depth = depth
        self._states: dict[tuple[int, ...], Tensor] = {}

    def new_cache(self, taps: Sequence[int] = ()) -> StubCache:
        assert len(taps) in (0, self._depth)
        return TappedCache() if taps else StubCache()

    def score(self, cache: StubCache, ids: Sequence[int], rows: int) -> Tensor:
        logits = super().score(cache, ids, rows)
        if isinstance(cache, TappedCache):
            ends = range(len(cache.ids) - len(ids) + 1, len(cache.ids) + 1)
            cache.tapped = torch.stack([self._state(tuple(cache.ids[:end])) for end in ends])
        return logits

    def embed(self, ids: Tensor) -> Tensor:
        return self._embeddings[ids]

    def head(self, hidden: Tensor) -> Tensor:
        return hidden @ self._rows.T

    def head_of(self, ids: Tensor) -> Callable[[Tensor], Tensor]:
        return lambda hidden: hidden @ self._rows[ids].T

    def _state(self, prefix: tuple[int, ...]) -> Tensor:
        if prefix not in self._states:
            drawn = np.random.default_rng([len(prefix), *prefix]).normal(size=self._depth * self.hidden_size)
            self._states[prefix] = torch.from_numpy(drawn).float()
        return self._states[prefix]


class ScriptedDrafter:
    """Drafts what a function says.

    Args:
        guess: output ids so far -> token ids, or (token ids, q rows).
    """

    name = "scripted"
    taps: tuple[int, ...] = ()
    longest = 16
    honours = frozenset[str]()

    def __init__(self, guess: Callable[..., object], resumes: bool = False) -> None:
        self.guess, self.resumes = guess, resumes

    def begin(self, context: DraftContext) -> ScriptedDrafter:
        return self

    def propose(
        self, output: Sequence[int], room: int, matcher: Matcher, noise: Noise, drafted: int = 0
    ) -> Draft:
        guess = self.guess(tuple(output))
        tokens, q = guess if isinstance(guess, tuple) else (guess, None)
        return Draft(list(tokens)[:room], None if q is None else q[:room])


def byte_vocabulary(width: int | None = None) -> Vocabulary:
    """256 single bytes and an end token with id END."""
    tokens = [bytes([i]) for i in range(256)] + [b""]
    return Vocabulary.from_tokens(tokens, end_ids=[END], width=width)


def stub_model(
    logits: Logits, vocabulary: Vocabulary | None = None, drafter: object = None, **target: object
) -> Model:
    """A model without tokenizer (prompts are ids) over a scripted target."""
    vocabulary = vocabulary or byte_vocabulary()
    return Model(StubTarget(logits, vocabulary.width, **target), None, vocabulary, drafter)


def prefers(text: str, prompt_length: int = 1, width: int = 257) -> Logits:
    """Byte logits that want to write `text` and then the end token, whatever was written before."""
    wanted = [*text.encode(), END]

    def logits(prefix: tuple[int, ...]) -> list[float]:
        row = [0.0] * width
        place = len(prefix) - prompt_length
        row[wanted[min(place, len(wanted) - 1)]] = 10.0
        return row

    return logits


def constant(scores: dict[int, float], width: int = 257) -> Logits:
    """The same logits everywhere: 0, and what is given by id."""
    row = [scores.get(i, 0.0) for i in range(width)]
    return lambda prefix: row
