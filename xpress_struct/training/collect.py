"""Responses: the target answers the prompts, most of them under their grammar."""

from __future__ import annotations

import sys
import time
import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.errors import ArgumentError, XPressError
from xpress_struct.model import Model
from xpress_struct.prompt import encode_prompt
from xpress_struct.training.features import LIKELIEST, FeatureCache
from xpress_struct.training.free_texts import BATCH, write_free
from xpress_struct.training.plan import Job, Plan
from xpress_struct.training.prompts import Category, TrainPrompt, constraint_of
from xpress_struct.training.recorder import Recorder
from xpress_struct.training.shards import Document, append_shard, read_shards

__all__ = ["LONGEST", "collect", "forced_places"]

LONGEST: dict[Category, int] = {"calls": 128, "extraction": 128, "sql": 80, "code": 96, "chat": 64}
"""Most tokens of a response; longer ones are cut."""

_SHORTEST = 4
_HOPELESS = 200


def collect(
    model: Model,
    prompts: Sequence[TrainPrompt],
    folder: str | Path,
    *,
    documents: int,
    longest_prompt: int = 400,
    shard_size: int = 20,
    seconds: float | None = None,
    features: FeatureCache | None = None,
    known: Collection[str] = (),
) -> Counter[str]:
    """Adds documents to a folder of shards until it holds so many; goes on where it was stopped.

    Args:
        model: its target writes the responses, helped by the lookup drafter, which changes no token; those
            without a grammar are written many at once.
        longest_prompt: prompts of more tokens are left out.
        shard_size: documents in a shard; at most so many are lost when the run is killed, and besides those
            without a grammar that wait for their batch.
        seconds: stop after this long.
        features: keeps what the target shows on the way; without it that is computed when it is needed.
        known: keys of documents that are at hand elsewhere, and not written again.

    Returns:
        Documents by category, those that were there before included.

    Raises:
        ArgumentError: all prompts, or 200 in a row, are of no use.
    """
    folder = Path(folder)
    before = read_shards([folder], model.vocabulary.fingerprint)
    counts: Counter[str] = Counter(document.category for document in before)
    done = {*known, *(document.key for document in before)}
    fresh: list[Document] = []
    waiting: dict[float, list[_Asked]] = {}  # those without a grammar, by temperature
    ends_at = None if seconds is None else time.monotonic() + seconds
    jobs, tokens, started = Plan(prompts), 0, time.monotonic()
    left_out = in_a_row = 0
    bar = tqdm(total=documents, initial=len(before), desc="responses", unit="doc", file=sys.stderr)

    def keep(written: Sequence[Document]) -> None:
        nonlocal tokens
        fresh.extend(written)
        tokens += sum(len(document.response) for document in written)
        bar.set_postfix_str(f"{tokens / (time.monotonic() - started):.1f} tokens/s, {left_out} left out")
        bar.update(len(written))
        while len(fresh) >= shard_size:
            append_shard(folder, fresh[:shard_size], model.vocabulary.fingerprint)
            del fresh[:shard_size]

    while counts.total() < documents and (ends_at is None or time.monotonic() < ends_at):
        job = jobs.next(counts)
        if job is None:
            raise ArgumentError("All prompts are held out of training by their schemas; pass more.")
        if in_a_row > _HOPELESS:
            raise ArgumentError(
                f"The last {in_a_row} prompts of the category {job.prompt.category!r} could not be answered: "
                f"longer than {longest_prompt} tokens, or with a grammar that does not compile."
            )
        if job.key in done:
            in_a_row = 0  # it could be answered
            continue
        asked = _asked(model, job, longest_prompt)
        # What serves evaluation must be what decoding alone writes, to the last bit.
        if asked is not None and job.prompt.grammar is None and not job.prompt.held_out:
            in_a_row = 0
            counts[job.prompt.category] += 1
            group = waiting.setdefault(job.temperature, [])
            group.append(asked)
            if len(group) == BATCH:
                keep(_answer_together(model, waiting.pop(job.temperature), counts))
            continue
        document = None if asked is None else _answer(model, asked, features)
        if document is None:
            left_out, in_a_row = left_out + 1, in_a_row + 1
            continue
        in_a_row = 0
        counts[document.category] += 1
        keep([document])
    for group in waiting.values():
        keep(_answer_together(model, group, counts))
    if fresh:
        append_shard(folder, fresh, model.vocabulary.fingerprint)
    bar.close()
    return counts


class _Asked(NamedTuple):
    job: Job
    constraint: Constraint | None
    ids: list[int]


def _asked(model: Model, job: Job, longest_prompt: int) -> _Asked | None:
    """The prompt as the target reads it; None where it is too long or the constraint cannot be kept."""
    try:
        constraint = constraint_of(job.prompt.grammar)
        ids = encode_prompt(job.prompt.shown(model, constraint), model.tokenizer)
    except XPressError:
        return None
    return _Asked(job, constraint, ids) if len(ids) <= longest_prompt else None


def _answer(model: Model, asked: _Asked, features: FeatureCache | None) -> Document | None:
    """The document; None where the constraint cannot be kept, or next to nothing can be learned from it."""
    recorder = None if features is None else Recorder(features.taps)
    try:
        result = model.generate(
            asked.ids,
            asked.constraint,
            max_new_tokens=LONGEST[asked.job.prompt.category],
            temperature=asked.job.temperature,
            seed=asked.job.seed,
            drafter=recorder or "lookup",
            logprobs=LIKELIEST if recorder else 0,
            max_retries=0,
        )
    except XPressError:
        return None
    forced = forced_places(model, asked.constraint, result.token_ids)
    if len(result.token_ids) < _SHORTEST or all(forced):
        return None
    document = _document(asked, result.token_ids, forced)
    if recorder is not None and features is not None:
        features.put(document, recorder.features(result))
    return document


def _answer_together(model: Model, group: Sequence[_Asked], counts: Counter[str]) -> list[Document]:
    """Documents without a grammar, of one temperature; takes those that came to nothing from the counts."""
    jobs = [asked.job for asked in group]
    written = write_free(
        model,
        [asked.ids for asked in group],
        temperature=jobs[0].temperature,
        longest=max(LONGEST[job.prompt.category] for job in jobs),
        seed=zlib.crc32(" ".join(job.key for job in jobs).encode()),
    )
    documents = []
    for asked, response in zip(group, written, strict=True):
        if len(response) < _SHORTEST:
            counts[asked.job.prompt.category] -= 1
        else:
            documents.append(_document(asked, response[: LONGEST[asked.job.prompt.category]]))
    return documents


def _document(asked: _Asked, response: tuple[int, ...], forced: tuple[bool, ...] | None = None) -> Document:
    prompt, grammar = asked.job.prompt, asked.job.prompt.grammar
    return Document(
        asked.job.key,
        prompt.category,
        prompt.group,
        prompt.held_out,
        None if grammar is None else dict(grammar),
        asked.job.temperature,
        tuple(asked.ids),
        response,
        forced or (False,) * len(response),
    )


def forced_places(model: Model, constraint: Constraint | None, response: Sequence[int]) -> tuple[bool, ...]:
    """Where the grammar left one token only."""
    if constraint is None:
        return (False,) * len(response)
    matcher, _ = constraint.matcher(model.vocabulary)
    forced: list[bool] = []
    for token in response:
        forced.append(bool(matcher.forced()))
        matcher.commit([token])
    return tuple(forced)
