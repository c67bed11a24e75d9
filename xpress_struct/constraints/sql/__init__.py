"""SQL over the tables of one database, as a constraint."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.lark import lark
from xpress_struct.constraints.report import Checked
from xpress_struct.constraints.sql.grammar import DIALECTS, STATEMENTS, grammar_for, reserved
from xpress_struct.constraints.sql.schema import Database, read_database
from xpress_struct.constraints.sql.scope import Names
from xpress_struct.constraints.sql.scope_matcher import ScopeMatcher
from xpress_struct.errors import ArgumentError, OutputValidationError

__all__ = ["sql"]


def sql(
    tables: str | sqlite3.Connection | Mapping[str, Iterable[str] | Mapping[str, str]],
    *,
    dialect: str = "sqlite",
    statements: Sequence[str] = tuple(STATEMENTS),
    check: bool = True,
) -> Constraint:
    """A constraint: one SQL statement over the tables of a database.

    The mask allows existing tables and columns only, and the functions that this SQLite has. It follows the
    scopes: a column without qualifier is in exactly one source of its query, or in an outer one; behind
    `name.` stand columns of that source; FROM goes on until all that was used is found. Aggregates and window
    functions stand where SQLite takes them, calls have as many arguments as the function, sub-queries and
    rows as many columns as are asked for. ORDER BY and GROUP BY take names and numbers of results too.

    Of statements that begin with WITH, of sources whose columns are not read (sub-queries and functions in
    FROM), and behind ON CONFLICT the mask allows any name of the database or the statement. Row values and
    named windows are left out. Words are in capitals or in small letters, names also as declared; between
    words stand up to three spaces, or a line feed with up to 8 spaces.

    Args:
        tables: CREATE statements; an open connection, whose schema alone is read; or tables with their
            columns, or with their columns and types.
        dialect: "sqlite".
        statements: kinds that are allowed, of "select", "insert", "update" and "delete".
        check: the finished statement is prepared in an empty database made from the tables, never run. It
            finds what the mask does not know: names behind WITH, changes of views, unfit window frames. What
            fails is drawn again. Without it the mask is the same.

    Returns:
        A constraint whose value is the statement. With `check`, `checked_after` says "sqlite".

    Raises:
        SchemaError: the tables cannot be read, or there are none.
        ArgumentError: the dialect or a kind of statement is not known.
    """
    if dialect not in DIALECTS:
        raise ArgumentError(f"dialect={dialect!r}: it must be one of {', '.join(map(repr, DIALECTS))}.")
    unknown = [kind for kind in statements if kind not in STATEMENTS]
    if isinstance(statements, str) or unknown or not statements:
        raise ArgumentError(
            f"statements={statements!r}: it must be a sequence of some of {', '.join(map(repr, STATEMENTS))}."
        )
    database = read_database(tables)
    names = Names.of(database, reserved(dialect))
    constraint = replace(
        _compiled(grammar_for(database, dialect, statements)), matcher_class=partial(ScopeMatcher, names)
    )
    if not check:
        return constraint
    checked = Checked("sqlite", "", "names behind WITH, views that are changed, window frames")
    return replace(
        constraint,
        parser=partial(_prepared, database, constraint),
        checked_after=(*constraint.checked_after, checked),
    )


@lru_cache(maxsize=32)
def _compiled(grammar: str) -> Constraint:
    """One constraint for tables of the same names."""
    return lark(grammar, parser="lalr")


def _prepared(database: Database, constraint: Constraint, text: str) -> str:
    """The statement, once SQLite has compiled it against the tables."""
    constraint.parse(text)
    connection = database.connect()
    try:
        connection.execute("EXPLAIN " + text)
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise OutputValidationError(f"SQLite refuses the statement: {error}", text=text) from error
    finally:
        connection.close()
    return text
