"""SQL over one database: its names only, whatever the form in which the tables are given."""

from __future__ import annotations

import random
import sqlite3
from functools import cache

import pytest

import xpress_struct as xs
from benchmarks.judges import JUDGES
from tests.stubs import stub_model
from xpress_struct.errors import ArgumentError, OutputValidationError, SchemaError

DDL = """
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT, "birth year" INTEGER, date TEXT);
CREATE TABLE "order" (id INTEGER, singer_id INTEGER REFERENCES singer (id), total REAL);
CREATE VIEW old AS SELECT name FROM singer WHERE "birth year" < 1950;
"""


@cache
def singers() -> xs.Constraint:
    return xs.sql(DDL)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT name FROM singer",
        "select NAME from SINGER where ID = 3;",
        "SELECT singer.name, count(*) FROM singer GROUP BY singer.name",
        'SELECT s.name, o.total FROM singer AS s JOIN "order" o ON o.singer_id = s.id',
        'SELECT "birth year" FROM singer WHERE name LIKE \'A%\' OR name = "Bob"',
        "SELECT count(*) AS n, name FROM singer GROUP BY name ORDER BY n DESC LIMIT 3",
        'SELECT name FROM singer WHERE id IN (SELECT singer_id FROM "order" WHERE total > 1.5)',
        "SELECT name FROM old UNION SELECT date(date) FROM singer",
        'WITH big AS (SELECT singer_id AS who FROM "order") SELECT who FROM big',
        "SELECT name, row_number() OVER (PARTITION BY date ORDER BY id) FROM singer",
        "SELECT CAST(id AS REAL), CASE WHEN id > 1 THEN 'a' ELSE name END FROM singer",
        "INSERT INTO singer (id, name) VALUES (1, 'x')",
        "UPDATE singer SET name = upper(name) WHERE id = 1",
        "DELETE FROM singer WHERE id = 1",
    ],
)
def test_statements_over_the_tables(text: str) -> None:
    """A statement over existing names passes the mask and SQLite."""
    assert singers().accepts(text)
    assert singers().parse(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "SeLECT name FROM singer",
        "SELECT    name FROM singer",
        "SELECT\n\nname FROM singer",
        "SELECT name\tFROM singer",
        "SELECT naMe FROM singer",
        "SELECT Count(*) FROM singer",
        'SELECT "NaMe" FROM singer',
    ],
)
def test_style_is_strict(text: str) -> None:
    """SQLite takes it; words in mixed case, names otherwise than declared and wide blanks are left out."""
    assert JUDGES["sqlite"](text) is None
    assert not singers().accepts(text)


def test_names_as_declared() -> None:
    """A name in mixed case may be written as declared, with fewer capitals, and in capitals."""
    constraint = xs.sql({"Singer": ["Song_Name"]}, statements=["select"])
    assert constraint.accepts("SELECT Song_Name FROM Singer")
    assert constraint.accepts("SELECT SONG_NAME,lower(song_name), max(Song_name) FROM singer")
    assert not constraint.accepts("SELECT SoNg_Name FROM Singer")


def test_kinds_of_statements() -> None:
    """Only the kinds asked for can be written, behind WITH too."""
    reading = xs.sql(DDL, statements=["select"])
    assert reading.accepts("SELECT name FROM singer")
    assert not reading.accepts("DELETE FROM singer")
    assert not reading.accepts("WITH old AS (SELECT 1) DELETE FROM singer")
    removing = xs.sql(DDL, statements=["delete"])
    assert removing.accepts("WITH o AS (SELECT 1) DELETE FROM singer WHERE id IN (SELECT * FROM o)")
    assert not removing.accepts("SELECT name FROM singer")
    for wrong in ("select", [], ["drop"]):
        with pytest.raises(ArgumentError, match="statements="):
            xs.sql(DDL, statements=wrong)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT names FROM singer",
        "SELECT name FROM singers",
        "SELECT singer.total FROM singer",
        "SELECT s.height FROM singer AS s",
        "SELECT age FROM singer",
        "SELECT age.name FROM singer AS age",
        "SELECT order.id FROM singer",
        "SELECT birth FROM singer",
        "SELECT shout(name) FROM singer",
        "SELECT load_extension('x')",
        "SELECT name FROM singer; DROP TABLE singer",
        "INSERT INTO singer (age) VALUES (1)",
        "UPDATE singer SET age = 1",
        "SELECT * FROM sqlite_master",
        "DROP TABLE singer",
    ],
)
def test_other_names_are_masked(text: str) -> None:
    """A name that the database has not cannot be written."""
    assert not singers().accepts(text)


@pytest.mark.parametrize(
    "text",
    [
        "WITH o AS (SELECT 1 AS n) SELECT m FROM o",
        "SELECT sum(id) OVER (ORDER BY id, name RANGE 1 PRECEDING) FROM singer",
        "INSERT INTO old (name) VALUES ('x')",
    ],
)
def test_what_the_mask_does_not_know_is_checked_after(text: str) -> None:
    """What the mask does not know, SQLite does; without the check it passes."""
    assert singers().accepts(text)
    with pytest.raises(OutputValidationError, match="SQLite refuses"):
        singers().parse(text)
    assert [item.keyword for item in singers().checked_after] == ["sqlite"]


def test_without_the_check() -> None:
    """`check=False` leaves nothing to check after generation."""
    free = xs.sql(DDL, check=False)
    assert free.checked_after == ()
    assert free.parse("WITH o AS (SELECT 1 AS n) SELECT m FROM o")


def test_tables_in_each_form() -> None:
    """DDL, a connection and a mapping, with types or without, give the same names."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a INTEGER, b TEXT)")
    for tables in (
        "CREATE TABLE t (a, b)",
        connection,
        {"t": ["a", "b"]},
        {"t": {"a": "INTEGER", "b": "TEXT"}},
    ):
        made = xs.sql(tables)
        assert made.parse("SELECT t.a, b FROM t") and not made.accepts("SELECT c FROM t")
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_names_that_need_quotes() -> None:
    """A reserved word or an odd name is written in quotes only; the case of other letters counts."""
    made = xs.sql({"select": ["Größe (cm)", 'say "hi"']})
    assert made.parse('SELECT "Größe (cm)", "say ""hi""" FROM "select"')
    assert made.accepts('SELECT "Größe (cm)", "say ""hi""" FROM "select"')
    assert not made.accepts('SELECT "größe (cm)" FROM select')


def test_random_models() -> None:
    """What a random model writes is SQL to SQLite."""

    def logits(prefix: tuple[int, ...]) -> list[float]:
        draw = random.Random(str(prefix))
        return [draw.gauss(0, 2) for _ in range(257)]

    model, made = stub_model(logits), xs.sql(DDL, check=False)
    done = [
        model.generate([1], made, max_new_tokens=400, seed=seed, temperature=1.0, on_limit="close")
        for seed in range(4)
    ]
    texts = [each.value for each in done if each.complete]
    assert len(texts) >= 2
    for text in texts:
        assert JUDGES["sqlite"](text) is None


@pytest.mark.parametrize(
    ("tables", "error", "match"),
    [
        ("CREATE TABEL t (a)", SchemaError, "syntax error"),
        ("", SchemaError, "no table"),
        ({}, SchemaError, "no table"),
        ({"t": []}, SchemaError, "no columns"),
        ({"t": "abc"}, SchemaError, "columns of table 't' are a text"),
        ({"t": [""]}, SchemaError, "empty"),
        ("ATTACH 'x.db' AS x", SchemaError, "not authorized"),
        (3, ArgumentError, "CREATE statements"),
    ],
)
def test_bad_tables(tables: object, error: type[Exception], match: str) -> None:
    """Tables that cannot be read are refused with the reason."""
    with pytest.raises(error, match=match):
        xs.sql(tables)  # type: ignore[arg-type]


def test_unknown_dialect() -> None:
    """A dialect that is not known is refused, and the known ones are named."""
    with pytest.raises(ArgumentError, match="sqlite"):
        xs.sql(DDL, dialect="oracle")
