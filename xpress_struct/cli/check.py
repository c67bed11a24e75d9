"""`xpress-struct check`: is a pair of models lossless here?"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xpress_struct.errors import ArgumentError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from xpress_struct.lab.check import Section

__all__ = ["add_check"]

PASS, FAIL, INCONCLUSIVE = 0, 1, 3


def add_check(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "check",
        help="test that a drafter changes nothing",
        description="Equal ids, chi-square, n-grams and masks. Exit code 0: pass, 1: fail, 3: inconclusive.",
    )
    parser.set_defaults(run=_run)
    parser.add_argument("--model", metavar="M", help="hub id or folder; default: the embedded model")
    parser.add_argument("--drafter", default="auto", metavar="D", help="auto, lookup, or a model")
    parser.add_argument("--rules", nargs="+", default=["coupled", "token", "block"], metavar="RULE")
    parser.add_argument(
        "--schema",
        nargs="+",
        metavar="FILE",
        help="JSON Schemas whose masks are tested; default: three small ones",
    )
    parser.add_argument(
        "--prompts", metavar="FILE", help="one prompt a line; default: two that repeat themselves"
    )
    parser.add_argument("--temperature", type=float, default=0.7, metavar="T")
    parser.add_argument(
        "--samples", type=int, default=2000, metavar="N", help="short outputs of each rule, at most"
    )
    parser.add_argument("--long-samples", type=int, default=60, metavar="N", help="long ones, at most")
    parser.add_argument(
        "--minutes", type=float, default=2.5, metavar="N", help="draw no more after about so long"
    )
    parser.add_argument("--alpha", type=float, default=1e-3, metavar="P", help="that a lossless pair fails")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--json", metavar="FILE", help="write all statistics there")
    parser.add_argument(
        "--lossy-threshold",
        type=float,
        metavar="TAU",
        help="test the lossy refiner that keeps drafted tokens above TAU instead: it must fail",
    )


def _run(given: argparse.Namespace) -> int:
    from xpress_struct.api import load
    from xpress_struct.lab.check import LossyThresholdRefiner, check

    schemas = {Path(path).name: Path(path) for path in given.schema} if given.schema else None
    prompts = None if given.prompts is None else _lines(given.prompts)
    model = load(given.model, drafter=given.drafter)
    refiner = None
    if given.lossy_threshold is not None:
        refiner = LossyThresholdRefiner(model.drafter, given.lossy_threshold)
    report = check(
        model,
        schemas=schemas,
        prompts=prompts,
        rules=given.rules,
        temperature=given.temperature,
        samples=given.samples,
        long_samples=given.long_samples,
        minutes=given.minutes,
        alpha=given.alpha,
        seed=given.seed,
        decode=refiner,
        progress=_show,
    )
    print(report)
    print("RESULT " + json.dumps(_result(report.as_dict())))
    if given.json:
        _write(given.json, report.as_dict())
    return {"pass": PASS, "fail": FAIL, "inconclusive": INCONCLUSIVE}[report.verdict]


def _show(section: Section) -> None:
    print(f"{section.name}: {section.verdict}", file=sys.stderr)


def _result(found: dict[str, Any]) -> dict[str, Any]:
    sections = {each["name"]: each["verdict"] for each in found["sections"]}
    return {"verdict": found["verdict"], "alpha": found["alpha"], "sections": sections}


def _lines(path: str) -> list[str]:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"The prompts file {path!r}: {error}") from None
    if not any(lines):
        raise ArgumentError(f"The prompts file {path!r} is empty; give one prompt a line.")
    return [line for line in lines if line]


def _write(path: str, found: dict[str, Any]) -> None:
    try:
        Path(path).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"--json {path!r}: {error}") from None
