"""Every text up to a length of small grammars: what can be emitted, lark parses."""

from __future__ import annotations

import pytest

from benchmarks.lark_equivalence import compare
from benchmarks.lark_grammars import BLOCKS, GRAMMARS, Small

CASES = [(small, *pair) for small in (*GRAMMARS, *BLOCKS) for pair in small.parsers]
IDS = [f"{small.name}-{parser}-{lexer}" for small, parser, lexer in CASES]

# What lark takes and the masks leave out: a lexer that never goes back, or one language for all places.
LEFT_OUT = {
    "string and name",
    "clash with what is ignored",
    "look-ahead that decides",
    "keyword and name",
    "keyword, case ignored",
    "keyword, case ignored, name not",
    "priority, keyword first",
    *(small.name for small in BLOCKS),
}
GATED = {
    "flag m",
    "look-behind",
    "end anchor",
    "a name that is ignored",
    "two regexes",
    "literal inside a regex",
}


@pytest.mark.parametrize(("small", "parser", "lexer"), CASES, ids=IDS)
def test_what_is_emitted_is_parsed(small: Small, parser: str, lexer: str) -> None:
    """lark refuses no text that the masks allow; none of lark's is left out but where it is listed."""
    ours, theirs, constraint = compare(small, parser, lexer, length=5)
    assert not ours - theirs
    assert small.name in LEFT_OUT or ours == theirs
    assert small.name in GATED or not constraint.checked_after
