"""The report as Markdown, and the part of it that a README shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from xpress_struct.errors import ArgumentError
from xpress_struct.lab.report.about import about, how, machine_line, varied
from xpress_struct.lab.report.columns import COLUMNS, DASH, Column, label, named
from xpress_struct.lab.report.figures import Summary, slot_rates, summaries
from xpress_struct.lab.report.run import Run

__all__ = ["BEGIN", "END", "markdown", "readme_part", "tables_part", "write_between"]

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
SHORT = (
    "completed",
    "valid",
    "forwards / document",
    "seconds / document",
    "tokens / forward",
    "speed to baseline",
)
"""Columns of a README's table."""
ARROWS = {"higher": " ↑", "lower": " ↓", "": ""}


def markdown(run: Run) -> str:
    """The whole report: tables for all categories and for each, acceptance by slot, failures, the machine."""
    return f"# {run.title}\n\n{tables_part(run)}\n"


def tables_part(run: Run) -> str:
    """The report without its title, which another page may hold."""
    parts = [_how(run)]
    for mode in run.modes:
        parts += [f"## {mode.capitalize()}", _table(run, summaries(run, mode))]
        categories = run.categories(mode)
        if len(categories) > 1:
            for category in categories:
                parts += [f"### {named(category)}", _table(run, summaries(run, mode, category))]
        parts += _slots(run, summaries(run, mode))
    parts += [
        *_failures(run),
        "## The run",
        "\n".join(f"* {name}: {_code(name, told)}" for name, told in about(run)),
    ]
    return "\n\n".join(parts)


def readme_part(run: Run) -> str:
    """One short table: the first mode, over all categories; with the command and the machine."""
    mode = run.modes[0]
    shown = [column for column in COLUMNS if column.title in SHORT]
    where = f"{_code('Command', run.command)}, {run.about['started'][:10]}, on {machine_line(run)}; {mode}."
    return "\n\n".join(
        [where, _table(run, summaries(run, mode), shown), *_failures(run, heading=""), _how(run)]
    )


def _how(run: Run) -> str:
    return f"{how(run)} ↑ more is better, ↓ less is better."


def write_between(path: str | Path, text: str) -> None:
    """Puts a text between the two markers of a file, in place of what stood there.

    Raises:
        ArgumentError: the file cannot be read, or has not each marker once, in order.
    """
    path = Path(path)
    try:
        whole = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{str(path)!r} cannot be read: {error}") from None
    begin, end = whole.find(BEGIN), whole.find(END)
    if not (0 <= begin < end and whole.count(BEGIN) == whole.count(END) == 1):
        raise ArgumentError(
            f"{str(path)!r} must have the lines {BEGIN} and {END}, each once and in this order; "
            "the table is written between them."
        )
    path.write_text(f"{whole[: begin + len(BEGIN)]}\n\n{text}\n\n{whole[end:]}", encoding="utf-8")


def _table(run: Run, found: Sequence[Summary], columns: Sequence[Column] = COLUMNS) -> str:
    axes = varied(run)
    heads = ["system", *(f"{column.title}{ARROWS[column.better]}" for column in columns)]
    lines = [_line(heads), "|---|" + "".join("---:|" if column.better else "---|" for column in columns)]
    for summary in found:
        name = label(summary, axes)
        name = f"**{_cell(name)}**" if summary.system.group == "ours" else _cell(name)
        if not summary.rows:
            why = _cell(summary.why_empty or "")
            lines.append(f"| {name} | {why} |" + f" {DASH} |" * (len(columns) - 1))
        else:
            lines.append(
                f"| {name} | " + " | ".join(_cell(column.text(summary)) for column in columns) + " |"
            )
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _slots(run: Run, found: Sequence[Summary]) -> list[str]:
    lines = [
        f"| {_cell(label(summary, varied(run)))} | {' '.join(f'{rate:.2f}' for rate in rates)} |"
        for summary in found
        if (rates := slot_rates(summary.rows))
    ]
    if not lines:
        return []
    return [
        "Accepted of proposed by slot, as far as a slot was proposed ten times:\n\n"
        "| system | slot 1, 2, ... |\n|---|---|\n" + "\n".join(lines)
    ]


def _failures(run: Run, heading: str = "## Failed") -> list[str]:
    failed = [f"* {_cell(each.label)} failed: {_code('', each.error)}" for each in run.systems if each.error]
    return ([heading] if heading and failed else []) + (["\n".join(failed)] if failed else [])


def _cell(text: str) -> str:
    """Text that stays in its cell and shows as it is."""
    for sign in "\\|*_<`[":
        text = text.replace(sign, f"\\{sign}" if sign != "<" else "&lt;")
    return " ".join(text.split())


def _code(name: str, text: str) -> str:
    if name not in ("Command", ""):
        return _cell(text)
    plain = " ".join(text.split()).replace("`", "'")
    return f"`{plain}`"
