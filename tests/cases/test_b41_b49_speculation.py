"""B41, B43, B48 and B49: drafts against grammars, ends inside a block, n-grams, several requests."""

from __future__ import annotations

import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import xpress_struct as xs
from tests.cases.scripts import PROMPT, drafts, noisy, right_then_wrong
from tests.stubs import END, ScriptedDrafter, prefers, stub_model
from xpress_struct.drafting.lookup import LookupDrafter

RULES = ["coupled", "token", "block"]
ANSWER = '{"name": "Ann", "ok": true}'
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 9}, "ok": {"type": "boolean"}},
    "required": ["name", "ok"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("guess", ["```json\n", "\n\n", "{{", "</think>", "\x00", "Sure! {"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_b41_illegal_drafts_change_nothing(
    guess: str, temperature: float, caplog: pytest.LogCaptureFixture
) -> None:
    """A drafter that offers what the grammar forbids costs its guesses and nothing else."""
    constraint = xs.json_schema({**SCHEMA, "properties": {"name": {"enum": ["Ann", "Bo"]}, "ok": {}}})
    options = {"temperature": temperature, "seed": 2, "max_new_tokens": 300}
    logits = prefers('{"name": "Ann", "ok": true}') if temperature == 0 else noisy(4)
    with caplog.at_level(logging.WARNING):
        plain = stub_model(logits).generate(PROMPT, constraint, **options)
        drafted = stub_model(logits, drafter=drafts(guess)).generate(PROMPT, constraint, **options)
    assert drafted.token_ids == plain.token_ids
    assert drafted.finish_reason == plain.finish_reason
    if temperature == 0:
        assert drafted.stats.accepted == 0
        assert drafted.value == json.loads(ANSWER)
    assert not caplog.records


@pytest.mark.parametrize("acceptance", RULES)
@pytest.mark.parametrize("guess", ["```json\n", '{{"name', "true"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_b41_every_rule_stays_inside_the_grammar(acceptance: str, guess: str, temperature: float) -> None:
    """Whatever the rule, illegal drafts never reach the text."""
    constraint = xs.json_schema(SCHEMA)
    model = stub_model(noisy(6), drafter=drafts(guess))
    for seed in range(8):
        result = model.generate(
            PROMPT,
            constraint,
            temperature=temperature,
            seed=seed,
            acceptance=acceptance,
            max_new_tokens=200,
        )
        assert constraint.accepts(result.text)
        assert list(result.value) == ["name", "ok"]


@pytest.mark.parametrize("acceptance", RULES)
@pytest.mark.parametrize("temperature", [0.0, 0.5])
@pytest.mark.parametrize("after", [[120, 121], [END, END], [123, 34], []])
@pytest.mark.parametrize("known", [1, 5, 40])
def test_b43_nothing_follows_an_end_token_in_a_block(
    acceptance: str, temperature: float, after: list[int], known: int
) -> None:
    """A block `... } END x y` stops at END, and what stands behind it is not accepted."""
    whole = [*ANSWER.encode(), END]

    def guess(output: tuple[int, ...]) -> list[int]:
        ahead = whole[len(output) : len(output) + known]
        return [*ahead, *after] if ahead[-1:] == [END] else ahead

    def logits(prefix: tuple[int, ...]) -> list[float]:
        return [30.0 * score / 10 for score in prefers(ANSWER)(prefix)]

    model = stub_model(logits, drafter=ScriptedDrafter(guess))
    constraint = xs.json_schema(SCHEMA)
    for _ in range(2):  # and everything is reusable afterwards
        result = model.generate(
            PROMPT,
            constraint,
            temperature=temperature,
            seed=1,
            acceptance=acceptance,
            block_length=48,
        )
        assert result.token_ids == tuple(whole)
        assert (result.finish_reason, result.text) == ("stop", ANSWER)


@pytest.mark.parametrize("acceptance", RULES)
@pytest.mark.parametrize("constraint", [None, xs.regex("[a-z]*")])
@pytest.mark.parametrize("at", [0, 1, 3])
def test_b43_an_end_token_in_the_middle_of_free_text_ends_it(
    acceptance: str, constraint: object, at: int
) -> None:
    """Where the text may end anywhere, a drafted END that the target chooses ends it."""
    text = "abcdefgh"[:at]
    guess = [*text.encode(), END, *b"xyz"]
    model = stub_model(prefers(text), drafter=ScriptedDrafter(lambda output: guess[len(output) :]))
    result = model.generate(PROMPT, constraint, acceptance=acceptance)
    assert result.token_ids == (*text.encode(), END)
    assert (result.finish_reason, result.text) == ("stop", text)


@pytest.mark.parametrize("acceptance", RULES)
@pytest.mark.parametrize("budget", range(1, 12))
def test_b43_the_budget_inside_a_block_is_kept(acceptance: str, budget: int) -> None:
    """A block that reaches past the budget is cut at it."""
    text = "abcdefghijklmnop"
    model = stub_model(prefers(text), drafter=right_then_wrong(text, 7))
    result = model.generate(PROMPT, xs.regex("[a-z]+"), max_new_tokens=budget, acceptance=acceptance)
    assert result.text == text[:budget]
    assert result.finish_reason == "length"


NGRAMS = 'Settings: {"rollback": "true", "retry": "true"} again "rollback": "true", "rollback": true'


@pytest.mark.parametrize("prompt", [NGRAMS, NGRAMS * 3, '"rollback": "true","rollback": "true",'])
@pytest.mark.parametrize("drafter", [LookupDrafter(), LookupDrafter(shortest=1), "lookup"])
@pytest.mark.parametrize("kind", ["boolean", "string", "integer"])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_b48_lookup_drafts_duplicate_nothing(
    prompt: str, drafter: object, kind: str, temperature: float
) -> None:
    """Copies from a prompt with near misses give the ids of plain decoding, valid and typed."""
    ids = list(prompt.encode())
    text = {"boolean": "true", "string": '"true"', "integer": "7"}[kind]
    schema = {
        "type": "object",
        "properties": {"rollback": {"type": kind}, "retry": {"type": kind}},
        "required": ["rollback", "retry"],
        "additionalProperties": False,
    }
    wanted = f'{{"rollback": {text}, "retry": {text}}}'
    model = stub_model(prefers(wanted, len(ids)), drafter=drafter)
    options = {"temperature": temperature, "seed": 1}
    plain = model.generate(ids, xs.json_schema(schema), drafter=None, **options)
    drafted = model.generate(ids, xs.json_schema(schema), **options)
    assert drafted.token_ids == plain.token_ids
    assert drafted.stats.drafter == "lookup"
    assert set(map(type, drafted.value.values())) == {type(json.loads(text))}


def test_b48_lookup_saves_forwards_where_text_is_copied() -> None:
    """Text that stands in the prompt is accepted in long runs."""
    text = "the quick brown fox jumps over the lazy dog and runs away"
    ids = list(text.encode())
    model = stub_model(prefers(text, len(ids)), drafter="lookup")
    result = model.generate(ids, xs.regex("[a-z ]+"))
    assert result.text == text
    assert result.stats.forwards < len(text) / 4


COMPLETES = ['"ok": true}', ": true}", "true}", "}"]


@pytest.mark.parametrize("acceptance", RULES)
@pytest.mark.parametrize("tail", COMPLETES)
def test_b49_a_grammar_that_completes_inside_a_block_ends(acceptance: str, tail: str) -> None:
    """The grammar's own end stops the request, with more draft behind it."""
    guess = ANSWER + "}}}}}}"
    start = len(ANSWER) - len(tail)

    def propose(output: tuple[int, ...]) -> list[int]:
        return list(guess.encode()[len(output) :]) if len(output) >= start else []

    model = stub_model(prefers(ANSWER + "}}}}}}"), drafter=ScriptedDrafter(propose))
    result = model.generate(PROMPT, xs.json_schema(SCHEMA), acceptance=acceptance, block_length=32)
    assert (result.finish_reason, result.text) == ("stop", ANSWER)
    assert result.value == json.loads(ANSWER)


@pytest.mark.parametrize("acceptance", RULES)
def test_b49_four_requests_at_once_do_not_touch_each_other(acceptance: str) -> None:
    """Four concurrent speculative requests, one cut and one refused, all end as when alone."""
    model = stub_model(noisy(3), drafter=drafts('"ok": true}'))
    constraint = xs.json_schema(SCHEMA)
    options = {"temperature": 1.0, "acceptance": acceptance, "max_new_tokens": 200}
    alone = [model.generate([65, i], constraint, seed=i, **options) for i in range(4)]
    gate = threading.Barrier(4)

    def run(index: int) -> object:
        gate.wait()
        return [model.generate([65, index], constraint, seed=index, **options).token_ids for _ in range(5)]

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(run, range(4)))
    assert together == [[result.token_ids] * 5 for result in alone]


@pytest.mark.parametrize("ends", ["raises", "cancelled", "timeout"])
def test_b49_a_request_that_fails_leaves_the_others_alone(ends: str) -> None:
    """A drafter that raises, a cancel or a timeout hits its own request only."""
    model, constraint = stub_model(noisy(3)), xs.json_schema(SCHEMA)
    alone = model.generate([65], constraint).token_ids

    def broken(output: tuple[int, ...]) -> list[int]:
        raise ValueError("drafter")

    cancelled = threading.Event()
    cancelled.set()

    def run(index: int) -> object:
        if index % 2:
            return model.generate([65], constraint, drafter=drafts("tru")).token_ids
        if ends == "raises":
            with pytest.raises(ValueError, match="drafter"):
                model.generate([65], constraint, drafter=ScriptedDrafter(broken))
            return None
        option = {"cancel": cancelled} if ends == "cancelled" else {"timeout": 1e-9}
        assert model.generate([65], constraint, **option).finish_reason == ends
        return None

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(run, range(12)))
    assert results == [None, alone] * 6
