"""Keyword arguments: names, ranges, agreement."""

from __future__ import annotations

import math
import threading

import pytest

import xpress_struct as xs
from tests.cases.scripts import PROMPT, noisy, writer
from tests.stubs import ScriptedDrafter, constant, label, stub_model
from xpress_struct.errors import ArgumentError, UnknownArgumentError, XPressError
from xpress_struct.options import GenerateOptions

MODEL = stub_model(noisy(1))
CALLS = {
    "generate": MODEL.generate,
    "stream": MODEL.stream,
    "generate_many": lambda prompt, c, **o: MODEL.generate_many([prompt], c, **o),
    "generate_json": lambda prompt, c, **o: MODEL.generate_json(prompt, c, **o),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("temprature", "temperature"),
        ("max_tokens", "max_new_tokens"),
        ("max_length", "max_new_tokens"),
        ("max_new_token", "max_new_tokens"),
        ("topp", "top_p"),
        ("stop", "stop_strings"),
        ("seeds", "seed"),
        ("max_time", "timeout"),
        ("assistant_model", "drafter"),
        ("logprob", "logprobs"),
    ],
)
def test_an_unknown_argument_names_the_nearest_known_one(call: str, name: str, near: str) -> None:
    """A name that is not known is a TypeError of ours that names the nearest known one."""
    with pytest.raises(UnknownArgumentError, match=f"{name}.*{near}") as caught:
        CALLS[call](PROMPT, xs.json_schema({"type": "null"}), **{name: 1})
    assert isinstance(caught.value, TypeError)


def test_a_name_like_no_other_lists_the_known_ones() -> None:
    """A name without a near one lists what there is."""
    with pytest.raises(UnknownArgumentError, match=r"Known: .*temperature"):
        MODEL.generate(PROMPT, zzzzqqqq=1)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -0.1},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"top_k": -1},
        {"top_k": 1.5},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"top_p": math.nan},
        {"min_p": -0.1},
        {"min_p": 1.5},
        {"max_new_tokens": 0},
        {"max_new_tokens": -5},
        {"max_new_tokens": 2.5},
        {"max_new_tokens": True},
        {"max_new_tokens": None},
        {"block_length": 0},
        {"logprobs": -1},
        {"logprobs": True},
        {"timeout": 0},
        {"timeout": -1.0},
        {"stop_strings": ""},
        {"stop_strings": ["a", ""]},
        {"stop_strings": [1]},
        {"acceptance": "greedy"},
        {"drafter": "eagle"},
        {"drafter": object()},
        {"max_retries": -1},
    ],
    ids=label,
)
def test_a_value_out_of_range_is_refused_by_name(options: dict) -> None:
    """A value that cannot be honoured is a ValueError of ours that names its argument."""
    (name,) = options
    with pytest.raises(ArgumentError, match=name) as caught:
        MODEL.generate(PROMPT, **options)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": "hot"},
        {"temperature": None},
        {"top_p": "x"},
        {"timeout": "soon"},
        {"seed": "abc"},
        {"seed": 1.5},
        {"prefix": 7},
        {"prefix": b"x"},
        {"stop_strings": 7},
        {"cancel": True},
        {"chat_template_kwargs": "x"},
    ],
    ids=label,
)
def test_a_value_of_another_type_is_refused_by_name(options: dict) -> None:
    """A value of a wrong type is refused by name, not by what happens to break later."""
    (name,) = options
    with pytest.raises(XPressError, match=name):
        stub_model(constant({})).generate(PROMPT, max_new_tokens=2, **options)


@pytest.mark.parametrize("temperature", [0.0, 0.5])
def test_do_sample_must_agree(temperature: float) -> None:
    """do_sample is taken when it agrees with the temperature and refused when it does not."""
    sampled = temperature > 0
    options = {"temperature": temperature, "max_new_tokens": 2, "seed": 1}
    with_it = MODEL.generate(PROMPT, do_sample=sampled, **options)
    assert with_it.token_ids == MODEL.generate(PROMPT, **options).token_ids
    with pytest.raises(ArgumentError, match="do_sample"):
        MODEL.generate(PROMPT, do_sample=not sampled, **options)


@pytest.mark.parametrize("seed", [0, 1, 2**63, -1, 2**200])
def test_any_whole_number_is_a_seed(seed: int) -> None:
    """Seeds of any size repeat themselves."""
    options = {"temperature": 1.0, "seed": seed, "max_new_tokens": 8}
    assert MODEL.generate(PROMPT, **options).token_ids == MODEL.generate(PROMPT, **options).token_ids


def test_num_samples_needs_sampling() -> None:
    """Several greedy samples are refused, and so is none."""
    with pytest.raises(ArgumentError, match="num_samples"):
        MODEL.generate_many([PROMPT], num_samples=2)
    with pytest.raises(ArgumentError, match="num_samples"):
        MODEL.generate_many([PROMPT], num_samples=0, temperature=1.0)


def test_several_samples_stand_side_by_side_and_differ() -> None:
    """num_samples generations per prompt, in order, each with noise of its own."""
    options = {"temperature": 1.5, "seed": 3, "max_new_tokens": 12}
    constraint = xs.regex("[a-z]{8}")
    prompts = [[65], [66, 67]]
    results = MODEL.generate_many(prompts, constraint, num_samples=4, **options)
    assert [r.stats.prompt_tokens for r in results] == [1] * 4 + [2] * 4
    assert len({r.text for r in results[:4]}) == 4
    again = MODEL.generate_many(prompts, constraint, num_samples=4, **options)
    assert [r.text for r in again] == [r.text for r in results]
    assert {r.stats.seed for r in results} == {3}


@pytest.mark.parametrize("count", [0, 1, 3])
def test_generate_many_greedy_is_generate(count: int) -> None:
    """Without sampling, generate_many gives what generate gives for each prompt."""
    prompts = [[65], [66], [67]][:count]
    constraint = xs.regex("[a-z]{8}")
    many = MODEL.generate_many(prompts, constraint)
    assert [r.text for r in many] == [MODEL.generate(p, constraint).text for p in prompts]


@pytest.mark.parametrize("block_length", [1, 2, 7, 64])
def test_block_length_bounds_the_guesses(block_length: int) -> None:
    """No round checks more guesses than block_length."""
    text = "abcdefghijklmnopqrstuvwxyz" * 4
    drafter = ScriptedDrafter(lambda output: list(text.encode()[len(output) :]))
    result = writer(text, drafter).generate(PROMPT, block_length=block_length)
    assert result.text == text
    assert len(result.stats.proposed_by_slot) <= block_length
    assert result.stats.forwards >= len(text) / (block_length + 1)


def test_a_constraint_of_another_kind_is_refused() -> None:
    """A schema or a pattern in the place of a constraint is refused with how to make one."""
    for wrong in ({"type": "integer"}, "[a-z]+", int, ["a", "b"]):
        with pytest.raises(ArgumentError, match=r"xs\.json_schema"):
            MODEL.generate(PROMPT, wrong)


def test_the_typed_dict_lists_every_option() -> None:
    """The keyword arguments that type checkers see are those that Options knows."""
    from dataclasses import fields

    assert [*GenerateOptions.__annotations__] == [field.name for field in fields(xs.Options)]


@pytest.mark.parametrize("constraint", [None, xs.regex("[a-z]{400}")])
def test_a_timeout_cuts_the_generation(constraint: object) -> None:
    """After the timeout no round starts; the partial text is there and the value is not."""
    slow = noisy(2)

    def logits(prefix: tuple[int, ...]) -> list[float]:
        threading.Event().wait(0.01)
        return slow(prefix)

    result = stub_model(logits).generate(PROMPT, constraint, timeout=0.1, max_new_tokens=400)
    assert result.finish_reason == "timeout"
    assert 0 < len(result.token_ids) < 100
    assert result.stats.total_s < 1
    with pytest.raises(xs.XPressError, match="timeout"):
        _ = result.value


def test_an_event_cancels_from_another_thread() -> None:
    """Setting the event ends the generation before its next round."""
    stop = threading.Event()
    slow = noisy(2)

    def logits(prefix: tuple[int, ...]) -> list[float]:
        if len(prefix) == 6:
            stop.set()
        return slow(prefix)

    result = stub_model(logits).generate(PROMPT, xs.regex("[a-z]{50}"), cancel=stop)
    assert result.finish_reason == "cancelled"
    assert len(result.token_ids) == 6
    with pytest.raises(xs.XPressError, match="cancelled"):
        _ = result.value


def test_an_event_set_before_runs_nothing() -> None:
    """With the event already set the model is not asked."""
    stop = threading.Event()
    stop.set()
    model = stub_model(noisy(2))
    assert model.generate(PROMPT, cancel=stop).finish_reason == "cancelled"
    assert model.target.seen == []
