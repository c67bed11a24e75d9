"""What `check` found: sections with their statistics, and one verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = ["CheckReport", "Section", "Verdict"]

Verdict = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Section:
    """One test.

    Attributes:
        name: what was tested.
        verdict: "inconclusive" where too little could be drawn, or rounding explains what was seen.
        statistic: what was measured, as `detail` says.
        p_value: of a statistical test; None where a single violation decides.
        bound: the smallest fault, as total variation, that this test finds; None where it is not statistical.
        detail: counts, and what to make of them.
    """

    name: str
    verdict: Verdict
    statistic: float
    p_value: float | None
    bound: float | None
    detail: str


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Is this pair lossless here?

    Attributes:
        sections: every test that was run.
        alpha: probability that a lossless pair fails by chance, over all tests together (Bonferroni).
        subject: what was tested.
        seconds: what it took.
    """

    sections: Sequence[Section]
    alpha: float
    subject: str
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """ "fail" when one section fails, "pass" when all pass."""
        verdicts = {section.verdict for section in self.sections}
        if "fail" in verdicts:
            return "fail"
        return "pass" if verdicts == {"pass"} else "inconclusive"

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return asdict(self) | {"verdict": self.verdict}

    def __str__(self) -> str:
        rows = [["test", "verdict", "statistic", "p", "finds TV", ""]]
        for section in self.sections:
            p_value = "" if section.p_value is None else f"{section.p_value:.2g}"
            bound = "" if section.bound is None or math.isinf(section.bound) else f"{section.bound:.3f}"
            cells = [section.name, section.verdict, f"{section.statistic:.4g}", p_value, bound]
            rows.append([*cells, section.detail])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        tail = (
            f"{self.verdict}: {self.subject}; a lossless one fails by chance with probability {self.alpha:g} "
            f"or less, {self.seconds:.0f} s"
        )
        return "\n".join([*lines, tail])
