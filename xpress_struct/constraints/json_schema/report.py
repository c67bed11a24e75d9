"""What the rewriter tells its caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xpress_struct.constraints.report import Checked

__all__ = ["Checked", "Rewritten"]


@dataclass(frozen=True)
class Rewritten:
    """A schema for the engine, and what is left to check.

    Attributes:
        schema: JSON-serialisable schema (draft 2020-12, only keywords that the engine enforces exactly).
            It accepts every valid value, written as documented in `numbers.py` and `objects.py`, and
            no value that is invalid for a reason outside `checked_after`.
        enforced: keywords of the original that the mask enforces fully, sorted.
        checked_after: the rest, sorted.
        open_keys: whether a key that is not declared may be written more than once in one object. The
            parser of the finished text must refuse that (`object_pairs_hook`).
    """

    schema: Any
    enforced: tuple[str, ...]
    checked_after: tuple[Checked, ...]
    open_keys: bool
