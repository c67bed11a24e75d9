"""Token-level and block rule with diffusion drafters: thousands of outputs against the enumerated promise."""

from __future__ import annotations

from unittest.mock import patch

import pytest
import torch

from tests.exactness.helpers import SIX, V, table
from tests.exactness.six import ALWAYS, count, knowing, on_six
from tests.stubs import StubTarget
from xpress_struct.drafting import refinement
from xpress_struct.drafting.autoregressive import AutoregressiveDrafter
from xpress_struct.drafting.lookup import LookupDrafter
from xpress_struct.drafting.several import SeveralDrafter
from xpress_struct.sampling import SamplingParams

RUNS, RIGHT = 350, 1e-4
RULES = ["token", "block"]
SOME = torch.tensor([0, 1, 2, 5])

# Drafter, then options of the count.
WAYS = {
    "none": (knowing, {"refine": "none", "draft_temperature": 1.0}),
    "none, argmax": (knowing, {"refine": "none"}),
    "no head": (lambda: on_six(None, output_multiplier=0.5), {"draft_temperature": 1.0}),
    "sequential": (knowing, {"refine": "sequential"}),
    "parallel, 1 pass": (knowing, {"refine": "parallel", "refine_passes": 1}),
    "parallel, 2 passes": (knowing, {"refine": "parallel", "refine_passes": 2}),
    "parallel, auto": (on_six, {"refine": "parallel", "refine_passes": "auto"}),
    "low confidence": (lambda: knowing(output_multiplier=0.6), {"refine": "low-confidence"}),
    "chunked": (knowing, {"refine": "chunked", "refine_passes": 1}),
    "3 steps, none": (on_six, {"refine": "none", "draft_temperature": 1.0, "denoising_steps": 3}),
    "3 steps, sequential": (
        lambda: knowing(output_multiplier=0.6),
        {"refine": "sequential", "denoising_steps": 3},
    ),
    "3 steps, parallel": (on_six, {"refine": "parallel", "refine_passes": 1, "denoising_steps": 3}),
    "3 steps, low confidence": (on_six, {"refine": "low-confidence", "denoising_steps": 3}),
    "3 steps, chunked": (on_six, {"refine": "chunked", "refine_passes": 1, "denoising_steps": 3}),
    "of the next": (lambda: knowing(predicts_next=True), {"refine_passes": 2}),
    "rnn": (lambda: on_six("rnn", predicts_next=True), {}),
    "some ids": (lambda: knowing(ids=SOME), {"refine_passes": 1}),
    "some ids, own head": (lambda: on_six(ids=SOME, own_head=True), {}),
    "hot draft": (knowing, {"draft_temperature": 1.7}),
    "confidence": (knowing, {"draft_confidence": 0.6, "refine_passes": 1}),
    "top-k": (knowing, {"params": SamplingParams(1.4, top_k=2), "refine_passes": 1}),
    "top-p": (knowing, {"params": SamplingParams(0.8, top_p=0.8)}),
    "guard": (lambda: on_six(None), {"draft_temperature": 1.0, "guard": True}),
    "auto length": (knowing, {"block_length": "auto"}),
    "forced runs": (knowing, {"grammar": "forcing", "refine_passes": 1}),
    "forced runs, 3 steps": (on_six, {"grammar": "forcing", "denoising_steps": 3}),
}


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("way", WAYS)
def test_distribution(way, rule):
    """Outputs are distributed as masked sampling, converged or not, and some guesses stand."""
    make, options = WAYS[way]
    with patch.object(refinement, "CHUNK", 2):
        found, stood = count(make(), rule, RUNS, **(ALWAYS | options))
    assert found > RIGHT
    assert stood > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_several(rule):
    """A choice among a diffusion drafter, a small model and lookup biases nothing."""
    small = AutoregressiveDrafter(StubTarget(table(9), V), SIX)
    drafter = SeveralDrafter([knowing(), small, LookupDrafter(shortest=1)])
    found, stood = count(drafter, rule, RUNS)
    assert found > RIGHT
    assert stood > 0.1


@pytest.mark.parametrize("rule", RULES)
def test_a_quick_count(rule):
    """The default ways of drafting pass a smaller count."""
    found, stood = count(knowing(), rule, 250, denoising_steps=2)
    assert found > RIGHT
    assert stood > 0.1
