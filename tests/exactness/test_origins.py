"""Origins: where each emitted token came from, and the text cut by them."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest
import torch

import xpress_struct as xs
from tests.cases.scripts import PROMPT, bytes_and, drafts, right_then_wrong, writer
from tests.drafting.random_drafters import knowing_of, random_drafter
from tests.stubs import END, ScriptedDrafter, constant, prefers, stub_model
from tests.unit.models import tiny, tiny_model
from xpress_struct.constraints.matcher import FreeMatcher
from xpress_struct.drafting.lookup import LookupDrafter
from xpress_struct.drafting.refinement import Plan, refine
from xpress_struct.results import Generation, Stats
from xpress_struct.sampling import SamplingParams

TEXT = '{"name": "Ada Ada Ada", "tags": ["Ada Ada Ada"]}'
PERSON = xs.json_schema(
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["name", "tags"],
        "additionalProperties": False,
    }
)
GUESSES = ("looked_up", "drafted", "repaired")


def check(result: Generation) -> Counter[str]:
    """What holds of every result; returns the counts by origin."""
    counts = Counter(result.origins)
    assert len(result.origins) == len(result.token_ids)
    assert counts["forced"] == result.stats.forced
    assert sum(counts[name] for name in GUESSES) == result.stats.accepted
    pieces = result.pieces()
    assert "".join(text for text, _ in pieces) == result.text
    assert all(text for text, _ in pieces)
    return counts


def test_without_a_drafter() -> None:
    """Tokens are forced, or come from the target's own row."""
    result = writer(TEXT).generate(PROMPT, PERSON)
    counts = check(result)
    assert set(counts) == {"forced", "bonus"}
    assert counts["bonus"] == result.stats.forwards
    assert result.pieces()[:9] == [(letter, "forced") for letter in '{"name": ']


@pytest.mark.parametrize("rule", ["coupled", "token", "block"])
def test_a_drafters_guesses(rule: str) -> None:
    """Guesses that stood are drafted; the first one after them is the target's; forced runs are forced."""
    result = writer(TEXT, right_then_wrong(TEXT, 3)).generate(
        PROMPT, PERSON, acceptance=rule, guard=False, block_length=4
    )
    counts = check(result)
    assert set(counts) == {"forced", "drafted", "bonus"}
    marks = "".join(origin[0] for text, origin in result.pieces())
    # {"name": " is forced; then three letters stand, and the target adds one.
    assert result.text == TEXT
    assert marks.startswith("ffffffffff" + "dddb" + "dddb")


def test_lookup_and_the_grammars_text_are_looked_up() -> None:
    """What lookup copies is looked up, and so is what the grammar spells out in several ways."""
    counts = check(writer(TEXT, LookupDrafter()).generate(PROMPT, PERSON, guard=False))
    assert counts["looked_up"] > 5
    assert not counts["drafted"]
    # The bytes are determined, but "ab" and "a" could both begin them.
    vocabulary = bytes_and(b"ab", b"abc")
    model = stub_model(prefers("xabcabc", width=vocabulary.width), vocabulary, drafts("?"))
    spelled = model.generate(PROMPT, xs.lark('start: /[x]/ "abcabc" /[0-9]/'), guard=False)
    check(spelled)
    assert spelled.text.startswith("xabcabc")
    assert "drafted" not in spelled.origins


def test_several_drafters_say_who_it_was() -> None:
    """In a list of drafters each guess has the origin of its member."""
    known = ScriptedDrafter(lambda output: [*TEXT.encode()][len(output) : len(output) + 2])
    result = writer(TEXT).generate(PROMPT, PERSON, drafter=["lookup", known], guard=False)
    counts = check(result)
    assert counts["looked_up"] and counts["drafted"]


def test_changed_slots() -> None:
    """A slot is changed where its token is not the base's winner: by the bias, or as illegal."""
    base = torch.zeros(4, 257)
    base[range(4), [97, 98, 99, 100]] = 5.0

    def bias(tokens: torch.Tensor) -> torch.Tensor:
        changed = torch.zeros(4, 257)
        changed[1, 120] = 9.0
        return changed

    vocabulary = bytes_and()
    free, greedy = FreeMatcher(vocabulary), SamplingParams()
    options = {"noise": None, "params": greedy, "width": 257}
    plain = refine(base, None, free, plan=Plan("none", 0), **options)
    assert (plain.tokens, plain.changed) == ([97, 98, 99, 100], [])
    for kind in ("parallel", "sequential", "chunked", "low-confidence"):
        refined = refine(base, bias, free, plan=Plan(kind, 3), **options)
        if kind != "low-confidence":
            assert (refined.tokens, refined.changed) == ([97, 120, 99, 100], [1])
    matcher, _ = xs.regex("[a-z]{2}[0-9][a-z]{3}").matcher(vocabulary)
    for given in (None, bias):
        for candidates in (1, 257):
            refined = refine(base, given, matcher, plan=Plan("parallel", 3), candidates=candidates, **options)
            assert refined.changed == [*[1] * (given is not None), 2]
    assert refined.before(2).changed == [1]


@pytest.mark.parametrize("options", [{}, {"temperature": 1.0, "seed": 3}], ids=["greedy", "sampled"])
@pytest.mark.parametrize("rule", ["coupled", "token", "block"])
def test_refined_blocks(rule: str, options: dict) -> None:
    """A block-diffusion drafter's guesses are drafted or repaired, under every rule."""
    model = tiny_model("llama")
    seen: Counter[str] = Counter()
    for drafter in (knowing_of(tiny("llama")), random_drafter()):
        for constraint in (xs.regex("(ab|cd){1,20}"), xs.regex("[a-f]{30}"), None):
            result = model.generate(
                [1, 2],
                constraint,
                drafter=drafter,
                guard=False,
                acceptance=rule,
                max_new_tokens=32,
                **options,
            )
            seen += check(result)
    assert seen["repaired"] and seen["bonus"]
    assert not seen["looked_up"]


def test_closing_at_the_limit() -> None:
    """Tokens that close a text at the limit are told apart, and are as many as it says."""
    result = writer('["' + "a" * 200).generate(
        PROMPT,
        xs.json_schema({"type": "array", "items": {"type": "string"}}),
        max_new_tokens=30,
        on_limit="close",
    )
    counts = check(result)
    assert result.finish_reason == "closed"
    assert result.pieces()[-2:] == [('"', "closed"), ("]", "closed")]
    assert counts["closed"] == 2


@pytest.mark.parametrize("include", [True, False])
def test_a_stop_string_cuts_the_pieces(include: bool) -> None:
    """Pieces end where a stop string cut the text; guesses behind it were accepted, but are not there."""
    result = writer("abcdefgh", drafts("abcdefgh")).generate(
        PROMPT, stop_strings="cd", include_stop_string=include, guard=False, block_length=8
    )
    assert result.finish_reason == "stop_string"
    assert result.text == ("abcd" if include else "ab")
    assert result.pieces() == [(letter, "drafted") for letter in result.text]
    assert result.origins == ("drafted",) * 4
    assert result.stats.accepted == 8


def test_the_budget_cuts_the_origins() -> None:
    """At the token limit there is one origin per token."""
    check(writer(TEXT, right_then_wrong(TEXT, 5)).generate(PROMPT, PERSON, max_new_tokens=17, guard=False))


def test_characters_of_several_tokens() -> None:
    """A character belongs to the token that completes it, broken bytes to the token that shows it."""
    model = writer("a😀é")
    result = model.generate(PROMPT)
    check(result)
    assert [text for text, _ in result.pieces()] == ["a", "😀", "é"]
    cut = model.generate(PROMPT, max_new_tokens=3)
    check(cut)
    assert cut.pieces() == [("a", "bonus")]
    broken = stub_model(lambda prefix: [10.0 * (i == [0xF0, 0x41, END][len(prefix) - 1]) for i in range(257)])
    pieces = broken.generate(PROMPT).pieces()
    assert pieces == [("\ufffdA", "bonus")]


def test_the_prefix_is_a_piece() -> None:
    """A prefix stands first, and has no token."""
    result = writer("[1, 2]").generate(PROMPT, xs.json_schema(list[int]), prefix="[")
    check(result)
    assert result.text == "[1, 2]"
    assert result.pieces()[0] == ("[", "prefix")
    assert "prefix" not in result.origins


def test_a_text_drawn_again_has_its_own() -> None:
    """After a failed check the origins are those of the text that is returned."""
    checked = xs.json_schema(
        {
            "type": "array",
            "items": {"enum": [1, 2]},
            "minItems": 3,
            "maxItems": 3,
            "contains": {"const": 2},
            "minContains": 2,
        }
    )
    result = stub_model(constant({ord("1"): 0.5})).generate(PROMPT, checked, max_retries=30, seed=1)
    assert result.stats.retries
    assert len(result.origins) == len(result.token_ids)
    assert "".join(text for text, _ in result.pieces()) == result.text
    assert result.origins.count("forced") < result.stats.forced


@pytest.mark.parametrize("constraint", [None, PERSON, xs.regex(r"\{.*"), xs.json_schema(dict)])
def test_a_generation_can_be_pickled(constraint: xs.Constraint | None) -> None:
    """A pickled generation is the same, small, and keeps its value, its pieces and how it is shown."""
    result = writer(TEXT, right_then_wrong(TEXT, 3)).generate(PROMPT, constraint)
    data = pickle.dumps(result)
    again = pickle.loads(data)
    assert (again.value, again.pieces()) == (result.value, result.pieces())
    assert again._repr_html_() == result._repr_html_()
    assert len(data) < 4000


def test_a_generation_made_by_hand() -> None:
    """Without tokens the whole text is given."""
    made = Generation("ab", (), "stop", Stats())
    assert made.pieces() == [("ab", "prefix")]
