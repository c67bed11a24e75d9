"""Terminals for the names of a database: one each, so that a table can have its own columns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from string import ascii_lowercase

from xpress_struct.constraints.sql.schema import Database, quoted
from xpress_struct.errors import SchemaError

__all__ = ["BLANK", "Words", "short_names"]

BLANK = r" {1,3}|\n {0,8}"
"""What stands between words."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TABLE_FUNCTIONS = ("json_each", "json_tree")


class Words:
    """Names of a database as terminals, in the cases that people and models write them in.

    To SQLite, names that differ in the case of ASCII letters alone are one. A mask that took any case would
    let a model wander (`InserT`), so each letter is as declared or small, the first one may be a capital, or
    all are capitals.

    Args:
        reserved: words, in lower case, that are a name only inside quotes.

    Attributes:
        terminals: names of the terminals.
        functions: those of them that name a function too.
    """

    def __init__(self, database: Database, reserved: frozenset[str]) -> None:
        self._reserved, self._tables = reserved, tuple(database.tables)
        self._terminals: dict[str, str] = {}
        self._spellings: dict[str, set[str]] = {}
        for table, columns in database.tables.items():
            for name in (table, *columns):
                if not name or any(ord(character) < 32 for character in name):
                    raise SchemaError(
                        f"The name {name!r} in table {table!r} is empty or has control characters."
                    )
                self._terminals.setdefault(_folded(name), f"WORD_{len(self._terminals) + 1}")
                self._spellings.setdefault(_folded(name), set()).add(name)
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
        plain = [name for name in self._terminals if self._plain(name)]
        taken = "|".join(sorted({*self._reserved, *plain, *self._functions, *_TABLE_FUNCTIONS}))
        texts = "|".join(re.escape(quoted(name)) for name in self._terminals)
        alias = self._alias()
        functions = "|".join(f"{name}|{name.upper()}" for name in self._functions)
        lines = [_terminal(terminal, self._name(name)) for name, terminal in self._terminals.items()]
        lines += [
            _terminal("FUNCTION", rf"(?:{functions})\b"),
            _terminal("TABLE_FUNCTION", rf"(?:{'|'.join(_TABLE_FUNCTIONS)})\b"),
            _terminal("COLLATION", "binary|BINARY|nocase|NOCASE|rtrim|RTRIM"),
            _terminal("ALIAS_NAME", rf"(?!(?i:{taken})\b)(?:{alias})\b"),
            _terminal("TABLE_ALIAS", rf"(?!(?:{BLANK})(?i:{taken})\b)(?:{BLANK})(?:{alias})\b"),
            _terminal("OTHER", rf"(?i:(?!(?:{taken}|{alias})\b)[a-z_][a-z0-9_]*\b)"),
            _terminal("TEXT", rf'(?!(?i:{texts}))"(?:[^"\x00]|"")*"(?!")'),
        ]
        return "\n".join([*lines, "QUOTED_ALIAS: _S TEXT"])

    def _name(self, folded: str) -> str:
        """A pattern of a name, in quotes and, where that says the same, without."""
        pattern = "|".join(_any_case(name) for name in sorted(self._spellings[folded]))
        return f'"(?:{pattern})"' + (rf"|(?:{pattern})\b" if self._plain(folded) else "")

    def _alias(self) -> str:
        """What a table may be called for short; and a number."""
        short = sorted(short_names(self._tables), key=lambda one: (-len(one), one))
        return f"(?:{'|'.join(map(_any_case, short))})[0-9]{{0,2}}"

    def _plain(self, name: str) -> bool:
        return bool(_PLAIN.fullmatch(name)) and name.lower() not in self._reserved


def short_names(tables: Iterable[str]) -> set[str]:
    """Short names of tables: a letter, the beginning of a table's name, or its initials."""
    short = set(ascii_lowercase)
    for table in tables:
        parts = [part for part in re.split(r"[^a-z]+", table.lower()) if part]
        if parts:
            initials = "".join(part[0] for part in parts)
            short |= {initials, *(parts[0][:n] for n in range(2, len(parts[0]) + 1))}
    return short


def _folded(name: str) -> str:
    """SQL folds the case of ASCII letters alone."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def _any_case(name: str) -> str:
    """A pattern of the ways to write a name."""
    letters = [letter.replace('"', '""') for letter in name]
    capitals = "".join(re.escape(letter.upper() if letter.isascii() else letter) for letter in letters)
    return "".join(map(_either_case, range(len(letters)), letters)) + f"|{capitals}"


def _either_case(place: int, letter: str) -> str:
    if letter.isascii() and letter.isalpha() and (letter.isupper() or place == 0):
        return f"[{letter.upper()}{letter.lower()}]"
    return re.escape(letter)


def _terminal(name: str, pattern: str) -> str:
    return f"{name}: /(?a:{pattern.replace(chr(47), chr(92) + chr(47))})/"
