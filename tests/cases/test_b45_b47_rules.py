"""B45 to B47: drafts and the distributions they were drawn from, where no statistics are needed."""

from __future__ import annotations

import pytest
import torch

import xpress_struct as xs
from tests.cases.scripts import noisy
from tests.stubs import ScriptedDrafter, stub_model
from xpress_struct.constraints.vocabulary import Vocabulary

SIX = Vocabulary.from_tokens([b"a", b"b", b"c", b"d", b"e", b""], end_ids=[5])
ONE_OF = xs.regex("[a-e]{6}")


def rows(*weights: list[float]) -> torch.Tensor:
    table = torch.tensor(weights, dtype=torch.float64)
    return table / table.sum(-1, keepdim=True)


def drawn(tokens: list[int], q: torch.Tensor) -> ScriptedDrafter:
    return ScriptedDrafter(lambda output: (list(tokens), q))


def masked(length: int) -> torch.Tensor:
    """softmax of flat logits over a..e, as the target's masked distribution."""
    return rows(*[[1.0] * 5 + [0.0]] * length)


Q = {
    "p equals q": ([0, 1, 2], masked(3)),
    "disjoint supports": ([3, 3, 3], rows(*[[0, 0, 0, 1, 0, 0.0]] * 3)),
    "all mass illegal": ([5], rows([0, 0, 0, 0, 0, 1.0])),
    "unmasked": ([0, 1, 5], rows(*[[1.0] * 6] * 3)),
    "one-hot": ([0, 0, 0], None),
    "tiny q": ([0, 1, 2], rows(*[[1e-300, 1e-300, 1e-300, 1, 1, 1.0]] * 3)),
}


@pytest.mark.parametrize("name", Q)
@pytest.mark.parametrize("acceptance", ["coupled", "token", "block"])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("budget", [1, 2, 6, 20])
@pytest.mark.parametrize("cut", [{}, {"top_k": 3}, {"top_p": 0.5}, {"min_p": 0.9}])
def test_b46_degenerate_rows_give_no_nan(
    name: str, acceptance: str, temperature: float, budget: int, cut: dict
) -> None:
    """Equal, disjoint and illegal draft distributions give legal tokens, up to the budget."""
    tokens, q = Q[name]
    model = stub_model(noisy(1, 6), SIX, drawn(tokens, q) if q is not None else None)
    if q is None:
        model = stub_model(noisy(1, 6), SIX, ScriptedDrafter(lambda output: tokens))
    for seed in range(4):
        result = model.generate(
            [0],
            ONE_OF,
            acceptance=acceptance,
            temperature=temperature,
            max_new_tokens=budget,
            seed=seed,
            **cut,
        )
        assert len(result.token_ids) == min(budget, 7)
        assert all(token < 5 for token in result.token_ids[:6])
        assert len(result.text) == min(budget, 6)


@pytest.mark.parametrize("acceptance", ["token", "block"])
def test_b46_equal_distributions_accept_everything(acceptance: str) -> None:
    """Where p equals q, every draft token stands."""
    model = stub_model(lambda p: [0.0] * 6, SIX, drawn([0, 1, 2], masked(3)))
    result = model.generate([0], xs.regex("[a-e]{8}"), acceptance=acceptance, temperature=1.0, seed=0)
    assert result.stats.accepted == result.stats.proposed > 0


@pytest.mark.parametrize("acceptance", ["token", "block"])
def test_b46_a_token_that_the_target_cannot_say_never_stands(acceptance: str) -> None:
    """Where the target gives a drafted token no probability, it is refused and redrawn."""
    row = [0.0, 0.0, 0.0, -1e9, 0.0, 0.0]
    model = stub_model(lambda p: row, SIX, drawn([3] * 3, rows(*[[0, 0, 0, 1, 0, 0.0]] * 3)))
    for seed in range(20):
        result = model.generate([0], ONE_OF, acceptance=acceptance, temperature=1.0, seed=seed, guard=False)
        assert 3 not in result.token_ids
        assert result.stats.accepted == 0


@pytest.mark.parametrize("constraint", [None, ONE_OF, xs.regex("[ab]*")])
@pytest.mark.parametrize("block_length", [1, 2, 4, 16])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("acceptance", ["coupled", "token", "block"])
def test_b47_sampled_drafts_with_and_without_constraint(
    constraint: object, block_length: int, count: int, acceptance: str
) -> None:
    """Sampling works with and without a constraint, in blocks of any size, for several prompts."""
    model = stub_model(noisy(2, 6), SIX, ScriptedDrafter(lambda output: [0, 1] * 8))
    results = model.generate_many(
        [[0], [1, 1], [2, 2, 2]][:count],
        constraint,
        block_length=block_length,
        temperature=0.9,
        do_sample=True,
        seed=4,
        acceptance=acceptance,
        max_new_tokens=16,
    )
    assert len(results) == count
    for result in results:
        assert result.stats.forwards >= 1
        assert max(result.stats.proposed_by_slot, default=0) > 0
        assert len(result.stats.proposed_by_slot) <= block_length
        if constraint is not None and result.finish_reason == "stop":
            assert constraint.accepts(result.text)


@pytest.mark.parametrize("cut", [{}, {"top_k": 3}, {"top_p": 0.7}, {"min_p": 0.2}])
@pytest.mark.parametrize("temperature", [0.0, 0.8, 3.0])
@pytest.mark.parametrize("name", ["unmasked", "one-hot", "all mass illegal"])
def test_b45_coupled_ids_do_not_depend_on_the_draft(cut: dict, temperature: float, name: str) -> None:
    """Under the coupled rule the ids are those of no speculation, whatever is drafted."""
    tokens, q = Q[name]
    for constraint in (None, ONE_OF, xs.regex("[ab]{2,}|c*d")):
        for seed in range(4):
            options = {"temperature": temperature, "seed": seed, "max_new_tokens": 12, **cut}
            plain = stub_model(noisy(seed, 6), SIX).generate([0], constraint, **options)
            guess = tokens if q is None else (tokens, q)
            drafter = ScriptedDrafter(lambda output, guess=guess: guess)
            drafted = stub_model(noisy(seed, 6), SIX, drafter).generate([0], constraint, **options)
            assert drafted.token_ids == plain.token_ids


@pytest.mark.parametrize("acceptance", ["coupled", "token", "block"])
@pytest.mark.parametrize("draft", [[5, 5, 5], [5, 1, 0], [0, 5, 1], [0, 0, 5, 5]])
@pytest.mark.parametrize("constraint", [None, xs.regex("[ab]*")])
def test_b45_a_drawn_end_token_inside_a_draft_ends_it(
    acceptance: str, draft: list[int], constraint: object
) -> None:
    """What was drawn behind an end token is not used, whatever the rule."""
    for seed in range(80):
        model = stub_model(noisy(seed, 6, 0.5), SIX, drawn(draft, rows(*[[1.0] * 6] * len(draft))))
        result = model.generate(
            [0], constraint, acceptance=acceptance, temperature=1.0, seed=seed, max_new_tokens=9
        )
        assert 5 not in result.token_ids[:-1]
        assert result.finish_reason in ("stop", "length")


@pytest.mark.parametrize("acceptance", ["coupled", "token", "block"])
def test_b45_a_seed_repeats_a_sampled_result(acceptance: str) -> None:
    """The same seed gives the same tokens; a result without one tells its seed."""
    model = stub_model(noisy(3, 6), SIX, ScriptedDrafter(lambda output: [0, 1, 2]))
    options = {"temperature": 1.0, "acceptance": acceptance}
    first = model.generate([0], ONE_OF, **options)
    again = model.generate([0], ONE_OF, seed=first.stats.seed, **options)
    assert again.token_ids == first.token_ids
    assert len({model.generate([0], ONE_OF, **options).text for _ in range(12)}) > 1
    assert model.generate([0], ONE_OF).stats.seed is None
