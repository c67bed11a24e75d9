"""The real parser of each language of a shipped grammar: a text -> why it is refused, or None."""

from __future__ import annotations

import ast
import configparser
import csv
import io
import json
import re
import sqlite3
import sys
import warnings
from collections.abc import Callable

__all__ = ["JUDGES"]

# What SQLite says of a statement that its own grammar refuses. All else is about tables, columns, counts.
_SYNTAX = re.compile(
    r"syntax error|incomplete input|unrecognized token|unknown join type|JOIN clause is required|"
    r"clause should come (after|before)|only execute one statement|unterminated|malformed"
)


def _json(text: str) -> str | None:
    try:
        json.loads(text)
    except ValueError as error:
        return str(error)
    return None


def _sqlite(text: str) -> str | None:
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("EXPLAIN " + text)
    except (sqlite3.Error, sqlite3.Warning) as error:
        return str(error) if _SYNTAX.search(str(error)) else None
    finally:
        connection.close()
    return None


def _postgres(text: str) -> str | None:
    import sqlglot

    try:
        parsed = sqlglot.parse(text, read="postgres", error_level=sqlglot.ErrorLevel.RAISE)
    except sqlglot.errors.SqlglotError as error:
        return str(error)
    if len(parsed) != 1 or isinstance(parsed[0], sqlglot.exp.Command):
        return "not one statement that is understood"
    return None


def _python(text: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about doubtful escapes and comparisons, which parse
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return str(error)
    return None


def _toml(text: str) -> str | None:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return str(error)
    return None


def _ini(text: str) -> str | None:
    try:
        configparser.ConfigParser().read_string(text)
    except configparser.Error as error:
        return str(error)
    return None


def _yaml(text: str) -> str | None:
    import yaml

    try:
        yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        return str(error)
    return None


def _graphql(text: str) -> str | None:
    import graphql

    try:
        graphql.parse(text)
    except graphql.GraphQLError as error:
        return str(error)
    return None


def _csv(text: str) -> str | None:
    try:
        list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        return str(error)
    return None


JUDGES: dict[str, Callable[[str], str | None]] = {
    "csv": _csv,
    "graphql": _graphql,
    "ini": _ini,
    "json": _json,
    "postgres": _postgres,
    "python": _python,
    "sqlite": _sqlite,
    "toml": _toml,
    "yaml": _yaml,
}
