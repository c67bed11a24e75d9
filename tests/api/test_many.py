"""generate_many with constraints of each prompt's own."""

from __future__ import annotations

import pytest

import xpress_struct as xs
from tests.cases.scripts import noisy
from tests.stubs import stub_model
from tests.unit.models import tiny_model
from xpress_struct.errors import ArgumentError

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}, "required": ["n"]}


@pytest.mark.parametrize("kind", ["scripted", "llama"])
def test_each_prompt_has_its_own(kind: str) -> None:
    """Case B37: each row is valid under its own constraint, and the free one is that of free decoding."""
    model = stub_model(noisy(3)) if kind == "scripted" else tiny_model("llama")
    prompts = [[1], [2, 3], [4, 5, 6], [7]]
    constraints = [xs.regex("aa"), xs.regex("b{8}"), None, xs.json_schema(SCHEMA)]
    found = model.generate_many(prompts, constraints, max_new_tokens=24, on_limit="close")
    assert [each.text for each in found[:2]] == ["aa", "bbbbbbbb"]
    assert found[2].token_ids == model.generate([4, 5, 6], max_new_tokens=24, on_limit="close").token_ids
    assert isinstance(found[3].value["n"], int)


def test_samples_stand_side_by_side() -> None:
    """Samples of a prompt share its constraint; every row has noise of its own under one seed."""
    model = stub_model(noisy(4))
    letters, digits = xs.regex("[a-z]{12}"), xs.regex("[0-9]{12}")

    def ask(constraints: object) -> list[str]:
        found = model.generate_many([[1], [1]], constraints, num_samples=2, temperature=1.0, seed=7)
        return [each.text for each in found]

    texts = ask((letters, digits))
    assert [text.isalpha() for text in texts] == [True, True, False, False]
    assert len({*ask(letters)}) == 4
    assert texts[:2] == ask(letters)[:2]
    assert texts[2:] == ask([digits, digits])[2:]


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ([xs.regex("a")], "1 constraints for 2 prompts"),
        ([None] * 3, "3 constraints for 2 prompts"),
        ([xs.regex("a"), "b"], "constraint is 'b'"),
        ("ab", "constraint is 'ab'"),
    ],
)
def test_what_does_not_fit_is_refused(constraints: object, message: str) -> None:
    """A list of another length, or of other things, is refused before anything is generated."""
    model = stub_model(noisy(1))
    with pytest.raises(ArgumentError, match=message):
        model.generate_many([[1], [2]], constraints)
    assert model.target.seen == []


def test_the_module_function_takes_a_list() -> None:
    """xs.generate_many hands the list on."""
    found = xs.generate_many([[1], [2]], [xs.regex("a"), xs.regex("b")], model=stub_model(noisy(1)))
    assert [each.text for each in found] == ["a", "b"]
