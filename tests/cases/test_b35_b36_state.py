"""B35, B36, B38 and B40: reuse, threads, memory, and the count of forced tokens."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import xpress_struct as xs
from tests.cases.scripts import drafts, noisy
from tests.stubs import byte_vocabulary, stub_model
from xpress_struct.results import Generation

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 6},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["red", "green"]}, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
MAKERS = {
    "json": lambda: xs.json_schema(PERSON),
    "regex": lambda: xs.regex("[a-z]{2,8}( [a-z]{1,5})?"),
    "choice": lambda: xs.choice(["red", "green", "blue"]),
    "lark": lambda: xs.lark('start: item ("," item)~0..3\nitem: /[a-c]{1,3}/'),
}


def same(one: Generation, two: Generation) -> bool:
    return (one.token_ids, one.text, one.finish_reason) == (
        two.token_ids,
        two.text,
        two.finish_reason,
    )


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_b35_a_compiled_constraint_serves_call_after_call(kind: str, temperature: float) -> None:
    """One constraint under prompts of 1, 9 and 3 tokens gives what fresh ones give."""
    model = stub_model(noisy(7), drafter=drafts('{"name'))
    shared = MAKERS[kind]()
    for prompt in ([65], [66] * 9, [1, 2, 3], [65]):
        options = {"temperature": temperature, "seed": 5, "max_new_tokens": 200}
        again = model.generate(prompt, shared, **options)
        xs.clear_cache()
        fresh = stub_model(noisy(7)).generate(prompt, MAKERS[kind](), **options)
        assert same(again, fresh)
        assert again.finish_reason == "stop"
        assert again.value is not None


def test_b35_a_failed_or_cut_call_leaves_no_trace() -> None:
    """A call that was cut or stopped half-way does not change the next one."""
    model, constraint = stub_model(noisy(8)), xs.json_schema(PERSON)
    first = model.generate([65], constraint)
    model.generate([65], constraint, max_new_tokens=7)
    with model.stream([65], constraint) as stream:
        next(iter(stream))
    assert same(first, model.generate([65], constraint))


@pytest.mark.parametrize("kind", MAKERS)
def test_b36_threads_share_a_constraint(kind: str) -> None:
    """Eight threads with twenty generations each get what one thread gets with the same seeds."""
    model, shared = stub_model(noisy(9), drafter=drafts("re")), MAKERS[kind]()

    def run(seed: int) -> Generation:
        return model.generate([65], shared, temperature=1.0, seed=seed, max_new_tokens=120)

    serial = [run(seed) for seed in range(40)]
    xs.clear_cache()
    with ThreadPoolExecutor(8) as pool:
        parallel = list(pool.map(run, [*range(40)] * 4))
    assert len(parallel) == 160
    assert all(same(parallel[i], serial[i % 40]) for i in range(160))
    assert all(result.value is not None for result in parallel)


def test_b36_threads_compile_the_same_constraint_at_once() -> None:
    """Making and compiling equal constraints in eight threads is safe."""
    model = stub_model(noisy(9))
    alone = model.generate([65], MAKERS["json"](), temperature=1.0, seed=3)
    xs.clear_cache()
    with ThreadPoolExecutor(8) as pool:
        every = list(
            pool.map(lambda _: model.generate([65], MAKERS["json"](), temperature=1.0, seed=3), range(24))
        )
    assert all(same(alone, result) for result in every)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_b38_many_schemas_take_bounded_memory() -> None:
    """Two thousand different schemas grow the process by a bounded amount, freed on request."""
    vocabulary = byte_vocabulary()

    def compile_some(start: int, stop: int) -> int:
        for index in range(start, stop):
            schema = {
                "type": "object",
                "properties": {f"field_{index}": {"type": "string", "maxLength": index % 40 + 1}},
                "required": [f"field_{index}"],
                "additionalProperties": False,
            }
            constraint = xs.json_schema(schema)
            matcher, _ = constraint.matcher(vocabulary)
            matcher.mask()
        gc.collect()
        return resident_bytes()

    xs.clear_cache()
    start = compile_some(0, 100)
    grown = compile_some(100, 2100) - start
    assert grown < 300 << 20
    xs.clear_cache()
    again = compile_some(2100, 2600)
    assert again - start - grown < 60 << 20


def test_b38_clearing_the_cache_keeps_constraints_usable() -> None:
    """After clear_cache a constraint compiles again by itself and gives the same."""
    model, constraint = stub_model(noisy(2)), MAKERS["json"]()
    before = model.generate([65], constraint)
    assert before.stats.compile_s > 0
    assert model.generate([65], constraint).stats.compile_s == 0
    xs.clear_cache()
    after = model.generate([65], constraint)
    assert after.stats.compile_s > 0
    assert same(before, after)


@pytest.mark.parametrize("budget", [1, 10, 20, 21, 30])
@pytest.mark.parametrize("drafted", [False, True])
def test_b40_forced_tokens_count_against_the_budget(budget: int, drafted: bool) -> None:
    """Twenty forced tokens do not slip past max_new_tokens, and usage counts them."""
    model = stub_model(noisy(1), drafter=drafts("x" * 20) if drafted else None)
    result = model.generate([65], xs.regex("x{20}[a-z]{4}"), max_new_tokens=budget)
    assert len(result.token_ids) <= budget
    assert result.stats.output_tokens == len(result.token_ids)
    assert result.stats.forced == min(budget, 20) + (budget > 24)
    assert result.text.startswith("x" * min(budget, 20))
    assert result.finish_reason == ("stop" if budget >= 24 else "length")


@pytest.mark.parametrize("prefix", ["", "xxxx", "x" * 20])
def test_b40_the_prefix_is_not_output(prefix: str) -> None:
    """Text given as prefix costs no output tokens."""
    model = stub_model(noisy(1))
    result = model.generate([65], xs.regex("x{20}[a-z]{4}"), prefix=prefix, max_new_tokens=60)
    assert len(result.token_ids) == 25 - len(prefix)
    assert len(result.text) == 24
