"""The grammar of a dialect with the names of one database in it.

It is the shipped grammar's text with other rules for names. It holds the rules twice. In the first set
names are those of the database. In the second, for statements that begin with WITH, a name may also be one
that the statement defines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache as memoise
from pathlib import Path

from xpress_struct.constraints.sql.schema import Database, quoted
from xpress_struct.errors import SchemaError

__all__ = ["DIALECTS", "grammar_for"]

DIALECTS = ("sqlite",)

_RULE = re.compile(r"^[?!]?([a-z_]\w*) *:(.*(?:\n[ \t]+.*)*)", re.MULTILINE)
_TERMINAL = re.compile(r"^(_?[A-Z]\w*)(?:\.\d+)? *:.*", re.MULTILINE)
_RESERVED = re.compile(r"^NAME: /\(\?!\(\?:([\w|]+)\)", re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HIDDEN_FUNCTIONS = ("load_extension",)

# The rules for names, without and with names that the statement defines. WORD: any name of the database.
_NAMES = """
start: (compound | insert | update | delete | with_2 (compound_2 | insert_2 | update_2 | delete_2)) [_SEMICOLON]
select: compound
table: {tables}
column: {columns}
column_ref: column | qualified
qualified: {qualified}
         | defined "." column
table_star: ({tables} | defined) "." STAR
function_name: {functions}
table_function: TABLE_FUNCTION
collation: COLLATION
new_name: any_name
group_terms: group_term (_COMMA group_term)*
group_term: expr | defined
_order_key: expr | defined
literal: NUMBER | STRING | TEXT | BLOB | NULL | TRUE | FALSE | CURRENT
alias: _AS (any_name | STRING | TEXT) | ALIAS | _S TEXT
cast_type: any_name ALIAS* [_LPAR signed_number [_COMMA signed_number] _RPAR]

table_2: any_name
column_2: any_name
column_ref_2: any_name ["." any_name]
table_star_2: any_name "." STAR
"""
_SHARED = "literal alias cast_type function_name table_function collation new_name signed_number".split()
_DROPPED = {"start", "statement", "create_table", "definitions", "column_def", "type", "column_constraint"}
_DROPPED |= {"references", "table_constraint", "create_index", "index_terms_", "create_view", "new_table", "name"}


def grammar_for(database: Database, dialect: str) -> str:
    """A Lark grammar (LALR) of the statements over a database's tables."""
    base = _shipped(dialect)
    words = _Words(database, frozenset(_RESERVED.search(base)[1].split("|")))  # type: ignore[index]
    names = _NAMES.format(
        tables=" | ".join(words.of(database.tables)),
        columns=" | ".join(words.of({c for columns in database.tables.values() for c in columns})),
        qualified="\n         | ".join(
            f'{words.of([table])[0]} "." ({" | ".join(words.of(columns))})'
            for table, columns in database.tables.items()
        ),
        functions=" | ".join(["FUNCTION", *words.functions_among_words()]),
    )
    own = set(re.findall(r"^(\w+):", names, re.MULTILINE))
    rules = {found[1]: found[0] for found in _RULE.finditer(base) if found[1] not in _DROPPED}
    first = [text for name, text in rules.items() if name not in own]
    second = [_second(text, rules) for name, text in rules.items() if f"{name}_2" not in own and name not in _SHARED]
    terminals = [f[0] for f in _TERMINAL.finditer(base) if f[1] not in ("NAME", "QUOTED")]
    return "\n".join([*first, *second, names, *terminals, words.terminals(dict.fromkeys(database.functions))])
