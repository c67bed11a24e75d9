"""Questions over tables, answered by one SQL query: a set written by hand, and the judging of a query."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping
from functools import partial
from importlib import resources
from typing import Any

from xpress_struct.constraints.sql import sql
from xpress_struct.lab.bench.tasks.task import Task
from xpress_struct.training.made_up.sql import sql_ask

__all__ = ["normalised", "own_queries", "query_task", "unprepared"]


def query_task(row: Mapping[str, Any]) -> Task:
    """A task from a row with id, db_id, schema (CREATE statements), question and query (the right one)."""
    wanted = normalised(row["query"])
    return Task(
        id=row["id"],
        category="sql",
        prompt=sql_ask(row["schema"], row["question"]),
        group=row["db_id"],
        constraint=sql(row["schema"], statements=("select",)),
        problem=partial(unprepared, row["schema"]),
        grade=lambda text: normalised(text) == wanted,
    )


def own_queries() -> list[dict[str, Any]]:
    """The rows of the set in this package: databases that no training prompt is about."""
    text = resources.files(__package__).joinpath("queries.json").read_text(encoding="utf-8")
    databases: dict[str, Any] = json.loads(text)
    return [
        {"id": f"own_{name}_{number}", "db_id": name, "schema": "\n".join(database["schema"])}
        | {"question": question, "query": query}
        for name, database in databases.items()
        for number, (question, query) in enumerate(database["questions"])
    ]


def unprepared(schema: str, text: str) -> str | None:
    """Why SQLite does not compile a statement against the tables, or None. Nothing is executed."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(schema)
        connection.execute("EXPLAIN " + text)
    except (sqlite3.Error, sqlite3.Warning) as error:
        return str(error)
    finally:
        connection.close()
    return None


_PART = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|`[^`]*`|\[[^\]]*\]|\w+|[<>!=|]+|[^\s\w]""")
_SAME = {"<>": "!=", "==": "="}


def normalised(query: str) -> tuple[str, ...]:
    """A query as parts that are equal where only spelling differs.

    Case of words and names, blanks, a final semicolon, quotes around names, `<>`, ASC, AS and INNER do not
    count; aliases of tables are replaced by the tables' names, and a qualifier is dropped where the query
    reads one table. Queries that differ in more, say in the order of conditions, are not equal.
    """
    parts = [_part(found[0]) for found in _PART.finditer(query)]
    while parts and parts[-1] == ";":
        parts.pop()
    parts = [part for part in parts if part not in ("asc", "as", "inner")]
    aliases = _aliases(parts)
    tables = sum(part in ("from", "join") for part in parts) + _listed(parts)
    found: list[str] = []
    place = 0
    while place < len(parts):
        part = parts[place]
        if parts[place + 1 : place + 2] == ["."]:
            if tables > 1:
                found += [aliases.get(part, part), "."]
            place += 2
            continue
        if part in aliases and place and parts[place - 1] == aliases[part]:
            place += 1  # where the alias is given
            continue
        found.append(part)
        place += 1
    return tuple(found)


def _part(text: str) -> str:
    if text[0] == "'":
        return text
    if text[0] in '"`[':
        text = text[1:-1]
    return _SAME.get(text, text.lower())


def _aliases(parts: list[str]) -> dict[str, str]:
    """The tables' names by alias: a word behind the name of a source that no clause begins with."""
    found = {}
    for place, part in enumerate(parts[:-2]):
        if part in ("from", "join") and parts[place + 1].isidentifier():
            alias = parts[place + 2]
            if alias.isidentifier() and alias not in _CLAUSES:
                found[alias] = parts[place + 1]
    return found


def _listed(parts: list[str]) -> int:
    """Commas among the sources of the first FROM."""
    start = parts.index("from") if "from" in parts else len(parts)
    commas = 0
    for part in parts[start:]:
        if part in _CLAUSES - _JOINS:
            break
        commas += part == ","
    return commas


_JOINS = frozenset(["join", "left", "right", "full", "cross", "natural", "on", "using"])
_CLAUSES = _JOINS | frozenset(["where", "group", "order", "having", "limit", "union", "except", "intersect"])
