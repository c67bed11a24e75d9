"""The grammar of a dialect with the names of one database in it.

It is the shipped grammar with other rules for names, and holds the rules twice. In the first set names
are those of the database. In the second, for statements that begin with WITH, a name may also be one that
the statement defines.

Row values and named windows are left out. It is also stricter in style, since a model that is kept from what
it wanted to say falls for any spelling that is left: words are in capitals or in small letters, blanks are a
few spaces, or a line feed and spaces.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from xpress_struct.constraints.sql.schema import Database
from xpress_struct.constraints.sql.words import BLANK, Words

__all__ = ["DIALECTS", "STATEMENTS", "grammar_for", "reserved"]

DIALECTS = ("sqlite",)
STATEMENTS = {"select": "compound", "insert": "insert", "update": "update", "delete": "delete"}
"""Kinds of statements, and their rules in the shipped grammar."""

_RULE = re.compile(r"^[?!]?(_?[a-z]\w*) *:.*(?:\n[ \t]+\S.*)*", re.MULTILINE)
_TERMINAL = re.compile(r"^(_?[A-Z]\w*)(?:\.\d+)? *:.*", re.MULTILINE)
_RESERVED = re.compile(r"^NAME: /\(\?ai:\(\?!\(\?:([\w|]+)\)", re.MULTILINE)
_REFERENCE = re.compile(r"(?<![\w\"])_?[a-z]\w*")
_SHIPPED_BLANK = r"[ \t\n]{1,20}"
_WORD = re.compile(r"/\(\?ai:([A-Z_]+)\)/")

# What SQLite takes in few places only (row values), or what must be declared at another one (windows).
_NARROWER = {
    "| _LPAR exprs _RPAR\n        | _LPAR select": "| _LPAR expr _RPAR\n        | _LPAR select",
    "(column | columns) _EQUALS": "column _EQUALS",
    "_OVER (window | ALIAS)": "_OVER window",
    " [windows]": "",
}
# Rules that stand in for those of the shipped grammar. `defined`: a name that is not the database's.
_NAMES = """
start: ({statements} | with_2 _statement_2) [_SEMICOLON]
_statement_2: {statements_2}
select: compound
table: {tables}
column: {columns}
column_ref: column | qualified | ALIAS_NAME "." column
qualified: {qualified}
table_star: ({tables} | ALIAS_NAME) "." STAR
table_alias: _AS ALIAS_NAME | TABLE_ALIAS
group_terms: (expr | defined) (_COMMA (expr | defined))*
_order_key: expr | defined

table_2: any_name
column_2: any_name
column_ref_2: any_name ["." any_name]
table_star_2: any_name "." STAR

function_name: {functions}
table_function: TABLE_FUNCTION
collation: COLLATION
new_name: any_name
any_name: {words} | defined
defined: OTHER | FUNCTION | ALIAS_NAME
alias: _AS (any_name | STRING | TEXT) | ALIAS | QUOTED_ALIAS
cast_type: any_name ALIAS* [_LPAR signed_number [_COMMA signed_number] _RPAR]
literal: NUMBER | STRING | TEXT | BLOB | NULL | TRUE | FALSE | CURRENT
"""
_SHARED = frozenset(re.findall(r"^(\w+):", _NAMES[_NAMES.index("function_name:") :], re.MULTILINE))


def grammar_for(database: Database, dialect: str, statements: Sequence[str]) -> str:
    """A Lark grammar (LALR) of statements over a database's tables; `statements`: which kinds."""
    base = _strict(_shipped(dialect))
    words = Words(database, reserved(dialect))
    kinds = [STATEMENTS[kind] for kind in statements]
    names = _NAMES.format(
        statements=" | ".join(kinds),
        statements_2=" | ".join(f"{kind}_2" for kind in kinds),
        tables=words.either(database.tables),
        columns=words.either(column for columns in database.tables.values() for column in columns),
        qualified="\n    | ".join(
            f'{words.either([table])} "." ({words.either(columns)})'
            for table, columns in database.tables.items()
        ),
        functions=" | ".join(["FUNCTION", *words.functions]),
        words=" | ".join(words.terminals),
    )
    shipped = {rule[1]: rule[0] for rule in _RULE.finditer(base)}
    rules = {
        **shipped,
        **{f"{name}_2": _second(text, shipped) for name, text in shipped.items() if name not in _SHARED},
        **{rule[1]: rule[0] for rule in _RULE.finditer(names)},
    }
    terminals = [
        found[0] for found in _TERMINAL.finditer(base) if found[1] not in ("NAME", "QUOTED", "QUOTED_ALIAS")
    ]
    return "\n".join([*_reachable(rules), *terminals, words.definitions()])


def reserved(dialect: str) -> frozenset[str]:
    """Words, in small letters, that are a name only in quotes."""
    found = _RESERVED.search(_shipped(dialect))
    assert found is not None
    return frozenset(found[1].split("|"))


def _strict(grammar: str) -> str:
    """The grammar with its words in one case, and short blanks."""
    for shipped, narrower in _NARROWER.items():
        assert shipped in grammar
        grammar = grammar.replace(shipped, narrower)
    grammar = _WORD.sub(lambda word: f'("{word[1]}" | "{word[1].lower()}")', grammar)
    return grammar.replace(_SHIPPED_BLANK, f"(?:{BLANK})")


def _second(text: str, rules: dict[str, str]) -> str:
    """A rule of the second set: it refers to rules of that set."""

    def renamed(reference: re.Match[str]) -> str:
        name = reference[0]
        return f"{name}_2" if name in rules and name not in _SHARED else name

    return _REFERENCE.sub(renamed, text)


def _reachable(rules: dict[str, str]) -> list[str]:
    """The rules that a statement can need."""
    seen, todo = {"start"}, ["start"]
    while todo:
        for name in _REFERENCE.findall(rules[todo.pop()]):
            if name in rules and name not in seen:
                seen.add(name)
                todo.append(name)
    return [text for name, text in rules.items() if name in seen]


def _shipped(dialect: str) -> str:
    """The text of the shipped grammar: inside the package when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parents[2]
    folder = package / "grammars"
    if not folder.is_dir():
        folder = package.parent / "grammars"
    return (folder / f"{dialect}.lark").read_text(encoding="utf-8")
