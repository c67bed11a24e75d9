"""The shipped grammars as lark loads them, and their corpora."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import lark

from xpress_struct.constraints.lark.shipped import PythonBlocks

FOLDER = Path(__file__).resolve().parents[2] / "grammars"
CORPORA = Path(__file__).parent / "corpora"
NAMES = sorted(path.stem for path in FOLDER.glob("*.lark"))


@cache
def loaded(name: str) -> lark.Lark:
    """The grammar in lark itself, as LALR."""
    text = (FOLDER / f"{name}.lark").read_text(encoding="utf-8")
    postlex = PythonBlocks() if name == "python" else None
    return lark.Lark(text, parser="lalr", postlex=postlex, maybe_placeholders=False)


def takes(name: str, text: str) -> bool:
    """True when lark parses the text."""
    try:
        loaded(name).parse(text)
    except lark.exceptions.LarkError:
        return False
    return True


def corpus(kind: str) -> list[tuple[str, str]]:
    """(grammar, text) of all corpora of a kind, "accepted" or "refused"."""
    found = []
    for name in NAMES:
        # Read as bytes: carriage returns are part of the texts.
        text = (CORPORA / f"{name}.{kind}.txt").read_bytes().decode()
        found += [
            (name, each if name in ("python", "ini") else each.removesuffix("\n")) for each in _split(text)
        ]
    return found


def _split(text: str) -> list[str]:
    return [f"{each}\n" for each in text.removesuffix("\n").split("\n%%\n")]
