"""Thinking: how the block in front of an answer is opened, and how long it may be."""

from __future__ import annotations

from collections.abc import Sequence

from xpress_struct.constraints.thinking_block import ThinkingBlock
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.decoding.closing import reserve
from xpress_struct.errors import ArgumentError
from xpress_struct.options import Options

__all__ = ["most_thoughts", "with_open_block"]


def most_thoughts(block: ThinkingBlock, options: Options, room: int) -> int:
    """How many tokens of thought leave room for the answer, of `room` tokens in all."""
    most = room // 2 if options.max_thinking_tokens is None else options.max_thinking_tokens
    if options.on_limit == "close":
        # What is kept to close the text closes no block.
        most = min(most, room - reserve(room) - len(block.closing(0)))
    return max(0, most)


def with_open_block(ids: Sequence[int], marker: str, vocabulary: Vocabulary) -> list[int]:
    """The ids with an open thinking block at their end: as they are when the template has opened it, else
    with the marker and a newline.

    Raises:
        ArgumentError: the vocabulary cannot spell the marker.
    """
    special = vocabulary.special_id(marker)
    opening = vocabulary.encode(marker) if special is None else [special]
    if special is None and vocabulary.decode(opening) != marker.encode():
        raise ArgumentError(f"The tokens of this model cannot spell the marker {marker!r}.")
    end = len(ids)
    while end and not (ids[end - 1] in vocabulary.special_ids or _spells(ids[end - 1], vocabulary).strip()):
        end -= 1
    if special is not None:
        is_open = bool(end) and ids[end - 1] == special
    else:
        tail = b"".join(_spells(token, vocabulary) for token in ids[max(0, end - len(marker)) : end])
        is_open = tail.rstrip().endswith(marker.rstrip().encode())
    return [*ids] if is_open else [*ids, *opening, *vocabulary.encode("\n")]


def _spells(token: int, vocabulary: Vocabulary) -> bytes:
    return vocabulary.tokens[token] if 0 <= token < len(vocabulary.tokens) else b""
