"""Random grammars against lark: a search for texts that can be emitted and lark refuses.

    python -m benchmarks.lark_random [--seconds 120] [--seed 0]

The terminals are drawn from patterns that clash in every way known (order of branches, laziness, look-around,
priorities, literals inside patterns, ignored text like tokens), so most of these grammars are worse
than what people write. The last line is `RESULT {...}`.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter

import lark as lark_library

from benchmarks.lark_equivalence import emitted, parsed
from xpress_struct.constraints.lark import lark
from xpress_struct.errors import XPressError

__all__ = ["random_grammar"]

_LITERALS = ('"a"', '"b"', '"ab"', '"ba"', '"c"', '"ab"i')
_PATTERNS = (
    *("/a+/", "/[ab]+/", "/[abc]+/", "/a|ab/", "/ab|a/", "/a*?b/", '/".*?"/', "/a+(?!b)/", "/a\\b/"),
    *("/(?<!a)b/", "/b(?=c)/", "/[a-c]{1,2}/", "/(a|b)+?c/", "/c+/", "/ab?c?/", "/(?!ab)[abc]+/", "/a(?!c)/"),
    *("/[ab]c/", "/ a/", "/a /", "/\\w+/", "/[^a]/", "/[^ab]+/", "/(ab)+/", "/b$/", "/\\bb/", "/a(?=b|$)/"),
    *("/(?i:a)b/", "/a{2,3}/", "/a{1,2}?/", '/"(\\\\.|[^"])*"/', "/b+ ?/", "/#[^a]*/", "/(aa|a)(b|)/"),
)
_IGNORED = ('" "', "/ +/", "/[ c]+/", "/#[^a]*/", "/b/", "/c+/", "/ *#a?/")
_ALPHABETS = ("abc", "ab ", "abc ", 'ab"', "abA", "ab#", "a# c")
_KINDS = (
    ("lalr", "contextual"),
    ("lalr", "basic"),
    ("earley", "dynamic"),
    ("earley", "basic"),
    ("earley", "dynamic_complete"),
)


def random_grammar(rng: random.Random) -> str:
    """A grammar of two to four terminals and three rules."""
    count = rng.randint(2, 4)
    terminals = [
        f"T{i}{rng.choice(['', '', '', '', '.2', '.-1'])}: {rng.choice(_LITERALS + _PATTERNS)}"
        for i in range(count)
    ]

    def side(depth: int = 0) -> str:
        kind = rng.random()
        if kind < 0.5 or depth > 2:
            return f"T{rng.randrange(count)}"
        if kind < 0.62:
            return f"({side(depth + 1)} | {side(depth + 1)})"
        if kind < 0.74:
            return f"({side(depth + 1)}){rng.choice('?*+')}"
        if kind < 0.9:
            return f"{side(depth + 1)} {side(depth + 1)}"
        return rng.choice(["x", "y", rng.choice(_LITERALS)])

    rules = [f"start: {side()} {side()}", f"x: {side()}", f"y: {side()} {side()} | {side()}"]
    ignored = [f"%ignore {rng.choice(_IGNORED)}" for _ in range(rng.choice([0, 0, 1, 1, 2]))]
    return "\n".join([*rules, *terminals, *ignored]) + "\n"


def main() -> None:
    """Compares until the time is up."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seconds", type=float, default=120)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    end, seed, counts = time.monotonic() + given.seconds, given.seed, Counter[str]()
    while time.monotonic() < end:
        seed += 1
        rng = random.Random(seed)
        grammar, alphabet = random_grammar(rng), rng.choice(_ALPHABETS)
        length = 5 if len(alphabet) < 4 else 4
        for parser, lexer in _KINDS:
            try:
                loaded = lark_library.Lark(grammar, parser=parser, lexer=lexer)
            except lark_library.exceptions.LarkError:
                continue
            try:
                constraint = lark(loaded)
                ours = emitted(constraint, alphabet, length)
            except XPressError as error:
                counts[f"refused: {type(error).__name__}"] += 1
                continue
            theirs = parsed(loaded, alphabet, length)
            counts["compared"] += 1
            counts["gated"] += bool(constraint.checked_after)
            counts["texts"] += len(theirs)
            counts["missing"] += len(theirs - ours)
            if ours - theirs:
                counts["unsound"] += 1
                print(f"seed {seed}, {parser} {lexer}: {sorted(ours - theirs)[:5]}\n{grammar}")
    print("RESULT " + json.dumps({"unsound": 0, **counts}))


if __name__ == "__main__":
    main()
