"""`xpress-struct serve`: OpenAI's endpoints over a model."""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from typing import TYPE_CHECKING

from xpress_struct.errors import ModelError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

__all__ = ["add_serve"]


def add_serve(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = commands.add_parser("serve", help="serve a model in OpenAI's protocol")
    parser.set_defaults(run=_run)
    parser.add_argument("--model", metavar="M", help="hub id or folder; default: the embedded model")
    parser.add_argument("--drafter", default="auto", metavar="D", help="auto, lookup, none, or a model")
    parser.add_argument("--name", metavar="N", help="what requests call the model; default: as --model")
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="address to listen on")
    parser.add_argument("--port", type=int, default=8000, metavar="P")
    bounds = parser.add_argument_group("bounds")
    bounds.add_argument("--max-requests", type=int, metavar="N", help="at once, waiting ones included")
    bounds.add_argument("--max-body-bytes", type=int, metavar="N", help="of one request")
    bounds.add_argument("--max-depth", type=int, metavar="N", help="levels of nesting in a body")
    bounds.add_argument("--max-tokens", type=int, metavar="N", help="of one answer")
    bounds.add_argument("--max-choices", type=int, metavar="N", help="answers to one request")
    bounds.add_argument("--timeout", type=float, metavar="S", help="seconds for one request")
    bounds.add_argument("--body-timeout", type=float, metavar="S", help="seconds for a body to arrive")
    bounds.add_argument("--compile-timeout", type=float, metavar="S", help="seconds for one constraint")


def _run(given: argparse.Namespace) -> None:
    try:
        import uvicorn

        from xpress_struct.server.app import create_app
        from xpress_struct.server.limits import Limits
    except ImportError as error:
        raise ModelError(
            f'The server needs more packages ({error.name}): pip install "xpress-struct[server]".'
        ) from None
    from xpress_struct.api import load

    told = {bound.name: getattr(given, bound.name) for bound in fields(Limits)}
    limits = Limits(**{name: value for name, value in told.items() if value is not None})
    name = given.name or given.model or "default"
    app = create_app(load(given.model, drafter=given.drafter), name, limits)
    print(f"serving {name!r} at http://{given.host}:{given.port}/v1", file=sys.stderr)
    uvicorn.run(app, host=given.host, port=given.port, log_level="warning", timeout_graceful_shutdown=5)
