"""The GPU check runs at toy size on the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
STEPS = {"draft", "refine", "walk", "mask", "score", "accept"}


def test_tiny():
    """Every mode is measured: seconds by step, the share of all but score, and drafts that stand."""
    env = os.environ | {"PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [ROOT / "scripts/gpu_check.sh", "--tiny"],
        capture_output=True, text=True, env=env, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith("RESULT ")
    result = json.loads(last.removeprefix("RESULT "))
    assert result["device"] == "cpu"
    for mode in ("greedy", "sampled", "known"):
        row = result[mode]
        assert set(row["steps_ms"]) == STEPS
        assert row["rounds"] == 4
        assert row["all_but_score"] == pytest.approx(
            1 - row["steps_ms"]["score"] / sum(row["steps_ms"].values())
        )
        assert row["syncs_per_round"] is None
        assert row["round_ms"] > 0
    assert result["known"]["tokens_per_round"] > 4
    assert result["known"]["passes_per_round"] == 0
    assert min(result[mode]["passes_per_round"] for mode in ("greedy", "sampled")) >= 1


@pytest.mark.parametrize(
    ("arguments", "env", "said"),
    [
        (["--huge"], {}, "unknown argument '--huge'"),
        ([], {"PYTHON": "no-such-python"}, "no-such-python is missing"),
    ],
)
def test_refusals(arguments, env, said):
    """What cannot be run is told, and nothing is set up."""
    done = subprocess.run(
        [ROOT / "scripts/gpu_check.sh", *arguments],
        capture_output=True, text=True, env=os.environ | env, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert said in done.stderr


@pytest.mark.skipif(torch.cuda.is_available() or Path("/dev/nvidiactl").exists(), reason="a GPU is here")
def test_no_gpu():
    """Without a GPU nothing is fetched."""
    env = os.environ | {"PYTHON": sys.executable}
    done = subprocess.run(
        [ROOT / "scripts/gpu_check.sh"], capture_output=True, text=True, env=env, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "no NVIDIA GPU" in done.stderr
