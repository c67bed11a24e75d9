"""`xpress-struct experiment`: a grid over the ways of drafting."""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argparse import _SubParsersAction

__all__ = ["add_experiment"]


def add_experiment(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "experiment", help="compare ways of drafting on a grid; goes on when stopped"
    )
    parser.set_defaults(run=_run)
    parser.add_argument("config", metavar="CONFIG.yaml", help="see docs/lab.md")
    parser.add_argument("--out", metavar="DIR", help="for rows and report; default: experiment-CONFIG")
    parser.add_argument("--model", metavar="M", help="instead of the configuration's")
    parser.add_argument("--drafter", metavar="D", help="a checkpoint instead of the model's own drafter")
    parser.add_argument("--tasks", nargs="+", metavar="CATEGORY|FILE", help="instead of the configuration's")
    parser.add_argument("--limit", type=int, metavar="N", help="documents, instead of the configuration's")


def _run(given: argparse.Namespace) -> None:
    from xpress_struct.lab.experiment.config import read_config
    from xpress_struct.lab.experiment.run import run_experiment

    config = read_config(given.config)
    told: dict[str, Any] = {name: getattr(given, name) for name in ("model", "tasks", "limit")}
    config = replace(config, **{name: value for name, value in told.items() if value is not None})
    if given.drafter:
        drafters = config.grid.get("drafter", ["model"])
        named = [given.drafter if each == "model" else each for each in drafters]
        config = replace(
            config, grid={"drafter": named} | {k: v for k, v in config.grid.items() if k != "drafter"}
        )
    out = given.out or f"experiment-{Path(given.config).stem}"
    run_experiment(config, out, shlex.join(["xpress-struct", *sys.argv[1:]]))
