"""The grammars that come with the package."""

from __future__ import annotations

from pathlib import Path

from lark.indenter import Indenter

__all__ = ["PythonBlocks", "post_lexer", "shipped_grammars"]


class PythonBlocks(Indenter):
    """The post-lexer of the shipped grammar "python". Line feeds in brackets are the grammar's own affair."""

    NL_type = "_NEWLINE"
    OPEN_PAREN_types: list[str] = []  # noqa: RUF012  (lark's names and types)
    CLOSE_PAREN_types: list[str] = []  # noqa: RUF012
    INDENT_type = "_INDENT"
    DEDENT_type = "_DEDENT"
    tab_len = 8


def shipped_grammars() -> dict[str, Path]:
    """Grammars of the package by name: inside it when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parents[2]
    folder = package / "grammars"
    if not folder.is_dir():
        folder = package.parent / "grammars"
    return {path.stem: path for path in folder.glob("*.lark")}


def post_lexer(name: str) -> Indenter | None:
    """The post-lexer that a shipped grammar needs."""
    return PythonBlocks() if name == "python" else None
