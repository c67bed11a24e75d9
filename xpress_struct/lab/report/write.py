"""Writes the report of a run's folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from xpress_struct.errors import ArgumentError, ModelError
from xpress_struct.lab.report.markdown import markdown, readme_part, tables_part, write_between
from xpress_struct.lab.report.run import read_run

__all__ = ["write_report"]


def write_report(
    folder: str | Path,
    *,
    html: str | Path | None = None,
    markdown_file: str | Path | None = None,
    readmes: Sequence[str | Path] = (),
    tables: Sequence[str | Path] = (),
) -> list[Path]:
    """Writes a run's report as one HTML file and as Markdown.

    Args:
        folder: of the run.
        html, markdown_file: where to; by default `report.html` and `report.md` in the folder.
        readmes: files that get one short table between their markers.
        tables: files that get all tables between their markers.

    Returns:
        the files that were written.

    Raises:
        ArgumentError: the folder is not a run's, or a README has no markers.
        ModelError: a package of the extra `report` is missing.
    """
    folder = Path(folder)
    run = read_run(folder)
    try:
        from xpress_struct.lab.report.page import page
    except ImportError as error:
        raise ModelError(
            f'The report needs more packages ({error.name}): pip install "xpress-struct[report]".'
        ) from None
    written = {
        Path(html or folder / "report.html"): page(run),
        Path(markdown_file or folder / "report.md"): markdown(run),
    }
    for path, text in written.items():
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ArgumentError(f"{str(path)!r} cannot be written: {error}") from None
    for readme in readmes:
        write_between(readme, readme_part(run))
    for file in tables:
        write_between(file, tables_part(run))
    return [*written, *map(Path, (*readmes, *tables))]
