"""Features: what the target shows along a document, computed once and kept on disk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from xpress_struct.constraints.matcher import FreeMatcher
from xpress_struct.errors import ArgumentError, ModelError
from xpress_struct.model import Model
from xpress_struct.sampling import SamplingParams, process, unpack_mask
from xpress_struct.target.target import TappedTarget
from xpress_struct.training.prompts import constraint_of
from xpress_struct.training.shards import Document

__all__ = ["LIKELIEST", "FeatureCache", "Features", "masks_of", "tapped_target"]

LIKELIEST = 32
"""Tokens kept of each masked distribution of the target."""

_AS_IT_IS = SamplingParams(temperature=1.0)


class Features(NamedTuple):
    """What the target shows of a document of n = p + r tokens.

    Attributes:
        states: float16 [m, taps * d], tapped hidden states of the first m < n tokens: those in
            front of the last that the grammar left open.
        ids: int64 [r, k], the likeliest tokens at each place of the response, best first.
        probabilities: float32 [r, k], what the masked distribution (temperature 1) gives them; 0 fills up.
    """

    states: Tensor
    ids: Tensor
    probabilities: Tensor


class FeatureCache:
    """Features by document, in one file each.

    Args:
        folder: where they are kept; float16, about 3.5 kB a token for three taps of width 576.
        taps: layers of the target that are read.
    """

    def __init__(self, model: Model, folder: str | Path, taps: Sequence[int]) -> None:
        self._model, self._target = model, tapped_target(model)
        self.taps = tuple(taps)
        name = f"taps-{'-'.join(map(str, taps))}-{model.vocabulary.fingerprint[:12]}"
        self._folder = Path(folder) / name
        self._folder.mkdir(parents=True, exist_ok=True)

    def of(self, document: Document) -> Features:
        """The features of a document, computed on the first call."""
        from safetensors.torch import load_file

        path = self._path(document)
        if not path.is_file():
            self.put(document, self.compute(document))
        stored = load_file(path)
        return Features(stored["states"], stored["ids"].long(), stored["probabilities"].float())

    def put(self, document: Document, features: Features) -> None:
        """Keeps features that are known already."""
        from safetensors.torch import save_file

        path = self._path(document)
        unfinished = path.with_suffix(".unfinished")
        save_file({key: value.contiguous() for key, value in features._asdict().items()}, unfinished)
        os.replace(unfinished, path)

    def _path(self, document: Document) -> Path:
        tokens = np.array([*document.prompt, *document.response]).tobytes()
        name = hashlib.sha256(document.key.encode() + tokens).hexdigest()[:24]
        return self._folder / f"{name}.safetensors"

    @torch.no_grad()
    def compute(self, document: Document) -> Features:
        """One forward of the target over the document."""
        target, length = self._target, len(document.response)
        cache = target.new_cache(self.taps)
        read = [*document.prompt, *document.response][:-1]
        logits = target.score(cache, read, length)
        masks = unpack_mask(torch.from_numpy(masks_of(self._model, document)), logits.shape[-1])
        p = process(logits, masks.to(logits.device), _AS_IT_IS).softmax(-1)
        best = p.topk(min(LIKELIEST, p.shape[-1]))
        assert cache.tapped is not None
        return Features(
            cache.tapped.to("cpu", torch.float16), best.indices.cpu().int(), best.values.cpu().half()
        )


def tapped_target(model: Model) -> TappedTarget:
    """The model's target.

    Raises:
        ArgumentError: it shows no hidden states.
    """
    if not hasattr(model.target, "hidden_size"):
        raise ArgumentError(f"{type(model.target).__name__} shows no hidden states to train a drafter on.")
    return cast(TappedTarget, model.target)


def masks_of(model: Model, document: Document) -> np.ndarray:
    """Packed masks [r, ceil(n/8)] of the places of a response, in front of each of its tokens.

    Raises:
        ModelError: the response is none of its grammar's texts, as this version of the library reads it.
    """
    constraint = constraint_of(document.grammar)
    matcher = FreeMatcher(model.vocabulary) if constraint is None else constraint.matcher(model.vocabulary)[0]
    rows = []
    for token in document.response:
        if not matcher.legal(token):
            raise ModelError(
                f"The document {document.key!r} was written under another reading of its grammar: leave its "
                "shard out, or have it written again."
            )
        rows.append(matcher.mask().copy())
        matcher.commit([token])
    return np.stack(rows)
