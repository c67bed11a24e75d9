"""The training script for a GPU runs at toy size on the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.training.tiny import tiny_model, tiny_prompts, tokenizer
from xpress_struct.drafting.checkpoints import read_checkpoint
from xpress_struct.training.prompts import write_own

ROOT = Path(__file__).parents[2]


def run(*arguments, **env):
    """The script's outcome."""
    env = os.environ | {"PYTHON": sys.executable, "OMP_NUM_THREADS": "1"} | env
    return subprocess.run(
        [ROOT / "scripts/gpu_train.sh", *map(str, arguments)],
        capture_output=True, text=True, env=env, timeout=400, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_tiny(tmp_path):
    """Drafter, report, log and documents come back, in no more files than a lent machine gives."""
    out, work = tmp_path / "out", tmp_path / "work"
    tiny_model().target.model.save_pretrained(tmp_path / "m")
    tokenizer().save_pretrained(tmp_path / "m")
    write_own(tiny_prompts(20), tmp_path / "prompts.jsonl")
    target = ["--tiny", "--target", tmp_path / "m", "--prompts", tmp_path / "prompts.jsonl"]
    env = {"OUT": str(out), "WORK": str(work)}
    done = run(*target, "--documents", 16, "--tasks", work / "shards", "--max-shard-size", "300KB", **env)
    assert done.returncode == 0, done.stderr
    assert "RESULT {" in done.stdout
    files = sorted(path for path in out.rglob("*") if path.is_file())
    assert len(files) <= 8 and max(path.stat().st_size for path in files) < 16 << 20
    assert len([*out.glob("drafter/model-*.safetensors")]) > 1
    assert read_checkpoint(out / "drafter").config.layers.num_hidden_layers == 2
    report = (out / "report.md").read_text()
    assert report.startswith("# Training report") and "Equal ids under the coupled rule: 5 of 5" in report
    assert (out / "log.jsonl").read_text() == (work / "log.jsonl").read_text()
    with tarfile.open(out / "training.tar") as archive:
        assert {"shards/shard-00000.npz", "acceptance.json"} <= {*archive.getnames()}


def test_what_a_failed_training_left_comes_back(tmp_path):
    """The script fails with the training, and brings the checkpoint and the documents that are there."""
    out, work = tmp_path / "out", tmp_path / "work"
    for path in ("drafter/config.json", "shards/shard-00000.npz", "log.jsonl", "state.pt"):
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text("here")
    done = run("--tiny", "--target", "m", PYTHON="false", OUT=str(out), WORK=str(work))
    assert done.returncode == 1
    assert (out / "drafter/config.json").read_text() == (out / "log.jsonl").read_text() == "here"
    with tarfile.open(out / "training.tar") as archive:
        assert archive.getnames() == ["shards", "shards/shard-00000.npz"]
    assert not (out / "state.pt").exists()


@pytest.mark.parametrize(
    ("arguments", "env", "said"),
    [
        (["--out", "x"], {}, "no --out here"),
        (["--target"], {}, "--target needs a value"),
        ([], {"PYTHON": "no-such-python"}, "no-such-python is missing"),
    ],
)
def test_refusals(arguments, env, said):
    """What cannot be run is told, and nothing is set up."""
    done = run(*arguments, **env)
    assert done.returncode == 1
    assert said in done.stderr
