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

import lark as lark_library

from benchmarks.lark_grammars import GRAMMARS, Small
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
    except lark_library.exceptions.LarkError:
        return False
    return True


def compare(small: Small, parser: str, lexer: str) -> tuple[set[str], set[str], Constraint]:
    """What we emit, what lark parses, and the constraint."""
    options = {"start": "start", **small.options, "parser": parser, "lexer": lexer}
    constraint = lark(small.text, **options)
    ours = emitted(constraint, small.alphabet, small.length)
    theirs = parsed(lark_library.Lark(small.text, **options), small.alphabet, small.length)
    return ours, theirs, constraint


def main() -> None:
    """Compares, prints a line for each grammar and the result."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--only", default="", help="grammars whose name has this word")
    arguments.add_argument("--missing", type=int, default=12, help="missing texts to list for each")
    given = arguments.parse_args()
    grammars = [small for small in GRAMMARS if given.only in small.name]
    unsound = missing = total = compared = 0
    gated: set[str] = set()
    for small in grammars:
        for parser, lexer in small.parsers:
            started = time.perf_counter()
            ours, theirs, constraint = compare(small, parser, lexer)
            over, under = sorted(ours - theirs), sorted(theirs - ours, key=lambda t: (len(t), t))
            unsound += len(over)
            missing += len(under)
            total += len(theirs)
            compared += 1
            if constraint.checked_after:
                gated.add(small.name)
            state = "gated" if constraint.checked_after else "exact" if not under else "sound"
            print(
                f"{small.name:34} {parser:6} {lexer:16} {state if not over else 'UNSOUND':7} "
                f"lark {len(theirs):5} ours {len(ours):5} missing {len(under):5} {time.perf_counter() - started:5.1f}s"
            )
            if over:
                print(f"    emitted, and refused by lark: {over[: given.missing]}")
            if under:
                print(f"    missing: {under[: given.missing]}")
            for item in constraint.checked_after:
                print(f"    gated: {item.reason}")
    share = missing / total if total else 0.0
    print(f"{compared} comparisons, {total} texts of lark, {missing} of them cannot be emitted")
    result = {
        "grammars": len(grammars),
        "unsound": unsound,
        "gated": len(gated),
        "missing_share": round(share, 5),
    }
    print("RESULT " + json.dumps(result))


if __name__ == "__main__":
    main()
