"""Trainer: steps over random blocks of random documents, resumable to the bit."""

from __future__ import annotations

import copy
import math
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from tqdm import tqdm

from xpress_struct.drafting.checkpoints import write_checkpoint
from xpress_struct.drafting.checkpoints.files import MAX_SHARD_SIZE
from xpress_struct.drafting.weights import DraftWeights
from xpress_struct.errors import ModelError
from xpress_struct.training.anchors import random_anchors
from xpress_struct.training.blocks import pack
from xpress_struct.training.drafter import TrainedDrafter
from xpress_struct.training.features import FeatureCache
from xpress_struct.training.losses import LossSettings, block_loss, targets_of
from xpress_struct.training.optimizers import Optimizers
from xpress_struct.training.shards import Document
from xpress_struct.training.widening import spread

__all__ = ["Progress", "TrainSettings", "Trainer"]

_SETTLED = 0.6


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """How to train.

    Attributes:
        steps: of the whole schedule: warm-up, then a cosine down to a tenth of the rate.
        documents, anchors: a step sees so many documents, and up to so many blocks of each.
        learning_rate, warmup, weight_decay, clip: see `Optimizers`; `warmup` is a share of the steps.
        dropout: see `TrainedDrafter`. Documents are few, so that without it they are learned by heart.
        loss: see `LossSettings`.
        seed: of the order of documents and of the blocks.
    """

    steps: int = 2000
    documents: int = 8
    anchors: int = 16
    learning_rate: float = 1e-3
    warmup: float = 0.04
    weight_decay: float = 0.05
    dropout: float = 0.1
    clip: float = 1.0
    loss: LossSettings = field(default_factory=LossSettings)
    seed: int = 0


@dataclass(slots=True)
class Progress:
    """How far a training is.

    Attributes:
        step: steps done.
        seconds: spent in them and in the computation of features.
        blocks: that were learned from.
        losses: step, total, base, teacher-forced and free-running distance, means since the entry before.
    """

    step: int = 0
    seconds: float = 0.0
    blocks: int = 0
    losses: list[tuple[int, float, float, float, float]] = field(default_factory=list)


class Trainer:
    """Trains a drafter. The same documents and settings give the same weights, stopped and resumed or not.

    Args:
        documents: to train on.
        folder: of the state, `state.pt`, and of the drafter, `drafter/`, in half precision.
        max_shard_size: of the drafter's files, see `write_checkpoint`.
    """

    def __init__(
        self,
        drafter: TrainedDrafter,
        documents: Sequence[Document],
        features: FeatureCache,
        settings: TrainSettings,
        folder: str | Path,
        max_shard_size: int | str = MAX_SHARD_SIZE,
    ) -> None:
        self.drafter, self.settings, self.progress = drafter, settings, Progress()
        self._documents, self._features = list(documents), features
        self._folder, self._max_shard_size = Path(folder), max_shard_size
        self._optimizers = Optimizers(drafter, settings.learning_rate, settings.weight_decay, settings.clip)
        ids, config = drafter.draft_ids.cpu(), drafter.config
        self._columns = torch.full((config.layers.vocab_size,), -1).scatter(0, ids, torch.arange(len(ids)))

    def run(
        self,
        *,
        seconds: float | None = None,
        every: float = 240.0,
        report: Callable[[Trainer], None] | None = None,
    ) -> None:
        """Trains to the end of the schedule, or for so long.

        Args:
            seconds: stop after this long, with a checkpoint to resume from.
            every: seconds between checkpoints.
            report: called at each checkpoint.
        """
        started = saved = time.monotonic()
        sums, counted = [0.0] * 4, 0
        self.drafter.train()
        bar = tqdm(total=self.settings.steps, initial=self.progress.step, desc="training", file=sys.stderr)
        while self.progress.step < self.settings.steps:
            before = time.monotonic()
            parts = self._step()
            self.progress.seconds += time.monotonic() - before
            sums, counted = [a + b for a, b in zip(sums, parts, strict=True)], counted + 1
            bar.update()
            bar.set_postfix_str(f"loss {sums[0] / counted:.3f}")
            over = seconds is not None and time.monotonic() - started >= seconds
            if over or time.monotonic() - saved >= every or self.progress.step == self.settings.steps:
                self.progress.losses.append((self.progress.step, *(value / counted for value in sums)))  # type: ignore[arg-type]
                sums, counted = [0.0] * 4, 0
                self.save()
                if report is not None:
                    self.drafter.eval()
                    report(self)
                    self.drafter.train()
                saved = time.monotonic()
            if over:
                break
        bar.close()

    def _step(self) -> list[float]:
        """One step; the total loss and its parts."""
        self._optimizers.zero_grad()
        rng = random.Random(f"{self.settings.seed} step {self.progress.step}")
        batch = self._batch()
        device = self.drafter.device
        sums = torch.zeros(4, device=device)
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(rng.getrandbits(60))  # of the dropout
            for document in batch:
                sums += self._learn(document, rng, 1 / len(batch)) / len(batch)
        self._optimizers.step(self._rate(self.progress.step))
        self.progress.step += 1
        # The only wait for a GPU in a step: the next documents are packed while it works.
        return cast(list[float], sums.tolist())

    def _learn(self, document: Document, rng: random.Random, share: float) -> Tensor:
        config, drafter, device = self.drafter.config, self.drafter, self.drafter.device
        anchors = random_anchors(document, self.settings.anchors, config.max_known, rng)
        if not anchors:
            return torch.zeros(4, device=device)
        features = self._features.of(document)
        cpu_blocks = pack(document, features, anchors, config.block_size, config.mask_token_id)
        targets = targets_of(features, cpu_blocks, self._columns)
        blocks = cpu_blocks.to(device)
        columns, p = (each.to(device, non_blocking=True) for each in targets)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            scored = drafter(blocks)
            losses = block_loss(scored, blocks, columns, p, drafter.draft_ids, self._loss())
        (losses.total * share).backward()  # type: ignore[no-untyped-call]
        self.progress.blocks += len(anchors)
        return torch.stack((losses.total.detach(), losses.base, losses.forced, losses.free))

    def _batch(self) -> list[Document]:
        """The step's documents: all of them once in each epoch, in another order each time."""
        total, size = len(self._documents), min(self.settings.documents, len(self._documents))
        chosen = []
        for number in range(self.progress.step * size, (self.progress.step + 1) * size):
            epoch, place = divmod(number, total)
            order = list(range(total))
            random.Random(f"{self.settings.seed} epoch {epoch}").shuffle(order)
            chosen.append(self._documents[order[place]])
        return chosen

    def _loss(self) -> LossSettings:
        """The step's loss: cross entropy alone at first, its share as set after 6 steps in 10.

        The total variation has next to no slope where a drafter gives the target's tokens nothing yet.
        """
        final = self.settings.loss.cross_entropy
        done = self.progress.step / (_SETTLED * self.settings.steps)
        return replace(self.settings.loss, cross_entropy=max(final, 1 - (1 - final) * done))

    def _rate(self, step: int) -> float:
        settings = self.settings
        warm = max(1, round(settings.warmup * settings.steps))
        if step < warm:
            return settings.learning_rate * (step + 1) / warm
        done = (step - warm) / max(1, settings.steps - warm)
        return settings.learning_rate * (0.1 + 0.45 * (1 + math.cos(math.pi * done)))

    def save(self) -> None:
        """Writes the state to resume from, and the drafter as a checkpoint."""
        self._folder.mkdir(parents=True, exist_ok=True)
        progress = self.progress
        state = {
            "drafter": self.drafter.state_dict(),
            "optimizers": self._optimizers.state(),
            "progress": [progress.step, progress.seconds, progress.blocks, progress.losses],
        }
        unfinished = self._folder / "state.unfinished"
        torch.save(state, unfinished)
        os.replace(unfinished, self._folder / "state.pt")
        write_checkpoint(
            _halved(self.drafter.weights), self._folder / "drafter", max_shard_size=self._max_shard_size
        )

    def _load(self, drafter: dict[str, Tensor], optimizers: list[dict[str, Any]]) -> None:
        mine = self.drafter.state_dict()
        if len(mine["draft_ids"]) > len(drafter["draft_ids"]):
            place = torch.searchsorted(mine["draft_ids"], drafter["draft_ids"].to(mine["draft_ids"].device))
            drafter = {name: spread(each, mine[name].shape, place) for name, each in drafter.items()}
            drafter["draft_ids"] = mine["draft_ids"]
            self._optimizers.spread(optimizers, place)
        self.drafter.load_state_dict(drafter)
        self._optimizers.resume(optimizers)

    def resume(self) -> None:
        """Goes on from the folder's state, which may know fewer tokens than the drafter; see `widen`.

        Raises:
            ModelError: there is none, or it belongs to a drafter of other sizes.
        """
        path = self._folder / "state.pt"
        try:
            state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
            self._load(state["drafter"], state["optimizers"])
        except (OSError, RuntimeError, KeyError, ValueError, IndexError) as error:
            raise ModelError(f"{str(path)!r} cannot be resumed: {error}") from error
        step, seconds, blocks, losses = state["progress"]
        self.progress = Progress(step, seconds, blocks, [tuple(row) for row in losses])
        ids = self.drafter.draft_ids.cpu()
        self._columns = torch.full_like(self._columns, -1).scatter(0, ids, torch.arange(len(ids)))


def _halved(weights: DraftWeights) -> DraftWeights:
    def half(value: Any) -> Any:
        return copy.deepcopy(value).half()

    lm_head: Tensor | None = weights.lm_head
    return DraftWeights(
        weights.config,
        half(weights.backbone),
        half(weights.head),
        weights.draft_ids,
        None if lm_head is None else lm_head.half(),
    )
