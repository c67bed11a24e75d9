"""Names in their scope: the mask of `xs.sql` leaves out what SQLite would refuse."""

from __future__ import annotations

import random
import sqlite3
from functools import cache

import numpy as np
import pytest

import xpress_struct as xs
from tests.stubs import stub_model
from xpress_struct.constraints.matcher import GrammarMatcher
from xpress_struct.constraints.sql.schema import read_database
from xpress_struct.constraints.vocabulary import Vocabulary

DDL = """
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT, "birth year" INTEGER, date TEXT);
CREATE TABLE "order" (id INTEGER, singer_id INTEGER REFERENCES singer (id), total REAL);
CREATE TABLE song (song_id INTEGER, title TEXT, singer_id INTEGER);
"""

TAKEN = [
    "SELECT name FROM singer",
    "SELECT name, title FROM singer JOIN song ON singer_id = singer.id",
    "SELECT T2.title FROM singer AS T1 JOIN song AS T2 ON T1.id = T2.singer_id WHERE T1.name = 'x'",
    "SELECT count(*), name FROM singer, song GROUP BY name HAVING count(*) > 1 ORDER BY count(*) DESC",
    "SELECT name FROM singer WHERE id IN (SELECT singer_id FROM song WHERE title = name)",
    "SELECT (SELECT title FROM song WHERE song.singer_id = singer.id) FROM singer",
    "SELECT (SELECT max(total) FROM \"order\") + 1 FROM singer",
    "SELECT id FROM singer JOIN \"order\" USING (id)",
    "SELECT id FROM singer NATURAL JOIN \"order\"",
    "SELECT name FROM (singer JOIN song ON singer.id = song.singer_id) WHERE title = 'x'",
    "SELECT x.name FROM (SELECT name FROM singer) AS x",
    "SELECT name AS n FROM singer ORDER BY n, 1",
    "SELECT name AS n FROM singer GROUP BY n",
    "SELECT name FROM singer UNION SELECT title FROM song ORDER BY name",
    "SELECT id, name FROM singer EXCEPT SELECT song_id, title FROM song LIMIT 3 OFFSET 1",
    "SELECT * FROM singer WHERE id = (SELECT max(id) FROM singer)",
    "SELECT * FROM \"order\" UNION SELECT * FROM song",
    "SELECT song.*, name FROM song JOIN singer ON id = singer_id",
    "SELECT max(id, 3) FROM singer WHERE max(id, 2) > 1",
    "SELECT sum(id) OVER (PARTITION BY name ORDER BY date ROWS 2 PRECEDING), rank() OVER () FROM singer",
    "SELECT count(DISTINCT name), count(*) FILTER (WHERE id > 1) FROM singer",
    "SELECT date, date(date), date('now') FROM singer",
    "SELECT name FROM singer WHERE name = \"date of birth\" AND date IS NOT NULL",
    "SELECT name FROM singer WHERE id IS NOT DISTINCT FROM 3 AND name NOT LIKE 'a''b%'",
    "SELECT CASE WHEN id > 1 THEN name ELSE CAST(id AS varchar(10)) END AS \"all\" FROM singer",
    "SELECT 1 FROM json_each('[1]')",
    "SELECT name FROM singer WHERE EXISTS (SELECT * FROM song WHERE singer_id = singer.id)",
    "SELECT x'00', -1.5e3, id COLLATE nocase FROM singer",
    "INSERT INTO song VALUES (1, 'x', 2), (2, 'y', 3)",
    "INSERT INTO song (song_id) SELECT id FROM singer",
    "INSERT OR IGNORE INTO song (song_id, title) VALUES (1, 'x') RETURNING song_id",
    "UPDATE song SET title = name FROM singer WHERE singer.id = singer_id",
    "UPDATE OR IGNORE song SET title = 'x', song_id = song_id + 1 WHERE title = 'y' RETURNING *",
    "DELETE FROM song WHERE singer_id NOT IN (SELECT id FROM singer);",
    "REPLACE INTO song DEFAULT VALUES",
    "WITH a AS (SELECT 1 AS b) SELECT b FROM a",
]

REFUSED = [
    "SELECT title FROM singer",
    "SELECT max(title) FROM singer WHERE id = 1",
    "SELECT id FROM singer, \"order\"",
    "SELECT singer_id FROM song JOIN \"order\" ON song.song_id = \"order\".id",
    "SELECT name FROM singer WHERE title = 'x'",
    "SELECT name FROM singer JOIN song ON total = 1",
    "SELECT title FROM song ORDER BY name",
    "SELECT T1.name FROM singer",
    "SELECT T1.name FROM song AS T1",
    "SELECT T1.name, T1.title FROM singer AS T1",
    "SELECT singer.name FROM singer AS s",
    "SELECT s.title FROM singer AS s",
    "SELECT name FROM singer AS s WHERE t.id = 1",
    "SELECT s.name FROM singer AS s JOIN singer AS s",
    "SELECT song.* FROM singer",
    "SELECT name",
    "SELECT name WHERE 1",
    "SELECT name FROM singer WHERE sum(id) > 1",
    "SELECT name FROM singer WHERE max(id) > 1",
    "SELECT name FROM singer GROUP BY count(*)",
    "SELECT sum(count(*)) FROM singer",
    "SELECT name FROM singer ORDER BY sum(id)",
    "SELECT row_number() FROM singer",
    "SELECT name FROM singer WHERE rank() OVER () = 1",
    "SELECT abs(id, 1) FROM singer",
    "SELECT substr(name) FROM singer",
    "SELECT abs() FROM singer",
    "SELECT sum(*) FROM singer",
    "SELECT name FROM singer ORDER BY 2",
    "SELECT name FROM singer UNION SELECT id, name FROM singer",
    "SELECT name FROM singer UNION SELECT * FROM singer",
    "SELECT name FROM singer UNION SELECT title FROM song ORDER BY id",
    "SELECT name FROM singer WHERE id IN (SELECT id, name FROM singer)",
    "SELECT name FROM singer WHERE id = (SELECT * FROM singer)",
    "SELECT (id, name) FROM singer",
    "SELECT name FROM singer LIMIT id",
    "SELECT name FROM singer NATURAL JOIN song ON 1",
    "SELECT name FROM singer JOIN song USING (id)",
    "INSERT INTO song VALUES (1, 2)",
    "INSERT INTO song (song_id) VALUES (1, 2)",
    "INSERT INTO song (song_id) SELECT id, name FROM singer",
    "INSERT INTO song (song_id, title) SELECT id FROM singer",
    "INSERT INTO song (song_id) VALUES (title)",
    "INSERT INTO song (name) VALUES (1)",
    "UPDATE song SET name = 1",
    "UPDATE song SET title = name",
    "DELETE FROM song WHERE name = 1",
]


@cache
def singers() -> xs.Constraint:
    return xs.sql(DDL, check=False)


@cache
def database() -> sqlite3.Connection:
    return read_database(DDL).connect()


def prepares(text: str) -> bool:
    try:
        database().execute("EXPLAIN " + text)
    except sqlite3.Error:
        return False
    return True


@pytest.mark.parametrize("text", TAKEN)
def test_what_sqlite_takes_is_masked_in(text: str) -> None:
    """SQLite prepares it, and the mask allows it."""
    assert prepares(text)
    assert singers().accepts(text)


@pytest.mark.parametrize("text", REFUSED)
def test_what_sqlite_refuses_is_masked_out(text: str) -> None:
    """SQLite does not prepare it, the mask does not allow it, and the grammar alone would not be the reason
    where it is of names and numbers only."""
    assert not prepares(text)
    assert not singers().accepts(text)
