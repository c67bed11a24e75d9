"""What a run was: command, machine, versions, model; as pairs of a name and a value, and in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xpress_struct.lab.report.run import Run

__all__ = ["about", "baseline_label", "how", "machine_line", "varied"]


def about(run: Run) -> list[tuple[str, str]]:
    """Everything that is said about a run, in the order of reading."""
    found = run.about
    seconds = found.get("seconds")
    return [
        ("Command", run.command),
        ("Started", found["started"]),
        ("Took", "not finished" if seconds is None else _duration(seconds)),
        ("Machine", machine_line(run)),
        ("Model", _listed(found["model"])),
        ("Drafter", str(found.get("drafter") or "none")),
        ("Seed", str(found.get("seed"))),
        ("Settings", _listed(found["settings"]) or "none"),
        ("Versions", ", ".join(f"{name} {version}" for name, version in found["versions"].items())),
    ]


def machine_line(run: Run) -> str:
    """The machine in one line."""
    told = run.about["machine"]
    parts = [told.get("gpu"), told.get("cpu")]
    if told.get("cores"):
        parts.append(f"{told['cores']} cores, {told.get('threads', '?')} threads used")
    if told.get("memory_gb"):
        parts.append(f"{told['memory_gb']:.0f} GB")
    return ", ".join(str(part) for part in [*parts, told.get("platform")] if part)


def baseline_label(run: Run) -> str:
    """The baseline as readers know it."""
    return next(each.label for each in run.systems if each.name == run.baseline)


def varied(run: Run) -> list[str]:
    """Axes of an experiment that take more than one value."""
    return [axis for axis, values in run.axes.items() if len(values) > 1]


def how(run: Run) -> str:
    """How the figures are to be read; the same words wherever they are shown."""
    return (
        "Figures by document are medians over the documents that a system ended by itself, with the 10th and "
        "90th percentile in brackets; the systems need not have ended the same documents. Speed to baseline "
        f"compares tokens per second with {baseline_label(run)}, document by document, over those that "
        "the system ended. Score and accepted are over all documents, valid over those that have a "
        "form. Forced tokens count as output."
    )


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _listed(found: Mapping[str, Any]) -> str:
    told = ((name, f"{value:,}" if type(value) is int else value) for name, value in found.items())
    return ", ".join(f"{name} {value}" for name, value in told)
