"""Where only lark can tell whether a text may end."""

from __future__ import annotations

import pytest

import xpress_struct as xs
from tests.cases.scripts import PROMPT, noisy
from tests.stubs import stub_model
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import OutputValidationError

BYTES = Vocabulary.from_tokens([bytes([i]) for i in range(256)] + [b""], end_ids=[256])

# lark's LALR parser shifts a second "a" where it could also have ended the list before it.
SHIFTED = 'start: list "a"\nlist: "a"*\n'
BEHIND = 'start: ("a" | "b") /(?<!a)c+/'


def test_the_end_is_legal_only_where_lark_parses() -> None:
    """An end token is barred after a text that lark refuses, although the grammar would allow it."""
    constraint = xs.lark(BEHIND)
    assert [item.keyword for item in constraint.checked_after] == ["lark"]
    for text, ends in (("bc", True), ("ac", False), ("bcc", True), ("acc", False)):
        matcher, _ = constraint.matcher(BYTES)
        matcher.commit(list(text.encode()))
        assert matcher.accepting is ends
        assert matcher.legal(256) is ends
        assert bool(matcher.mask()[32] & 1) is ends
        assert matcher.fork().legal(256) is ends


def test_a_prefix_is_part_of_what_lark_parses() -> None:
    """Text that was given before counts."""
    matcher, _ = xs.lark(BEHIND).matcher(BYTES)
    assert matcher.consume_text("b") == 1
    matcher.commit([ord("c")])
    assert matcher.accepting
    assert matcher.fork().accepting


def test_conflicts_of_lalr_are_gated() -> None:
    """Where lark's parser shifts and so takes less than the rules say, lark is asked."""
    constraint = xs.lark(SHIFTED, parser="lalr")
    assert "shifts" in constraint.report.gated[0]
    assert not xs.lark(SHIFTED).checked_after


def test_what_is_proved_is_not_checked_after() -> None:
    """Keywords and names need no gate, and the report says how they were told apart."""
    grammar = 'start: "if" N | N "="\nN: /[a-z]+/\n%ignore " "'
    constraint = xs.lark(grammar, parser="lalr")
    assert constraint.checked_after == ()
    assert constraint.report.proved == ("N without the texts of IF",)
    with pytest.raises(OutputValidationError, match="lark refuses"):
        constraint.parse("if=")


def test_a_text_that_lark_refuses_is_drawn_again_or_an_error() -> None:
    """What is delivered parses: a text that cannot end well is drawn again, and in the end an error."""
    constraint = xs.lark('start: ("a" | "b") /(?<!a)c{1,3}/')
    delivered, refused = [], []
    for seed in range(12):
        model = stub_model(noisy(seed))
        try:
            result = model.generate(PROMPT, constraint, max_new_tokens=20, temperature=1.0, seed=seed)
            delivered.append(result.value)
        except OutputValidationError as error:
            refused.append(error.text)
    assert delivered and all(text.startswith("b") for text in delivered)
    assert refused and all(text.startswith("a") for text in refused)
