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
    'SELECT (SELECT max(total) FROM "order") + 1 FROM singer',
    'SELECT id FROM singer JOIN "order" USING (id)',
    'SELECT id FROM singer NATURAL JOIN "order"',
    "SELECT name FROM (singer JOIN song ON singer.id = song.singer_id) WHERE title = 'x'",
    "SELECT x.name FROM (SELECT name FROM singer) AS x",
    "SELECT name AS n FROM singer ORDER BY n, 1",
    "SELECT name AS n FROM singer GROUP BY n",
    "SELECT name FROM singer UNION SELECT title FROM song ORDER BY name",
    "SELECT id, name FROM singer EXCEPT SELECT song_id, title FROM song LIMIT 3 OFFSET 1",
    "SELECT * FROM singer WHERE id = (SELECT max(id) FROM singer)",
    'SELECT * FROM "order" UNION SELECT * FROM song',
    "SELECT song.*, name FROM song JOIN singer ON id = singer_id",
    "SELECT max(id, 3) FROM singer WHERE max(id, 2) > 1",
    "SELECT sum(id) OVER (PARTITION BY name ORDER BY date ROWS 2 PRECEDING), rank() OVER () FROM singer",
    "SELECT count(DISTINCT name), count(*) FILTER (WHERE id > 1) FROM singer",
    "SELECT date, date(date), date('now') FROM singer",
    'SELECT name FROM singer WHERE name = "date of birth" AND date IS NOT NULL',
    "SELECT name FROM singer WHERE id IS NOT DISTINCT FROM 3 AND name NOT LIKE 'a''b%'",
    'SELECT CASE WHEN id > 1 THEN name ELSE CAST(id AS varchar(10)) END AS "all" FROM singer',
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
    'SELECT id FROM singer, "order"',
    'SELECT singer_id FROM song JOIN "order" ON song.song_id = "order".id',
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
    "INSERT INTO song (song_id) DEFAULT VALUES",
    "DELETE FROM song RETURNING song.*",
    'SELECT rank() "x" FROM singer',
    "SELECT likelihood(id, 2) FROM singer",
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
    """SQLite does not prepare it, and the mask does not allow it."""
    assert not prepares(text)
    assert not singers().accepts(text)


WORDS = """SELECT| FROM| JOIN| WHERE| GROUP BY| ORDER BY|count(*)|sum(|max(|(SELECT| AS| UNION| DESC|
 IN (SELECT|name|id|singer|song|title|total|t1|.id| name| singer| song|, |) | = |'x'|s.|*""".replace("\n", "")
TOKENS = [*(bytes([i]) for i in range(32, 127)), *(word.encode() for word in WORDS.split("|")), b""]
LAST = len(TOKENS) - 1


@cache
def vocabulary() -> Vocabulary:
    return Vocabulary.from_tokens(TOKENS, end_ids=[LAST])


def legal_ids(matcher: GrammarMatcher) -> list[int]:
    return np.flatnonzero(np.unpackbits(matcher.mask(), bitorder="little")[: len(TOKENS)]).tolist()


def drawn(draw: random.Random, ids: list[int]) -> int:
    return draw.choices(ids, [3 if len(TOKENS[i]) != 1 else 0.1 for i in ids])[0]


@pytest.mark.parametrize("seed", range(12))
def test_mask_and_legal_agree(seed: int) -> None:
    """At random places of random statements the mask holds the tokens that are legal, and no others; a fork
    and the place after a rollback say the same."""
    draw = random.Random(seed)
    matcher, _ = singers().matcher(vocabulary())
    for _ in range(40):
        if matcher.ended:
            break
        ids = legal_ids(matcher)
        assert [i for i in range(len(TOKENS)) if matcher.legal(i)] == ids
        token = drawn(draw, ids)
        twin = matcher.fork()
        twin.commit([token])
        if not twin.ended:
            after = legal_ids(twin)
            matcher.commit([token])
            assert legal_ids(matcher) == after
            matcher.rollback(1)
        assert legal_ids(matcher) == ids
        matcher.commit([token])


@pytest.mark.parametrize("text", [*TAKEN[:12], *TAKEN[28:33]])
def test_tokens_of_several_bytes(text: str) -> None:
    """What is taken byte by byte is legal in tokens too, with the end token behind it."""
    matcher, _ = singers().matcher(vocabulary())
    for token in [*vocabulary().encode(text), LAST]:
        assert matcher.legal(token) and token in legal_ids(matcher)
        matcher.commit([token])
    assert matcher.ended


def test_ends_wait_for_tables() -> None:
    """An end that leaves a column without its table is not legal, nor is an aggregate in WHERE."""
    matcher, _ = singers().matcher(vocabulary())
    matcher.commit(vocabulary().encode("SELECT title FROM singer"))
    assert not matcher.accepting and LAST not in legal_ids(matcher)
    assert TOKENS.index(b" WHERE") not in legal_ids(matcher)
    assert TOKENS.index(b" JOIN") in legal_ids(matcher)
    matcher.commit(vocabulary().encode(" JOIN song WHERE "))
    assert TOKENS.index(b"title") in legal_ids(matcher)
    assert not {TOKENS.index(b"sum("), TOKENS.index(b"count(*)")} & set(legal_ids(matcher))


def test_random_models_write_what_sqlite_takes() -> None:
    """Of statements of a random model, drawn without a check, SQLite prepares nearly all."""

    def logits(prefix: tuple[int, ...]) -> list[float]:
        draw = random.Random(str(prefix))
        return [draw.gauss(2.0 if i == 256 else 0.0, 2) for i in range(257)]

    model = stub_model(logits)
    done = [
        model.generate([1], singers(), max_new_tokens=120, seed=seed, temperature=1.0, on_limit="close")
        for seed in range(16)
    ]
    texts = [each.value for each in done if each.complete and not each.text.lower().startswith("with")]
    assert len(texts) >= 10
    assert sum(map(prepares, texts)) >= 0.8 * len(texts)
