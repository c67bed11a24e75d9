"""Shards: documents that the target wrote, as token ids in small compressed files that can be added to."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from xpress_struct.errors import ModelError
from xpress_struct.training.prompts import Category

__all__ = ["Document", "append_shard", "read_shards"]

_PATTERN = "shard-*.npz"


@dataclass(frozen=True, eq=False)
class Document:
    """A prompt and the target's response to it.

    Attributes:
        key: unique; says which prompt was answered and how.
        category, group, held_out: of its `TrainPrompt`.
        grammar: that of its `TrainPrompt`: the response was written under it.
        temperature: that it was drawn at; 0 is greedy.
        prompt, response: ids. A response that was cut has no end token.
        forced: [len(response)], places where the grammar allowed one token only.
    """

    key: str
    category: Category
    group: str
    held_out: bool
    grammar: dict[str, Any] | None
    temperature: float
    prompt: tuple[int, ...]
    response: tuple[int, ...]
    forced: tuple[bool, ...]


def append_shard(folder: Path, documents: Sequence[Document], vocabulary: str) -> Path:
    """Writes documents as the folder's next shard, whole or not at all.

    Args:
        vocabulary: fingerprint of the tokens that the ids stand for.
    """
    folder.mkdir(parents=True, exist_ok=True)
    numbers = [int(path.stem.split("-")[1]) for path in folder.glob(_PATTERN)]
    path = folder / f"shard-{max(numbers, default=-1) + 1:05}.npz"
    ids = np.array([i for each in documents for i in (*each.prompt, *each.response)], dtype=np.int64)
    small = np.uint16 if ids.max(initial=0) < 1 << 16 else np.uint32
    rows = [
        [each.key, each.category, each.group, each.held_out, each.grammar, each.temperature]
        for each in documents
    ]
    about = json.dumps({"vocabulary": vocabulary, "rows": rows}, ensure_ascii=False)
    unfinished = path.with_suffix(".unfinished")
    with unfinished.open("wb") as file:
        np.savez_compressed(
            file,
            ids=ids.astype(small),
            lengths=np.array([(len(each.prompt), len(each.response)) for each in documents], dtype=np.int32),
            forced=np.packbits([flag for each in documents for flag in each.forced]),
            about=np.frombuffer(about.encode(), dtype=np.uint8),
        )
    os.replace(unfinished, path)
    return path


def read_shards(folders: Iterable[str | Path], vocabulary: str) -> list[Document]:
    """Every document of some folders; of those with the same key the first.

    Raises:
        ModelError: a shard is damaged, or belongs to another vocabulary.
    """
    documents: dict[str, Document] = {}
    for folder in folders:
        for path in sorted(Path(folder).glob(_PATTERN)):
            for document in _read(path, vocabulary):
                documents.setdefault(document.key, document)
    return list(documents.values())


def _read(path: Path, vocabulary: str) -> list[Document]:
    try:
        with np.load(path) as arrays:
            about = json.loads(bytes(arrays["about"]))
            ids, lengths = arrays["ids"].tolist(), arrays["lengths"].tolist()
            flags = np.unpackbits(arrays["forced"]).astype(bool).tolist()
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(f"The shard {str(path)!r} cannot be read: {error}") from error
    if about["vocabulary"] != vocabulary:
        raise ModelError(f"The shard {str(path)!r} was written by a model with another vocabulary.")
    documents, at, flag_at = [], 0, 0
    for row, (prompt, response) in zip(about["rows"], lengths, strict=True):
        key, category, group, held_out, grammar, temperature = row
        middle, end = at + prompt, at + prompt + response
        documents.append(
            Document(
                key,
                cast(Category, category),
                group,
                held_out,
                grammar,
                temperature,
                tuple(ids[at:middle]),
                tuple(ids[middle:end]),
                tuple(flags[flag_at : flag_at + response]),
            )
        )
        at, flag_at = end, flag_at + response
    return documents
