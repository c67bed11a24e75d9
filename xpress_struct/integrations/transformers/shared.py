"""What both ways into `generate` need: a tokenizer's vocabulary, and the constraint of each row."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import ArgumentError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Constraints", "constraint_list", "ids_of", "row_constraint", "vocabulary_of"]

Constraints = Constraint | None | Sequence[Constraint | None]
"""One constraint for every row, or one for each prompt; None leaves a row free."""

_lock = threading.Lock()
_vocabularies: weakref.WeakKeyDictionary[Any, dict[tuple[int, int, Any], Vocabulary]] = (
    weakref.WeakKeyDictionary()
)


def vocabulary_of(
    tokenizer: PreTrainedTokenizerBase, width: int | None, end_ids: Sequence[int] | None
) -> Vocabulary:
    """The vocabulary of a tokenizer, made once: it takes about a second, and compiled grammars hang on it.

    Args:
        width: number of logits of the model; None takes the tokenizer's size.
        end_ids: ids that end a text; None takes the tokenizer's own.
    """
    size = len(tokenizer)
    key = (size, width or size, None if end_ids is None else tuple(end_ids))
    with _lock:
        kept = _vocabularies.setdefault(tokenizer, {})
        if key not in kept:
            kept[key] = Vocabulary.from_tokenizer(tokenizer, width=width, end_ids=end_ids)
        return kept[key]


def ids_of(token_id: Any) -> tuple[int, ...] | None:
    """An id, a list or a tensor of ids as a tuple; None stays None."""
    if hasattr(token_id, "tolist"):
        token_id = token_id.tolist()
    if token_id is None or isinstance(token_id, int):
        return None if token_id is None else (token_id,)
    return tuple(token_id)


def constraint_list(constraint: Constraints) -> list[Constraint | None]:
    """The constraints that an argument holds: one, or one for each prompt.

    Raises:
        ArgumentError: it is something else, or empty.
    """
    given = list(constraint) if isinstance(constraint, Sequence) else [constraint]
    for each in given:
        if each is not None and not isinstance(each, Constraint):
            raise ArgumentError(
                f"constraint is {each!r}; make one with xs.json_schema, xs.regex, xs.choice or xs.lark."
            )
    if not given:
        raise ArgumentError("The list of constraints is empty; None leaves a row free.")
    return given


def row_constraint(count: int, row: int, rows: int) -> int:
    """Which of `count` constraints a row has: rows of one prompt (beams, samples) stand side by side.

    Raises:
        ArgumentError: the constraints do not go into the rows.
    """
    if rows % count:
        raise ArgumentError(
            f"{count} constraints do not go into a batch of {rows} rows: give one, or one for each prompt."
        )
    return row * count // rows
