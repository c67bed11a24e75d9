"""A question over a database: the query names only tables and columns that exist, and runs.

python -m examples.sql_database
"""

from __future__ import annotations

import sqlite3

import xpress_struct as xs

TABLES = """
CREATE TABLE singer (singer_id INTEGER PRIMARY KEY, name TEXT, country TEXT, age INTEGER);
CREATE TABLE concert (concert_id INTEGER PRIMARY KEY, title TEXT, year INTEGER, singer_id INTEGER
  REFERENCES singer(singer_id));
"""
ROWS = """
INSERT INTO singer VALUES (1, 'Ada', 'France', 41), (2, 'Bo', 'Norway', 27), (3, 'Cleo', 'France', 35);
INSERT INTO concert VALUES (1, 'Spring', 2024, 1), (2, 'Autumn', 2025, 3);
"""


def main() -> list[tuple[object, ...]]:
    """Asks, runs the query, and returns the rows."""
    database = sqlite3.connect(":memory:")
    database.executescript(TABLES + ROWS)
    question = "List the name and age of all singers."
    constraint = xs.sql(database, statements=["select"])
    out = xs.generate(f"{TABLES}\nWrite one SQLite query. {question}", constraint, max_new_tokens=120)
    rows = database.execute(out.value).fetchall()
    print(f"{question}\n{out.value}\n{rows}")
    return rows


if __name__ == "__main__":
    main()
