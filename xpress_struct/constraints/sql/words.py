"""Terminals for the names of a database: one each, so that a table can have its own columns."""

from __future__ import annotations

import re
from collections.abc import Iterable

from xpress_struct.constraints.sql.schema import Database, quoted
from xpress_struct.errors import SchemaError

__all__ = ["Words"]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TABLE_FUNCTIONS = ("json_each", "json_tree")


class Words:
    """Names of a database as terminals; SQLite ignores the case of ASCII letters in names.

    Args:
        reserved: words, in lower case, that are a name only inside quotes.

    Attributes:
        terminals: names of the terminals.
        functions: those of them that name a function too.
    """

    def __init__(self, database: Database, reserved: frozenset[str]) -> None:
        self._reserved, self._tables = reserved, tuple(database.tables)
        self._terminals: dict[str, str] = {}
        for table, columns in database.tables.items():
            for name in (table, *columns):
                if not name or any(ord(character) < 32 for character in name):
                    raise SchemaError(
                        f"The name {name!r} in table {table!r} is empty or has control characters."
                    )
                self._terminals.setdefault(_folded(name), f"WORD_{len(self._terminals) + 1}")
        known = {name.lower() for name in database.functions if name != "load_extension"}
        callable_ = {name for name in known if self._plain(name)}
        self._functions = sorted(callable_ - self._terminals.keys(), key=lambda name: (-len(name), name))
        self.functions = [self._terminals[name] for name in sorted(callable_ & self._terminals.keys())]

    @property
    def terminals(self) -> list[str]:
        return list(self._terminals.values())

    def either(self, names: Iterable[str]) -> str:
        """An alternative of the terminals of names."""
        return " | ".join(dict.fromkeys(self._terminals[_folded(name)] for name in names))

    def definitions(self) -> str:
        """Definitions of the terminals, and of the names that are not the database's.

        `\\b`: a word is read whole, `name` never as the beginning of `name_of`.
        """
        lines = []
        for name, terminal in self._terminals.items():
            pattern = re.escape(quoted(name)) + (rf"|{name}\b" if self._plain(name) else "")
            lines.append(_terminal(terminal, pattern))
        plain = [name for name in self._terminals if self._plain(name)]
        taken = "|".join(sorted({*self._reserved, *plain, *self._functions, *_TABLE_FUNCTIONS}))
        alias = self._alias()
        texts = "|".join(re.escape(quoted(name)) for name in self._terminals)
        lines += [
            _terminal("FUNCTION", "(?:" + "|".join(self._functions) + r")\b"),
            _terminal("TABLE_FUNCTION", "(?:" + "|".join(_TABLE_FUNCTIONS) + r")\b"),
            _terminal("COLLATION", "binary|nocase|rtrim"),
            _terminal("ALIAS_NAME", rf"(?!(?:{taken})\b)(?:{alias})\b"),
            _terminal("TABLE_ALIAS", rf"(?![ \t\n]{{1,20}}(?:{taken})\b)[ \t\n]{{1,20}}(?:{alias})\b"),
            _terminal("OTHER", rf"(?!(?:{taken}|{alias})\b)[a-z_][a-z0-9_]*\b"),
            _terminal("TEXT", rf'(?!{texts})"(?:[^"\x00]|"")*"(?!")'),
        ]
        return "\n".join([*lines, "QUOTED_ALIAS: _S TEXT"])

    def _alias(self) -> str:
        """What a table may be called for short: a letter, its beginning or its initials; and a number."""
        short = {"[a-z]"}
        for table in self._tables:
            parts = [part for part in re.split(r"[^a-z]+", table.lower()) if part]
            if parts:
                short |= {
                    "".join(part[0] for part in parts),
                    *(parts[0][:n] for n in range(2, len(parts[0]) + 1)),
                }
        return f"(?:{'|'.join(sorted(short, key=lambda one: (-len(one), one)))})[0-9]{{0,2}}"

    def _plain(self, name: str) -> bool:
        return bool(_PLAIN.fullmatch(name)) and name.lower() not in self._reserved


def _folded(name: str) -> str:
    """SQL folds the case of ASCII letters alone."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def _terminal(name: str, pattern: str) -> str:
    return f"{name}: /(?ai:{pattern.replace('/', chr(92) + '/')})/"
