"""Faults in a grammar, told with their place and a hint."""

from __future__ import annotations

import re

from xpress_struct.errors import GrammarError

__all__ = ["explained", "not_lark"]

_GBNF = re.compile(r"^[ \t]*<?[\w-]+>?[ \t]*::=", re.MULTILINE)
_PLACE = re.compile(r"line (\d+),? column (\d+)")
_HINTS = (
    (r"Rule '(\w+)' used but not defined", "Define it, or correct the name."),
    (r"Rule '(\w+)' defined more than once", "Join the two with |, or use %extend or %override."),
    (r"Rules? '?(\w+)'? defined more than once", "Join the two with |, or use %extend or %override."),
    (r"Terminal used but not defined: (\w+)", "Define it, or %import it (common has NUMBER, WS, ...)."),
    (r"Using an undefined rule: NonTerminal\('(\w+)'\)", "Define it, or pass start=."),
    (r"Terminal '(\w+)' defined more than once", "Join the two with |."),
    (
        r"Token[s]? '?(\w+)'? (?:used but )?not defined",
        "Define it, or %import it (common has NUMBER, WS, ...).",
    ),
    (r"Unknown start rule", "Name one of the grammar's rules with start=."),
    (
        r"(?:zero-width|zero width)[^(]*\(?(\w+)?",
        "A terminal must match at least one character: use + for *.",
    ),
    (r"Reduce/Reduce", "Two rules derive the same text; parser='earley' takes such grammars."),
    (r"(?:Infinite|infinite)", "A rule of terminals must not use itself; write it as a rule in lower case."),
)


def not_lark(text: str) -> None:
    """Refuses GBNF and EBNF.

    Raises:
        GrammarError: with the line.
    """
    gbnf = _GBNF.search(text)
    if gbnf:
        line = text[: gbnf.end()].count("\n") + 1
        raise GrammarError(
            f"Line {line} has '::=', so this looks like GBNF or EBNF, not Lark. Lark writes "
            f'`start: "a" | rule`.\n{_caret(text, line, None)}',
            line=line,
        )


def explained(text: str, start: str, error: Exception) -> GrammarError:
    """lark's complaint as an error of ours, with the place in the grammar and a hint."""
    message = str(error).strip()
    line, column = getattr(error, "line", None), getattr(error, "column", None)
    place = _PLACE.search(message)
    if place:
        line, column = int(place[1]), int(place[2])
    hint = ""
    for pattern, advice in _HINTS:
        found = re.search(pattern, message)
        if found:
            hint = advice
            name = found[1] if found.re.groups else None
            if name and line is None:
                line, column = _find(
                    text, name, again="more than once" in message, made="zero-width" in message
                )
            if name == start and "undefined rule" in message:
                hint = (
                    f"The start rule {start!r} is missing: define it, or pass start= with the name of a rule."
                )
            break
    line = line if line and line > 0 else None
    column = column if line and column and column > 0 else None
    where = f" (line {line}, column {column})" if column else f" (line {line})" if line else ""
    told = message.splitlines()[0] if message else type(error).__name__
    parts = [f"The Lark grammar does not compile{where}: {told}", hint]
    if line:
        parts.append(_caret(text, line, column))
    return GrammarError("\n".join(part for part in parts if part), line=line, column=column)


def _find(text: str, name: str, *, again: bool, made: bool) -> tuple[int | None, int | None]:
    """Where a name is used; or where it is defined, for the second time if `again`."""
    if again or made:
        places = list(re.finditer(rf"^[?!]*{re.escape(name)}\b", text, re.MULTILINE))[again:]
    else:
        places = list(re.finditer(rf"(?<![\w.]){re.escape(name)}(?!\w)(?!\s*(?:\.-?\d+)?\s*:)", text))
    if not places:
        return None, None
    start = places[0].start()
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)


def _caret(text: str, line: int, column: int | None) -> str:
    rows = text.splitlines()
    if not 0 < line <= len(rows):
        return ""
    row = rows[line - 1]
    return f"    {row}\n    {' ' * ((column or 1) - 1)}^" if column else f"    {row}"
