"""This library: without a drafter, and with each of the things that spare forwards."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from xpress_struct.constraints.compiled import clear_cache
from xpress_struct.constraints.json_schema import json_schema
from xpress_struct.drafting.diffusion import DiffusionDrafter
from xpress_struct.errors import ArgumentError
from xpress_struct.lab.bench.meter import GREEDY, Answer, Draw
from xpress_struct.lab.bench.systems.plain import Setting
from xpress_struct.lab.bench.tasks.task import CATEGORIES, Category, Task, prompt_ids
from xpress_struct.model import Model
from xpress_struct.results import Generation

__all__ = ["OURS", "Ours", "diffusion_of", "fresh"]

OURS: dict[str, str] = {
    "ours-none": "xpress_struct, no drafter",
    "ours-lookup": "xpress_struct, lookup",
    "ours-diffusion": "xpress_struct, diffusion",
    "ours-refined": "xpress_struct, diffusion refined",
    "ours-all": "xpress_struct, all",
}
"""Names and labels. The third and fourth always draft: they have no guard. The last is what `load` gives."""


class Ours:
    """One way of decoding by this library.

    Args:
        drafter: of all requests.
        options: of `generate`.
    """

    takes: tuple[Category, ...] = CATEGORIES

    def __init__(
        self, name: str, label: str, setting: Setting, drafter: Any, options: Mapping[str, Any]
    ) -> None:
        self.name, self.label, self.limit, self.options = name, label, setting.limit, dict(options)
        # A model of its own: what the guard has learned of costs is not shared between systems.
        self.model = Model(setting.model.target, setting.model.tokenizer, setting.model.vocabulary, drafter)

    @classmethod
    def named(cls, name: str, setting: Setting) -> Ours:
        """One of `OURS`.

        Raises:
            ArgumentError: it needs a trained drafter, or one with a head, and there is none.
        """
        drafters: dict[str, Any] = {"ours-none": None, "ours-lookup": "lookup"}
        options: dict[str, Any] = {}
        if name not in drafters:
            trained = diffusion_of(setting.drafter)
            if trained is None:
                raise ArgumentError("It needs a trained block-diffusion drafter: pass --drafter.")
            drafters[name] = setting.drafter if name == "ours-all" else fresh(trained)
            if name == "ours-refined" and trained.weights.head is None:
                raise ArgumentError("The drafter has no head to refine with.")
            if name != "ours-all":
                options["guard"] = False
            if name == "ours-diffusion" and trained.weights.head is not None:
                options["refine"] = "none"
        return cls(name, OURS[name], setting, drafters[name], options)

    def prepare(self, task: Task) -> None:
        """Compiles a grammar that several documents share."""
        if task.constraint is not None:
            task.constraint.matcher(self.model.vocabulary)

    def run(self, task: Task, draw: Draw = GREEDY) -> Answer:
        constraint = task.constraint
        started = time.perf_counter()
        if task.schema is not None:
            clear_cache()  # the schema may have been compiled for another one of ours
            started = time.perf_counter()
            constraint = json_schema(task.schema, layout="spaced")
        compile_s = time.perf_counter() - started
        result = self.model.generate(
            prompt_ids(task, self.model),
            constraint,
            max_new_tokens=self.limit,
            on_limit="cut" if constraint is None else "close",
            temperature=draw.temperature,
            seed=draw.seed,
            stop_strings=task.stops or None,
            **self.options,
        )
        return _answer(result, compile_s, time.perf_counter())


def _answer(result: Generation, compile_s: float, ended_at: float) -> Answer:
    stats = result.stats
    split = {
        "draft": stats.draft_s,
        "refine": stats.refine_s,
        "walk": stats.walk_s,
        "mask": stats.mask_s,
        "score": stats.score_s,
        "accept": stats.accept_s,
        "compile": compile_s + stats.compile_s,
    }
    pieces = result.pieces() if hasattr(result, "pieces") else None
    return Answer(
        ids=list(result.token_ids),
        text=result.text,
        completed=result.finish_reason in ("stop", "stop_string"),
        closed=result.finish_reason == "closed",
        ended_at=ended_at,
        compile_s=compile_s + stats.compile_s,
        mask_s=stats.mask_s + stats.walk_s,
        apply_s=stats.accept_s,
        draft_s=stats.draft_s,
        forced=stats.forced,
        proposed=stats.proposed,
        accepted=stats.accepted,
        proposed_by_slot=list(stats.proposed_by_slot),
        accepted_by_slot=list(stats.accepted_by_slot),
        split=split,
        guard_share=stats.guard_share,
        guarded=stats.guarded,
        pieces=None if pieces is None else [[text, origin] for text, origin in pieces],
    )


def diffusion_of(drafter: Any) -> DiffusionDrafter | None:
    """The trained drafter of a model: its own, or one of its several; None without one."""
    members = getattr(drafter, "drafters", (drafter,))
    return next((each for each in members if isinstance(each, DiffusionDrafter)), None)


def fresh(drafter: DiffusionDrafter) -> DiffusionDrafter:
    """The same weights, without what other requests have taught it about passes."""
    return DiffusionDrafter(drafter.weights, context_length=drafter.context_length)
