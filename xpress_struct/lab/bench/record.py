"""A measured run as a row of the folder."""

from __future__ import annotations

from typing import Any, Literal

from xpress_struct.lab.bench.meter import Run
from xpress_struct.lab.rows import SPLIT, Row

__all__ = ["row_of"]


def row_of(
    system: str,
    run: Run,
    mode: Literal["greedy", "sampled"],
    cell: dict[str, Any] | None = None,
    cell_id: str | None = None,
) -> Row:
    """The row of one document."""
    row = Row(system, run.task.id, run.task.category, mode, cell=cell, cell_id=cell_id)
    row.reason, row.error, row.seconds = run.reason, run.error, run.total_s
    row.score = None if run.score is None else float(run.score)
    answer = run.answer
    if answer is None:
        row.split["other"] = run.total_s
        return row
    row.completed, row.closed, row.valid = answer.completed, answer.closed, run.valid
    row.tokens, row.forced, row.forwards = len(answer.ids), answer.forced, run.forwards
    row.proposed, row.accepted = answer.proposed, answer.accepted
    row.proposed_by_slot, row.accepted_by_slot = answer.proposed_by_slot, answer.accepted_by_slot
    row.decode_s, row.first_token_s, row.guard_share = run.decode_s, run.first_token_s, answer.guard_share
    row.split = _split(run)
    row.peak_memory_bytes, row.text, row.pieces = run.peak_memory, answer.text, answer.pieces
    return row


def _split(run: Run) -> dict[str, float]:
    """Seconds by step; of a peer those of its draft, masks, forwards and compilation are known."""
    answer = run.answer
    assert answer is not None
    known = answer.split or {
        "draft": answer.draft_s,
        "mask": answer.mask_s,
        "score": run.score_s,
        "compile": answer.compile_s,
    }
    split = dict.fromkeys(SPLIT, 0.0) | known
    split["other"] = max(0.0, run.total_s - sum(known.values()))
    return split
