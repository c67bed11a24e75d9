"""From prompts to a drafter: responses, features, training, evaluation, a report."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from xpress_struct.drafting.checkpoints import read_checkpoint
from xpress_struct.drafting.checkpoints.files import MAX_SHARD_SIZE, check_shard_size
from xpress_struct.drafting.weights import DraftWeights
from xpress_struct.errors import ArgumentError
from xpress_struct.model import Model
from xpress_struct.training.collect import collect
from xpress_struct.training.drafter import TrainedDrafter
from xpress_struct.training.evaluation import Evaluation, summary
from xpress_struct.training.features import FeatureCache, tapped_target
from xpress_struct.training.prompts import CATEGORIES, TrainPrompt
from xpress_struct.training.report import write_report
from xpress_struct.training.shards import Document, append_shard, read_shards
from xpress_struct.training.start import DrafterSizes, new_weights, tap_layers
from xpress_struct.training.texts import code_documents
from xpress_struct.training.trainer import Trainer, TrainSettings
from xpress_struct.training.widening import widen

__all__ = ["EVALUATED", "train"]

EVALUATED = 12
"""Held-out documents of each category that are evaluated."""


def train(
    model: Model,
    prompts: Sequence[TrainPrompt],
    out: str | Path,
    *,
    documents: int = 2000,
    shards: Sequence[str | Path] = (),
    code: str | Path | None = None,
    code_count: int = 300,
    features: str | Path | None = None,
    sizes: DrafterSizes | None = None,
    settings: TrainSettings | None = None,
    resume: bool = False,
    seconds: float | None = None,
    every: float = 240.0,
    collect_seconds: float | None = None,
    max_shard_size: int | str = MAX_SHARD_SIZE,
) -> dict[str, Any]:
    """Trains a drafter for a model.

    `out` gets `shards/` (the responses), `features/`, `state.pt` (to resume from), `drafter/` (the
    checkpoint that `load(drafter=...)` takes), `log.jsonl` and `report.md`.

    Args:
        model: its target is drafted for, in float32 on a CPU; it writes the responses.
        prompts: may be empty where there are shards.
        documents: responses to collect, those that are in `out` included.
        shards: further folders of documents to train on; none of these is collected again.
        code: a source of `code_documents`, which go to `out/shards` too.
        code_count: how many of them.
        features: where features are kept; `out/features` by default.
        resume: go on with what is in `out`; documents that came since take part from here on, and the
            draft vocabulary grows by their tokens, up to its size in `sizes`.
        seconds: stop training after this long; resume goes on.
        every: seconds between checkpoints, each with an evaluation.
        collect_seconds: stop collecting after this long; training goes on with what there is.
        max_shard_size: of the drafter's files, see `write_checkpoint`.

    Returns:
        The last line of the log.

    Raises:
        ArgumentError: `out` holds a training and `resume` is False; there is nothing to train on; or
            `max_shard_size` is no size.
    """
    check_shard_size(max_shard_size)
    out, sizes, settings = Path(out), sizes or DrafterSizes(), settings or TrainSettings()
    if (out / "state.pt").exists() and not resume:
        raise ArgumentError(f"{str(out)!r} holds a training already: resume it, or choose another folder.")
    resumed = resume and (out / "state.pt").exists()
    target = tapped_target(model)
    taps = tap_layers(target.num_layers, sizes.taps)
    cache = FeatureCache(model, features or out / "features", taps)
    if prompts:
        collect(
            model,
            prompts,
            out / "shards",
            documents=documents,
            seconds=collect_seconds,
            features=cache,
            known={document.key for document in read_shards(shards, model.vocabulary.fingerprint)},
        )
    found = read_shards([out / "shards", *shards], model.vocabulary.fingerprint)
    if code is not None:
        known = {document.key for document in found}
        texts = [each for each in code_documents(model, code, code_count) if each.key not in known]
        if texts:
            append_shard(out / "shards", texts, model.vocabulary.fingerprint)
        found += texts
    learned = [document for document in found if not document.held_out]
    if not learned:
        raise ArgumentError("There is no document to train on: pass prompts, or folders with shards.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        weights = _weights(model, learned, prompts, sizes, out if resumed else None)
    drafter = TrainedDrafter(weights, target, settings.dropout).to(target.device)
    trainer = Trainer(drafter, learned, cache, settings, out, max_shard_size)
    if resumed:
        trainer.resume()
    log = _Log(out, learned, Evaluation(model, _evaluated(found), cache))
    if not resumed or trainer.progress.step >= settings.steps:
        log(trainer)
    trainer.run(seconds=seconds, every=every, report=log)
    write_report(out)
    return log.last


def _weights(
    model: Model,
    documents: Sequence[Document],
    prompts: Sequence[TrainPrompt],
    sizes: DrafterSizes,
    resumed: Path | None,
) -> DraftWeights:
    if resumed is not None:
        weights = read_checkpoint(resumed / "drafter", dtype=torch.float32)
        return widen(weights, documents, sizes.draft_vocab_size)
    texts = (f"{each.prompt} {json.dumps(each.grammar)}" for each in prompts if not each.held_out)
    return new_weights(model, documents, sizes, texts)


def _evaluated(documents: Sequence[Document]) -> list[Document]:
    """The first of each category: the same ones while the shards grow."""
    greedy = [document for document in documents if document.held_out and document.temperature == 0]
    return [
        document
        for name in CATEGORIES
        for document in [each for each in greedy if each.category == name][:EVALUATED]
    ]


class _Log:
    """Evaluates and writes a line at each checkpoint."""

    def __init__(self, out: Path, documents: Sequence[Document], evaluation: Evaluation) -> None:
        self._path, self._documents, self._evaluation = out / "log.jsonl", documents, evaluation
        self.last: dict[str, Any] = {}
        out.mkdir(parents=True, exist_ok=True)

    def __call__(self, trainer: Trainer) -> None:
        progress, started = trainer.progress, time.monotonic()
        result = self._evaluation.run(trainer.drafter)
        self.last = {
            "step": progress.step,
            "seconds": round(progress.seconds),
            "blocks": progress.blocks,
            "losses": list(progress.losses[-1][1:]) if progress.losses else None,
            "documents": {
                name: sum(document.category == name for document in self._documents) for name in CATEGORIES
            },
            "held_out": {
                name: {way: asdict(counts) for way, counts in ways.items()} for name, ways in result.items()
            },
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(self.last) + "\n")
        head = f"step {progress.step}, {progress.seconds / 60:.1f} min, {progress.blocks} blocks"
        tqdm.write(f"{head}, evaluated in {time.monotonic() - started:.0f} s", file=sys.stderr)
        for line in summary(result):
            tqdm.write("  " + line, file=sys.stderr)
