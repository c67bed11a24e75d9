"""The tables of a database, from CREATE statements, a connection, or a mapping."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xpress_struct.errors import ArgumentError, SchemaError

__all__ = ["Database", "quoted", "read_database"]


@dataclass(frozen=True)
class Database:
    """Tables and views.

    Attributes:
        ddl: CREATE statements that make them anew.
        tables: name -> names of its columns.
        functions: those that SQLite has: name -> whether as an aggregate, and of how many arguments, -1
            for any.
    """

    ddl: tuple[str, ...]
    tables: Mapping[str, tuple[str, ...]]
    functions: Mapping[str, frozenset[tuple[bool, int]]]

    def connect(self) -> sqlite3.Connection:
        """A new database in memory, with these tables and no rows."""
        connection = sqlite3.connect(":memory:")
        for statement in self.ddl:
            connection.execute(statement)
        return connection


def read_database(
    tables: str | sqlite3.Connection | Mapping[str, Iterable[str] | Mapping[str, str]],
) -> Database:
    """Reads the tables.

    Raises:
        SchemaError: SQLite refuses the statements, or there is no table.
        ArgumentError: the argument is none of these.
    """
    if isinstance(tables, sqlite3.Connection):
        return _read(tables)
    if isinstance(tables, Mapping):
        script = ";".join(_create(name, columns) for name, columns in tables.items())
    elif isinstance(tables, str):
        script = tables
    else:
        raise ArgumentError(
            f"tables is of type {type(tables).__name__}: give CREATE statements, an open sqlite3 "
            "connection, or a mapping of tables to their columns."
        )
    connection = sqlite3.connect(":memory:")
    try:
        connection.set_authorizer(_only_memory)
        connection.executescript(script)
        connection.set_authorizer(None)
        return _read(connection)
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        raise SchemaError(f"The tables cannot be made: SQLite says {str(error)!r}.") from error
    finally:
        connection.close()


def quoted(name: str) -> str:
    """The name as an SQL identifier in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def _only_memory(action: int, *_: object) -> int:
    """Files of the disk are none of a schema's business."""
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK


def _create(name: str, columns: Iterable[str] | Mapping[str, str]) -> str:
    if isinstance(columns, str):
        raise SchemaError(
            f"The columns of table {name!r} are a text; give a list of names, or names with types."
        )
    types: Mapping[str, str] = columns if isinstance(columns, Mapping) else dict.fromkeys(columns, "")
    if not types:
        raise SchemaError(f"Table {name!r} has no columns.")
    body = ", ".join(f"{quoted(str(column))} {type_}".strip() for column, type_ in types.items())
    return f"CREATE TABLE {quoted(str(name))} ({body})"


def _read(connection: sqlite3.Connection) -> Database:
    # Views come after tables: they read them.
    rows = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view', 'index') AND sql IS NOT NULL "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type = 'view', type = 'index', rowid"
    ).fetchall()
    relations = connection.execute(
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type, rowid"
    ).fetchall()
    if not relations:
        raise SchemaError("There is no table: give at least one CREATE TABLE statement, or one table.")
    tables = {
        name: tuple(row[1] for row in connection.execute(f"PRAGMA table_info({quoted(name)})"))
        for (name,) in relations
    }
    functions: dict[str, set[tuple[bool, int]]] = {}
    for name, type_, number in connection.execute(
        "SELECT name, type, narg FROM pragma_function_list ORDER BY name"
    ):
        functions.setdefault(name, set()).add((type_ != "s", number))
    takes = {name: frozenset(each) for name, each in functions.items()}
    return Database(tuple(sql for _, sql in rows), tables, takes)
