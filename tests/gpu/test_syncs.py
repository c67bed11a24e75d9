"""How often a round waits for the GPU, by torch's own account."""

from __future__ import annotations

import warnings
from contextlib import contextmanager

import pytest
import torch

from tests.drafting.random_drafters import random_drafter
from tests.exactness.texts import GRAMMARS
from tests.gpu.device import GPU, marks, model_on_gpu, on_gpu
from xpress_struct.decoding.loop import Decoder
from xpress_struct.drafting.scores import BlockScores

pytestmark = marks

PARAMS = {
    "greedy": {},
    "sampled": {"temperature": 1.0},
    "top_k": {"temperature": 1.0, "top_k": 5},
    "top_p": {"temperature": 1.0, "top_p": 0.8},
}
KINDS = ["parallel", "none", "sequential", "low-confidence", "chunked"]


@contextmanager
def waits():
    """Collects what torch says of waiting for the GPU."""
    found = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield found
        finally:
            torch.cuda.set_sync_debug_mode("default")
            found += [f"{w.filename}:{w.lineno}" for w in caught if "called a synchroniz" in str(w.message)]


def rounds(monkeypatch, drafter, grammar, **options):
    """For each round but the first: passes, repairs under a mask, and what waited."""
    found, repairs = [], []
    plain, winner = Decoder._round, BlockScores.winners

    def counted(self):
        passes, forwards = self.stats.refine_passes, self.stats.forwards
        repairs.clear()
        with waits() as waited:
            plain(self)
        if self.stats.forwards > max(forwards, 1):
            found.append((self.stats.refine_passes - passes, len(repairs), waited))

    monkeypatch.setattr(Decoder, "_round", counted)
    monkeypatch.setattr(BlockScores, "winners", lambda self, *a: (repairs.append(a), winner(self, *a))[1])
    model_on_gpu().generate([1, 2, 3], GRAMMARS.get(grammar), drafter=drafter, guard=False, **options)
    assert len(found) > 2
    return found


def test_waits_are_seen():
    """The count finds a wait, and no wait in what only starts work."""
    row = torch.ones(3, device=GPU)
    with waits() as found:
        total = row.sum()
    assert found == []
    with warnings.catch_warnings(), waits() as found:
        total.item()
    assert len(found) == 1


@pytest.mark.parametrize("rule", ["coupled", "token", "block"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("params", PARAMS)
def test_rounds(params, kind, rule, monkeypatch):
    """At most R + 2 waits a round; where the rule needs a repair to be exact, one more for each."""
    for grammar in ("json", None):
        options = {"acceptance": rule, "refine": kind, "seed": 5, "max_new_tokens": 24, **PARAMS[params]}
        for passes, repairs, waited in rounds(monkeypatch, on_gpu(), grammar, **options):
            assert len(waited) <= passes + repairs + 2, waited
            assert repairs == 0 or (rule != "coupled" and params != "greedy")


@pytest.mark.parametrize(
    ("options", "drafter"),
    [
        ({"denoising_steps": 3}, {}),
        ({"draft_confidence": 0.02}, {}),
        ({}, {"ids": torch.arange(0, 257, 2)}),
        ({"temperature": 1.0}, {"window": 6, "context_length": 9}),
    ],
)
def test_forms(options, drafter, monkeypatch):
    """Denoising steps, a confidence cut, reduced vocabularies and windows stay within R + 2."""
    found = rounds(monkeypatch, on_gpu(random_drafter(**drafter)), "json", max_new_tokens=24, **options)
    assert all(len(waited) <= passes + 2 for passes, _, waited in found), found
