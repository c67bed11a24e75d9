"""What became of a Lark grammar."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LarkReport"]


@dataclass(frozen=True)
class LarkReport:
    """How a grammar was made into masks.

    Attributes:
        parser, lexer: of lark, whose verdict the masks follow.
        rewritten: terminals whose regular expression was changed, and how.
        proved: clashes of terminals that the masks resolve as lark's lexer does.
        gated: what only lark itself decides: the text may end only where lark parses it. Empty when the
            masks are exact.
        bounded: what lark takes and the masks leave out.
    """

    parser: str
    lexer: str
    rewritten: tuple[str, ...] = ()
    proved: tuple[str, ...] = ()
    gated: tuple[str, ...] = ()
    bounded: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"lark: parser={self.parser!r}, lexer={self.lexer!r}"]
        for title in ("rewritten", "proved", "gated", "bounded"):
            lines += [f"{title}: {item}" for item in getattr(self, title)]
        return "\n".join(lines)
