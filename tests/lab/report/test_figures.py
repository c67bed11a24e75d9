"""What rows come to, against figures worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from xpress_struct.lab.report.columns import number
from xpress_struct.lab.report.drawing import separate
from xpress_struct.lab.report.figures import slot_rates, spread, summaries
from xpress_struct.lab.report.run import Row, Run, System

ROW = Row(
    system="base", task="1", category="json", mode="greedy", completed=True, closed=False, valid=True,
    tokens=100, forwards=100, proposed=0, accepted=0, seconds=10.0,
)  # fmt: skip


def _run(*rows: Row) -> Run:
    systems = (System("base", "Base", "peer", None), System("ours", "Ours", "ours", None))
    return Run({}, "bench", "", "", "base", (*systems, System("broken", "Broken", "peer", "no")), {}, rows)


def test_ratios_are_taken_pair_by_pair() -> None:
    """A document that a system did not end is in no ratio of it, however fast it was; nor is one that the
    baseline failed at. The baseline need not have ended it."""
    ours = replace(ROW, system="ours", seconds=5.0)
    run = _run(
        ROW,
        ours,  # 2 times
        replace(ROW, task="2", seconds=20.0),
        replace(ours, task="2", tokens=50, seconds=2.5),  # 4 times
        replace(ROW, task="3", completed=False),
        replace(ours, task="3", seconds=3.125),  # 3.2 times
        replace(ROW, task="6", completed=False, error="no"),
        replace(ours, task="6", seconds=0.001),
        replace(ROW, task="4"),
        replace(ours, task="4", completed=False, seconds=0.001),
        replace(ours, task="5", seconds=0.001),
    )
    base, found, broken = summaries(run, "greedy")
    assert found.ratio is not None and (found.ratio.n, found.ratio.middle) == (3, 3.2)
    assert base.ratio is not None and base.ratio.middle == 1.0
    assert broken.ratio is None and broken.why_empty == "failed"


def test_figures_by_document_are_over_completed_ones_and_shares_over_all() -> None:
    """A cut document counts in shares, and in no time, count or rate by document."""
    cut = replace(ROW, task="2", completed=False, valid=False, score=0.0, seconds=99.0, forwards=999)
    base = summaries(_run(replace(ROW, score=1.0, split={"score": 6.0, "mask": 4.0}), cut), "greedy")[0]
    assert base.seconds is not None and base.seconds.middle == 10.0
    assert base.forwards is not None and base.forwards.n == 1
    assert (base.valid, base.score) == (0.5, 0.5)
    assert base.split["score"] == 6.0 and sum(base.split.values()) == 10.0
    assert summaries(_run(cut), "greedy")[0].why_empty == "no completed document"


def test_documents_of_other_modes_and_categories_are_apart() -> None:
    """A pair is of one mode, and a category's figures are its own."""
    sampled = replace(ROW, system="ours", mode="sampled", seconds=1.0)
    text = replace(ROW, category="text", seconds=4.0)
    run = _run(ROW, text, sampled)
    assert summaries(run, "sampled")[1].ratio is None
    only = summaries(run, "greedy", "text")[0].seconds
    assert only is not None and only.middle == 4.0


def test_a_baseline_outside_of_the_cells_serves_them_all() -> None:
    """Each cell is compared with the baseline's row of its document; one in the same cell comes first."""
    rows = [ROW] + [
        replace(ROW, system="ours", cell={"k": k}, cell_id=str(k), seconds=10.0 / k) for k in (2, 4)
    ]
    found = summaries(_run(*rows, replace(ROW, cell={"k": 4}, cell_id="4", seconds=5.0)), "greedy")
    ratios = {
        each.cell["k"]: each.ratio.middle for each in found if each.system.name == "ours" and each.ratio
    }
    assert ratios == {2: 2.0, 4: 2.0}


def test_spread() -> None:
    """Median, 10th and 90th percentile of 0 to 10; nothing of nothing."""
    found = spread(range(11))
    assert found is not None and (found.low, found.middle, found.high, found.n) == (1, 5, 9, 11)
    assert spread([]) is None


def test_slot_rates_end_where_too_little_was_proposed() -> None:
    """Rates are of all rows together, and stop before the first slot with fewer than ten proposals."""
    one = replace(ROW, proposed_by_slot=(8, 8, 4), accepted_by_slot=(6, 4, 4))
    two = replace(ROW, proposed_by_slot=(2, 2), accepted_by_slot=(2, 1))
    assert slot_rates([one, two]) == [0.8, 0.5]


def test_names_at_line_ends_do_not_touch() -> None:
    """Places are moved apart by the gap, keep their order, and stay where there is room."""
    moved = separate([5.0, 0.0, 5.1], 1.0)
    assert moved[1] == 0.0
    assert moved[2] - moved[0] == pytest.approx(1.0) and sum(moved[::2]) == pytest.approx(10.1)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.01234, "0.0123"),
        (4.561, "4.56"),
        (45.67, "45.7"),
        (12345, "12,345"),
        (0.00001, "1.0e-05"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    """Figures are written short."""
    assert number(value) == text
