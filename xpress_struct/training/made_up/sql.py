"""Questions over small made-up databases, answered by one SELECT statement."""

from __future__ import annotations

import random
from typing import NamedTuple

from xpress_struct.training.prompts import TrainPrompt
from xpress_struct.training.split import group_of

__all__ = ["sql_ask", "sql_prompt"]


class _Table(NamedTuple):
    name: str
    plural: str
    label: str
    texts: tuple[str, ...]
    numbers: tuple[str, ...]
    parent: str | None = None


_DATABASES: tuple[tuple[_Table, ...], ...] = (
    (
        _Table("singer", "singers", "name", ("country", "genre"), ("age", "albums")),
        _Table("concert", "concerts", "title", ("city", "theme"), ("year", "visitors"), "singer"),
    ),
    (
        _Table("department", "departments", "name", ("building", "city"), ("budget", "floor")),
        _Table("employee", "employees", "name", ("job", "email"), ("salary", "age"), "department"),
    ),
    (
        _Table("author", "authors", "name", ("country", "language"), ("birth_year", "awards")),
        _Table("book", "books", "title", ("genre", "publisher"), ("pages", "price"), "author"),
    ),
    (
        _Table("team", "teams", "name", ("city", "coach"), ("founded", "points")),
        _Table("player", "players", "name", ("position", "country"), ("goals", "age"), "team"),
    ),
    (
        _Table("customer", "customers", "name", ("city", "email"), ("age", "credit")),
        _Table("orders", "orders", "number", ("status", "product"), ("quantity", "total"), "customer"),
    ),
    (
        _Table("airline", "airlines", "name", ("country", "alliance"), ("fleet_size", "founded")),
        _Table("flight", "flights", "number", ("origin", "destination"), ("distance", "price"), "airline"),
    ),
    (
        _Table("school", "schools", "name", ("district", "type"), ("enrollment", "founded")),
        _Table("student", "students", "name", ("grade", "major"), ("age", "score"), "school"),
    ),
    (
        _Table("hospital", "hospitals", "name", ("city", "type"), ("beds", "founded")),
        _Table("doctor", "doctors", "name", ("specialty", "shift"), ("salary", "years"), "hospital"),
    ),
    (
        _Table("movie", "movies", "title", ("genre", "director"), ("year", "budget")),
        _Table("review", "reviews", "headline", ("critic", "newspaper"), ("stars", "words"), "movie"),
    ),
    (
        _Table("farm", "farms", "name", ("region", "owner"), ("area", "workers")),
        _Table("crop", "crops", "name", ("season", "variety"), ("yield_tons", "price"), "farm"),
    ),
    (
        _Table("museum", "museums", "name", ("city", "style"), ("visitors", "founded")),
        _Table("painting", "paintings", "title", ("artist", "technique"), ("year", "value"), "museum"),
    ),
    (
        _Table("supplier", "suppliers", "company", ("country", "contact"), ("rating", "since")),
        _Table("part", "parts", "name", ("color", "material"), ("weight", "stock"), "supplier"),
    ),
)
_ONE = (
    "How many {plural} are there?",
    "What is the average {number} of all {plural}?",
    "List the {label} of every {table}.",
    "Show the {label} and {text} of {plural} with {number} above {n}.",
    "Which {plural} have the highest {number}?",
    "What are the different values of {text} among {plural}?",
    "Count the {plural} for each {text}.",
    "List all {plural} ordered by {number} from high to low.",
    "Find the {label} of the {table} with the lowest {number}.",
    "What is the total {number} of {plural} whose {text} is '{word}'?",
    "Which {text} has more than {n} {plural}?",
    "Give the {label} of {plural} with {number} between {n} and {m}.",
    "What are the minimum and maximum {number} of {plural}?",
    "Show the top {k} {plural} by {number}.",
)
_TWO = (
    "List the {label} of each {table} together with the {parent_label} of its {parent}.",
    "How many {plural} does each {parent} have?",
    "Which {parent} has the most {plural}?",
    "Show the {label} of {plural} whose {parent} has {parent_number} above {n}.",
    "What is the average {number} of the {plural} of every {parent}?",
    "Find the {parents} without any {plural}.",
)
_WORDS = ("North", "Paris", "open", "Jazz", "blue", "A", "History", "Spain", "modern", "daily")


def sql_prompt(rng: random.Random, name: str) -> TrainPrompt:
    """One question over one or two tables."""
    parent, child = rng.choice(_DATABASES)
    both = rng.random() < 0.6
    table = child if both else rng.choice((parent, child))
    shown = [parent, child] if both or table is child else [parent]
    columns = [_create(rng, each) for each in shown]
    n = rng.randint(1, 60) * rng.choice((1, 10, 100))
    question = rng.choice(_TWO if both and rng.random() < 0.6 else _ONE).format(
        plural=table.plural, table=table.name, label=table.label, text=rng.choice(table.texts),
        number=rng.choice(table.numbers), n=n, m=n * 2, k=rng.randint(2, 10), word=rng.choice(_WORDS),
        parent=parent.name, parents=parent.plural, parent_label=parent.label,
        parent_number=rng.choice(parent.numbers),
    )  # fmt: skip
    tables = "\n".join(columns)
    # Held out by what the tables are about: the same pair of tables is never on both sides.
    group = group_of(f"tables {parent.name} {child.name}")
    return TrainPrompt(name, "sql", sql_ask(tables, question), {"sql": tables}, group)


def sql_ask(tables: str, question: str) -> str:
    """The user message of a question over tables."""
    return f"{tables}\n\nWrite one SQLite query. {question}"


def _create(rng: random.Random, table: _Table) -> str:
    columns = [f"{table.name}_id INTEGER PRIMARY KEY", f"{table.label} TEXT"]
    columns += [f"{text} TEXT" for text in table.texts]
    columns += [f"{number} {rng.choice(('INTEGER', 'REAL'))}" for number in table.numbers]
    if table.parent:
        columns.append(f"{table.parent}_id INTEGER REFERENCES {table.parent}({table.parent}_id)")
    return f"CREATE TABLE {table.name} ({', '.join(columns)});"
