"""Questions whose schemas the drafter's training never saw, asked as the training asked them."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import xpress_struct as xs
from benchmarks.tasks import read_rows
from xpress_struct.constraints.constraint import Constraint
from xpress_struct.prompt import encode_prompt
from xpress_struct.training.prompts import TrainPrompt, constraint_of
from xpress_struct.training.shards import read_shards
from xpress_struct.training.sources import read_prompts

__all__ = ["CATEGORIES", "MADE_UP", "Question", "Selection", "select"]

MADE_UP = "made-up"
# Names of the benchmark, and the training's.
CATEGORIES = {"json": "calls", "extraction": "extraction", "sql": "sql", "code": "code", "text": "chat"}


@dataclass(frozen=True)
class Question:
    """What is asked, and what the answer must be.

    Attributes:
        prompt: ids.
        constraint: without checks after generation, which would draw answers again; None leaves it free.
    """

    id: str
    category: str
    prompt: list[int]
    constraint: Constraint | None


@dataclass(frozen=True)
class Selection:
    """The questions of one category.

    Attributes:
        prompts, held_out, schemas: prompts of the source (of a folder: documents), those held out of
            training, and their schemas (of code and text: different prompts).
        left_out: prompts that were drawn, and left out: their schema is refused, or they are too long.
    """

    questions: list[Question]
    source: str
    prompts: int
    held_out: int
    schemas: int
    left_out: int


def select(category: str, source: str, limit: int, seed: int, model: xs.Model, answer: int = 0) -> Selection:
    """`limit` held-out questions of a category, the same ones for the same seed.

    Args:
        category: a key of `CATEGORIES`.
        source: as `read_prompts` takes it; or a folder of shards, whose prompts are asked again.
        answer: tokens that the model must have room for behind a prompt.

    Raises:
        ValueError: the source holds out no prompt of this category.
    """
    if Path(source).is_dir():
        return _of_shards(category, source, limit, seed, model)
    prompts = [each for each in read_prompts([source]) if each.category == CATEGORIES[category]]
    held_out = [prompt for prompt in prompts if prompt.held_out]
    schemas = len({prompt.group for prompt in held_out})
    random.Random(seed).shuffle(held_out)
    tables = _tables(source) if category == "sql" and source != MADE_UP else {}
    questions: list[Question] = []
    longest = math.inf if model.target.max_length is None else model.target.max_length - answer
    left_out = 0
    left = iter(held_out)
    while len(questions) < limit and (prompt := next(left, None)) is not None:
        try:
            constraint = _constraint(prompt, tables)
        except xs.XPressError:
            left_out += 1
            continue
        ids = encode_prompt(prompt.shown(model, constraint), model.tokenizer)
        if len(ids) < longest:
            questions.append(Question(prompt.id, category, ids, constraint))
        else:
            left_out += 1
    return _not_empty(Selection(questions, source, len(prompts), len(held_out), schemas, left_out), category)


def _of_shards(category: str, folder: str, limit: int, seed: int, model: xs.Model) -> Selection:
    found = read_shards([folder], model.vocabulary.fingerprint)
    documents = [each for each in found if each.category == CATEGORIES[category]]
    # A held-out prompt has one response.
    held_out = [document for document in documents if document.held_out]
    random.Random(seed).shuffle(held_out)
    questions = [
        Question(each.key, category, list(each.prompt), _unchecked(constraint_of(each.grammar)))
        for each in held_out[:limit]
    ]
    schemas = len({document.group for document in held_out})
    return _not_empty(Selection(questions, folder, len(documents), len(held_out), schemas, 0), category)


def _not_empty(selection: Selection, category: str) -> Selection:
    if not selection.questions:
        raise ValueError(f"{selection.source} holds out no {category} prompt of {selection.prompts}.")
    return selection


def _constraint(prompt: TrainPrompt, tables: Mapping[str, str]) -> Constraint | None:
    """The training's constraint; a question over tables of a file gets one over these tables."""
    if prompt.id in tables:
        constraint: Constraint | None = xs.sql(tables[prompt.id], statements=("select",))
    else:
        constraint = constraint_of(prompt.grammar)
    return _unchecked(constraint)


def _unchecked(constraint: Constraint | None) -> Constraint | None:
    return constraint and replace(constraint, checked_after=())


def _tables(path: str) -> dict[str, str]:
    """The CREATE statements of the questions of a file."""
    return {row["id"]: row["schema"] for row in read_rows(path) if "db_id" in row}
