"""`xpress-struct report`: the report of a run of `bench` or `experiment`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

__all__ = ["add_report"]


def add_report(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = commands.add_parser("report", help="write the report of a recorded run: HTML and Markdown")
    parser.set_defaults(run=_run)
    parser.add_argument("folder", metavar="DIR", help="of the run, with run.json and rows.jsonl")
    parser.add_argument("--html", metavar="FILE", help="default: report.html in DIR")
    parser.add_argument("--markdown", metavar="FILE", help="default: report.md in DIR")
    parser.add_argument(
        "--readme",
        action="append",
        default=[],
        metavar="FILE",
        help="write a short table between <!-- bench:begin --> and <!-- bench:end --> of FILE; repeatable",
    )
    parser.add_argument(
        "--tables",
        action="append",
        default=[],
        metavar="FILE",
        help="write all tables between these markers of FILE; repeatable",
    )


def _run(given: argparse.Namespace) -> None:
    from xpress_struct.lab.report.write import write_report

    written = write_report(
        given.folder,
        html=given.html,
        markdown_file=given.markdown,
        readmes=given.readme,
        tables=given.tables,
    )
    for path in written:
        print(path)
