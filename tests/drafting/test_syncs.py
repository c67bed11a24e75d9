"""How often a round waits for its device, on a pretend GPU: every operation there, every copy counted.

tests/gpu counts the same on a real one.
"""

from __future__ import annotations

import copy
from collections import Counter
from functools import cache

import pytest
import torch

from tests.drafting.blocks import random_case
from tests.drafting.random_drafters import random_drafter
from tests.exactness.texts import GRAMMARS
from tests.pretend import AVAILABLE, PretendGPU, pretend_device
from tests.stubs import byte_vocabulary
from tests.unit.models import tiny, tiny_model
from xpress_struct.decoding.loop import Decoder
from xpress_struct.drafting.diffusion import DiffusionDrafter
from xpress_struct.drafting.scores import BlockScores
from xpress_struct.model import Model
from xpress_struct.target.target import TransformersTarget

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="a real GPU is here, or torch cannot pretend one")

ACCEPT = {"coupled": "device_rows.choice", "token": "acceptance_batched._slots"}
ACCEPT["block"] = ACCEPT["token"]
PASS, BASE, CUT = "refinement._settle", "refinement.walk_base", "refinement._cut_unsure"
# Drawn under a mask that no candidate passes, or that top-k, top-p or min-p stand behind.
REPAIR = "scores.winners"
PARAMS = {
    "greedy": {},
    "sampled": {"temperature": 1.0},
    "top_k": {"temperature": 1.0, "top_k": 5},
    "top_p": {"temperature": 1.0, "top_p": 0.8},
    "min_p": {"temperature": 0.7, "min_p": 0.1},
}
KINDS = ["parallel", "none", "sequential", "low-confidence", "chunked"]


@cache
def target() -> TransformersTarget:
    return TransformersTarget(copy.deepcopy(tiny("llama")).requires_grad_(False).to(pretend_device()))


def on_device(drafter: DiffusionDrafter) -> DiffusionDrafter:
    weights = drafter.weights
    for module in (weights.backbone, weights.head):
        if module is not None:
            module.requires_grad_(False).to(pretend_device())
    if weights.draft_ids is not None:
        weights.draft_ids = weights.draft_ids.to(pretend_device())
    return drafter


def rounds(monkeypatch, drafter, grammar, **options):
    """A generation on the pretend GPU, and for each of its rounds the passes and what waited."""
    found = []
    plain = Decoder._round

    def counted(self):
        before, passes, forwards = len(gpu.waits), self.stats.refine_passes, self.stats.forwards
        plain(self)
        if self.stats.forwards > forwards:
            found.append((self.stats.refine_passes - passes, Counter(gpu.waits[before:])))

    monkeypatch.setattr(Decoder, "_round", counted)
    with torch.inference_mode(), PretendGPU() as gpu:
        model = Model(target(), None, byte_vocabulary(), None)
        if isinstance(drafter, DiffusionDrafter):
            drafter = on_device(drafter)
        result = model.generate([1, 2, 3], GRAMMARS.get(grammar), drafter=drafter, **options)
    monkeypatch.undo()
    assert len(found) > 2
    return result, [(passes, by_place(waits)) for passes, waits in found]


def by_place(waits):
    places = Counter()
    for wait, count in waits.items():
        places[wait.split(":")[0]] += count
    return places


CASES = [
    # Every kind, sampling and rule stands with each other one now and then.
    (rule, list(PARAMS)[(place + index) % 5], kind, ["json", "regex", None][index % 3])
    for place, rule in enumerate(["coupled", "coupled", "token", "block"])
    for index, kind in enumerate(KINDS)
]


@pytest.mark.parametrize(("rule", "params", "kind", "grammar"), CASES)
def test_rounds(rule, params, kind, grammar, monkeypatch):
    """A round waits once a refinement pass and once to accept; ids are those of the CPU.

    With the token-level and block rules, a sampled slot may wait once more in each pass.
    """
    options = {"acceptance": rule, "refine": kind, "max_new_tokens": 16, "guard": False, "seed": 5}
    options |= PARAMS[params]
    result, found = rounds(monkeypatch, random_drafter(), grammar, **options)
    for passes, waits in found:
        repairs = waits.pop(REPAIR, 0)
        assert waits.pop(ACCEPT[rule]) == 1
        # No draft, no wait: the block's last round has no room.
        assert waits.pop(BASE, 0) <= (kind == "none")
        assert waits.pop(PASS, 0) == passes
        assert not waits
        assert repairs <= (0 if rule == "coupled" or params == "greedy" else 5 * max(passes, 1))
    if kind != "none":
        assert sum(passes for passes, _ in found) == result.stats.refine_passes > 0
    wanted = tiny_model("llama").generate(
        [1, 2, 3], GRAMMARS.get(grammar), drafter=random_drafter(), **options
    )
    assert result.token_ids == wanted.token_ids
    assert result.stats.drafted > 0
    if rule != "coupled" and params != "greedy":
        # Otherwise a slot without a legal candidate may end a draft here and not on the CPU.
        assert result.stats.drafted == wanted.stats.drafted
        assert result.stats.draft_entropy == pytest.approx(wanted.stats.draft_entropy, abs=1e-4)


@pytest.mark.parametrize(
    ("options", "drafter"),
    [
        ({"denoising_steps": 3}, {}),
        ({"denoising_steps": 3, "temperature": 1.0}, {"head": None}),
        ({}, {"ids": torch.arange(0, 257, 2)}),
        ({"temperature": 1.0}, {"window": 6, "context_length": 9}),
    ],
)
def test_forms(options, drafter, monkeypatch):
    """Denoising steps, reduced vocabularies and windows wait for nothing."""
    for rule in ("coupled", "block"):
        _, found = rounds(
            monkeypatch, random_drafter(**drafter), "json", guard=False, seed=5, max_new_tokens=16, **options
        )
        for passes, waits in found:
            assert waits.total() - waits[REPAIR] <= max(passes, 1) + 1, (rule, waits)


@pytest.mark.parametrize("rule", ACCEPT)
def test_confidence(rule, monkeypatch):
    """Ending drafts by confidence waits once more, and reports nothing twice."""
    options = {"acceptance": rule, "draft_confidence": 0.02, "max_new_tokens": 16, "guard": False}
    result, found = rounds(monkeypatch, random_drafter(), "json", **options)
    assert all(waits[CUT] <= 1 and waits.total() <= passes + 2 for passes, waits in found)
    assert any(waits[CUT] for _, waits in found)
    wanted = tiny_model("llama").generate([1, 2, 3], GRAMMARS["json"], drafter=random_drafter(), **options)
    assert result.token_ids == wanted.token_ids


@pytest.mark.parametrize("rule", ACCEPT)
@pytest.mark.parametrize("drafter", ["lookup", None])
def test_without_model(drafter, rule, monkeypatch):
    """Where nothing is drafted by a model, a round waits once."""
    for params in ({}, {"temperature": 1.0, "top_p": 0.8, "seed": 2}):
        options = {"acceptance": rule, "max_new_tokens": 20, **params}
        result, found = rounds(monkeypatch, drafter, "json", **options)
        assert all(waits == {ACCEPT[rule]: 1} for _, waits in found)
        wanted = tiny_model("llama").generate([1, 2, 3], GRAMMARS["json"], drafter=drafter, **options)
        assert result.token_ids == wanted.token_ids


def test_pretend_gpu_finds_waits():
    """The count sees what a GPU would wait for, and refuses what it would refuse."""
    with torch.inference_mode(), PretendGPU() as gpu:
        device = pretend_device()
        row = torch.arange(6).to(device, non_blocking=True)
        total = (row * 2).sum().to("cpu", non_blocking=True)
        row[torch.tensor([1, 2]).to(device, non_blocking=True)] = 0
        assert gpu.waits == []
        for wait in (
            lambda: int(row[0]),
            lambda: bool(row.any()),
            lambda: row.tolist(),
            lambda: row.cpu(),
            lambda: row[row > 2],
            lambda: row.nonzero(),
            lambda: torch.tensor([1], device=device),
            lambda: torch.tensor([1]).to(device),
            lambda: row.new_tensor([1]),
            lambda: row[torch.tensor([1])],
        ):
            before = len(gpu.waits)
            wait()
            assert len(gpu.waits) == before + 1
        with pytest.raises(RuntimeError, match="two devices"):
            row + torch.arange(6)
    assert int(total) == 30


@pytest.mark.parametrize("kind", ["none", "sequential", "parallel", "chunked"])
def test_foreseen_winners(kind, monkeypatch):
    """Winners asked for ahead leave every draft and its q as they are, and save waits."""
    calls, winners = [], BlockScores.winners

    def counting(self, masks):
        calls.append(len(masks))
        return winners(self, masks)

    monkeypatch.setattr(BlockScores, "winners", counting)
    asked = {1: 0, 32: 0}
    for seed in range(200):
        case = random_case(seed)
        if not (case.noise is not None and case.params.cuts):
            continue
        found = {}
        for candidates in asked:
            calls.clear()
            found[candidates] = case.refined(kind, 3, wants_q=True, candidates=candidates)
            asked[candidates] += len(calls)
        assert found[1].tokens == found[32].tokens, seed
        assert torch.equal(found[1].q, found[32].q)
        assert found[1].history[1:] == found[32].history[1:]
    # One slot after the other leaves nothing to be seen ahead.
    assert 0 < asked[32] <= (1.0 if kind == "sequential" else 0.7) * asked[1]
