"""Are our texts lark's texts? Every text up to a length, of many small grammars.

    python -m benchmarks.lark_equivalence [--only WORD] [--missing 20]

For each grammar, each parser and each text over a small alphabet: does lark parse it, and can the masks emit
it, byte by byte, up to the end? The last line is `RESULT {...}`: texts that can be emitted and lark refuses
(must be 0), grammars whose end is gated by lark itself, and the share of lark's texts that cannot be emitted.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Iterator
from typing import NamedTuple

import lark as lark_library

from benchmarks.lark_grammars import BLOCKS, GRAMMARS, Small
from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.lark import lark
from xpress_struct.constraints.matcher import GrammarMatcher
from xpress_struct.constraints.vocabulary import Vocabulary

__all__ = ["compare", "emitted", "parsed"]

_BYTES = Vocabulary.from_tokens([bytes([i]) for i in range(256)] + [b""], end_ids=[256])


def emitted(constraint: Constraint, alphabet: str, length: int) -> set[str]:
    """The texts that the masks allow, byte by byte, and that satisfy the constraint at their end.

    (Where lark refuses a text that nothing can follow, it ends, and is drawn again: it is never delivered.)
    """
    found: set[str] = set()
    letters = [(letter, list(letter.encode())) for letter in alphabet]

    def visit(matcher: GrammarMatcher, text: str) -> None:
        if matcher.accepting:
            found.add(text)
        if len(text) == length:
            return
        for letter, tokens in letters:
            moved = matcher.follow(tokens)
            if moved == len(tokens):
                visit(matcher, text + letter)
            matcher.rollback(moved)

    visit(constraint.matcher(_BYTES)[0], "")
    return found


def parsed(parser: lark_library.Lark, alphabet: str, length: int) -> set[str]:
    """The texts that lark parses."""
    return {text for text in _texts(alphabet, length) if _parses(parser, text)}


def _texts(alphabet: str, length: int) -> Iterator[str]:
    for size in range(length + 1):
        for letters in itertools.product(alphabet, repeat=size):
            yield "".join(letters)


def _parses(parser: lark_library.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except (lark_library.exceptions.LarkError, IndexError, AssertionError, RuntimeError):
        # Not only LarkErrors: an Indenter and Earley's parser fail in other ways too.
        return False
    return True


def compare(
    small: Small, parser: str, lexer: str, length: int | None = None
) -> tuple[set[str], set[str], Constraint]:
    """What we emit, what lark parses (up to a length, the grammar's own by default), and the constraint."""
    length = small.length if length is None else min(length, small.length)
    options = {"start": "start", **small.options, "parser": parser, "lexer": lexer}
    constraint = lark(small.text, **options, **small.bounds)
    ours = emitted(constraint, small.alphabet, length)
    theirs = parsed(lark_library.Lark(small.text, **options), small.alphabet, length)
    return ours, theirs, constraint


def main() -> None:
    """Compares, prints a line for each grammar and the result."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--only", default="", help="grammars whose name has this word")
    arguments.add_argument("--missing", type=int, default=12, help="missing texts to list for each")
    given = arguments.parse_args()
    grammars = [small for small in GRAMMARS if given.only in small.name]
    blocks = [small for small in BLOCKS if given.only in small.name]
    found = [_shown(small, given.missing) for small in grammars]
    bounded = [_shown(small, given.missing) for small in blocks]
    total = sum(one.texts for one in found)
    missing = sum(one.missing for one in found)
    print(f"{total} texts of lark, {missing} of them cannot be emitted")
    print(
        f"{len(blocks)} grammars with indentation, bounded by design: {sum(one.texts for one in bounded)} "
        f"texts of lark, {sum(one.missing for one in bounded)} of them cannot be emitted"
    )
    result = {
        "grammars": len(grammars) + len(blocks),
        "unsound": sum(one.unsound for one in found + bounded),
        "gated": sum(one.gated for one in found + bounded),
        "missing_share": round(missing / total, 5) if total else 0.0,
    }
    print("RESULT " + json.dumps(result))


class _Counts(NamedTuple):
    texts: int
    missing: int
    unsound: int
    gated: bool


def _shown(small: Small, most: int) -> _Counts:
    """Compares one grammar under each of its parsers, and prints a line for each."""
    texts = missing = unsound = 0
    gated = False
    for parser, lexer in small.parsers:
        started = time.perf_counter()
        ours, theirs, constraint = compare(small, parser, lexer)
        seconds = time.perf_counter() - started
        over, under = sorted(ours - theirs), sorted(theirs - ours, key=lambda t: (len(t), t))
        texts, missing, unsound = texts + len(theirs), missing + len(under), unsound + len(over)
        gated = gated or bool(constraint.checked_after)
        state = "UNSOUND" if over else "gated" if constraint.checked_after else "sound" if under else "exact"
        print(
            f"{small.name:34} {parser:6} {lexer:16} {state:7} lark {len(theirs):5} ours {len(ours):5} "
            f"missing {len(under):5} {seconds:5.1f}s"
        )
        for title, some in (("emitted, and refused by lark", over), ("missing", under)):
            if some:
                print(f"    {title}: {some[:most]}")
        for item in constraint.checked_after:
            print(f"    gated: {item.reason}")
    return _Counts(texts, missing, unsound, gated)


if __name__ == "__main__":
    main()
