"""The report of a training, from its log: data, losses, rounds by category, acceptance by slot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xpress_struct.training.evaluation import WAYS, Counts

__all__ = ["write_report"]


def write_report(out: str | Path) -> Path:
    """Writes `report.md` beside `log.jsonl`, and `acceptance.png` where matplotlib is installed."""
    out = Path(out)
    log = [json.loads(line) for line in (out / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    last = log[-1]
    parts = ["# Training report", _data(last), _rounds(last), _losses(log), _slots(last)]
    if _plot(last, out / "acceptance.png"):
        parts.append("![acceptance by slot](acceptance.png)")
    path = out / "report.md"
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def _data(last: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{name} {count}" for name, count in last["documents"].items())
    minutes = last["seconds"] / 60
    return (
        f"{last['step']} steps in {minutes:.1f} minutes over {last['blocks']} blocks of "
        f"{sum(last['documents'].values())} documents ({counts})."
    )


def _counts(last: Mapping[str, Any], name: str, way: str) -> Counts:
    return Counts(**last["held_out"][name][way])


def _rounds(last: Mapping[str, Any]) -> str:
    rows = []
    for name in last["held_out"]:
        ways = [_counts(last, name, way) for way in WAYS]
        if not ways[0].chosen:
            continue
        forced = 1 - ways[0].chosen / ways[0].tokens
        chosen = " | ".join(f"{each.per_round:.2f}" for each in ways)
        whole = " | ".join(f"{each.all_per_round:.2f}" for each in ways)
        alone = ways[0].tokens / ways[0].chosen
        rows.append(f"| {name} | {ways[0].tokens} | {forced:.0%} | {chosen} | {alone:.2f} | {whole} |")
    if not rows:
        return "No document was held out, so nothing was evaluated."
    names = " | ".join(WAYS)
    return (
        "Held-out schemas, greedy. Rounds are counted along the target's own responses, without lookup. The "
        "first three figures are tokens by round that the grammar left open; the others count forced tokens "
        "too, which come free with or without a drafter.\n\n"
        f"| category | tokens | forced | {names} | no drafter | {names} |\n"
        f"|---|{'---|' * (3 + 2 * len(WAYS))}\n" + "\n".join(rows)
    )


def _losses(log: list[dict[str, Any]]) -> str:
    rows = []
    for entry in log:
        if entry["losses"]:
            figures = " | ".join(f"{value:.3f}" for value in entry["losses"])
            rounds = " | ".join(f"{_counts(entry, 'all', way).per_round:.2f}" for way in WAYS)
            rows.append(f"| {entry['step']} | {entry['seconds'] / 60:.1f} | {figures} | {rounds} |")
    return (
        f"| step | minutes | loss | base | teacher-forced | free-running | {' | '.join(WAYS)} |\n"
        f"|---|{'---|' * (5 + len(WAYS))}\n" + "\n".join(rows)
    )


def _rates(counts: Counts) -> list[float]:
    """Share of right tokens by slot, as far as enough blocks came there."""
    pairs = zip(counts.stood, counts.offered, strict=True)
    return [stood / offered for stood, offered in pairs if offered >= 10]


def _slots(last: Mapping[str, Any]) -> str:
    lines = [
        f"* {way}: " + " ".join(f"{rate:.2f}" for rate in _rates(_counts(last, "all", way))) for way in WAYS
    ]
    return "Accepted by slot, where all slots in front of it were right:\n\n" + "\n".join(lines)


def _plot(last: Mapping[str, Any], path: Path) -> bool:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    for way in WAYS:
        rates = _rates(_counts(last, "all", way))
        axes.plot(range(1, len(rates) + 1), rates, marker="o", label=way)
    axes.set(xlabel="slot", ylabel="accepted, all before it right", ylim=(0, 1))
    axes.legend()
    figure.savefig(path, dpi=120)
    return True
