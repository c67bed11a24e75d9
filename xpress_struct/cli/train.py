"""`xpress-struct train`: a drafter for a model."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

__all__ = ["add_train"]


def add_train(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = commands.add_parser("train", help="train a block-diffusion drafter for a model")
    parser.set_defaults(run=_run)
    parser.add_argument("--target", metavar="M", help="hub id or folder; default: the embedded model")
    parser.add_argument(
        "--prompts",
        nargs="*",
        default=[],
        metavar="FILE|bfcl|made-up",
        help="what the target is asked; 'bfcl' is fetched from PyPI, 'made-up' needs nothing",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="for shards, features, state and drafter")
    parser.add_argument("--resume", action="store_true", help="go on with what is in DIR")
    parser.add_argument(
        "--documents", type=int, default=2000, metavar="N", help="responses to collect in DIR"
    )
    parser.add_argument("--collect-minutes", type=float, metavar="N", help="stop collecting after so long")
    parser.add_argument("--shards", nargs="*", default=[], metavar="DIR", help="more documents to train on")
    parser.add_argument(
        "--code",
        metavar="DIR|stdlib",
        help="Python files to learn the language from; 'stdlib' is the library of this Python",
    )
    parser.add_argument("--code-count", type=int, default=300, metavar="N", help="documents of such code")
    parser.add_argument("--features", metavar="DIR", help="where features are kept; default: in --out")
    parser.add_argument("--steps", type=int, default=2000, metavar="N")
    parser.add_argument("--minutes", type=float, metavar="N", help="stop training after so long; then resume")
    parser.add_argument("--anchors", type=int, default=16, metavar="N", help="blocks of a document in a step")
    parser.add_argument("--block-size", type=int, default=16, metavar="B")
    parser.add_argument(
        "--draft-vocab",
        type=int,
        default=10240,
        metavar="N",
        help="tokens that the drafter knows; --resume takes in what its documents have more, up to so many",
    )
    parser.add_argument("--layers", type=int, default=2, metavar="N")
    parser.add_argument(
        "--max-shard-size",
        default="5GB",
        metavar="SIZE",
        help="of the drafter's files, as '16MB'; above it there are several",
    )


def _run(given: argparse.Namespace) -> None:
    from xpress_struct.api import load
    from xpress_struct.training.sources import read_prompts
    from xpress_struct.training.start import DrafterSizes
    from xpress_struct.training.train import train
    from xpress_struct.training.trainer import TrainSettings

    prompts = read_prompts(given.prompts)
    last = train(
        load(given.target, drafter=None),
        prompts,
        given.out,
        documents=given.documents,
        shards=given.shards,
        code=given.code,
        code_count=given.code_count,
        features=given.features,
        sizes=DrafterSizes(
            layers=given.layers, block_size=given.block_size, draft_vocab_size=given.draft_vocab
        ),
        settings=TrainSettings(steps=given.steps, anchors=given.anchors),
        resume=given.resume,
        seconds=None if given.minutes is None else 60 * given.minutes,
        collect_seconds=None if given.collect_minutes is None else 60 * given.collect_minutes,
        max_shard_size=given.max_shard_size,
    )
    print(json.dumps({"out": given.out, "step": last["step"], "seconds": last["seconds"]}))
