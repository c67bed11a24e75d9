"""Thinking, as a user sees it: thoughts apart from the text, budgets, streams, options."""

from __future__ import annotations

from collections import Counter

import pytest
from tokenizers import AddedToken

import xpress_struct as xs
from tests.api.tiny import THINKING, byte_level, scripted
from tests.cases.scripts import PROMPT
from tests.cases.test_b42_thinking import ANSWER, CONSTRAINT, SPECIAL, SPELLED, writer
from tests.exactness.helpers import END as SIX_END
from tests.exactness.helpers import (
    EXACT,
    SIX,
    V,
    chi_square,
    oracle_draws,
    outcomes,
    reference,
    table,
    total_variation,
)
from tests.stubs import END, ScriptedDrafter, stub_model
from xpress_struct.errors import ArgumentError, IncompleteOutputError
from xpress_struct.sampling import SamplingParams

SPOKEN = [*b"So {.", 258, 259, 260, *b": 7}", END]
MODEL = writer(SPECIAL, SPOKEN)


def test_thoughts_are_no_part_of_the_answer() -> None:
    """Text and value are the answer's, `thinking` the block's; ids and counts have both; logprobs align."""
    result = MODEL.generate(PROMPT, CONSTRAINT, thinking=True, logprobs=2)
    assert (result.thinking, result.text, result.value) == ("So {.", ANSWER, {"a": 7})
    assert result.token_ids == tuple(SPOKEN)
    assert result.stats.output_tokens == len(SPOKEN) == len(result.logprobs)
    assert [place.token_id for place in result.logprobs] == SPOKEN
    assert MODEL.generate(PROMPT, CONSTRAINT).thinking is None


def test_a_free_answer_follows_its_thoughts() -> None:
    """Without a constraint the answer is free text; the empty line in front of it is left out."""
    ids = [*b"Hm </thin", 258, 259, 10, *b"Hi.\n", END]
    result = writer(SPECIAL, ids).generate(PROMPT, thinking=True)
    assert (result.thinking, result.text) == ("Hm </thin", "\nHi.\n")
    assert result.token_ids == tuple(ids)


@pytest.mark.parametrize("acceptance", ["coupled", "token", "block"])
@pytest.mark.parametrize("bound", [0, 1, 2, 5, 9, None])
@pytest.mark.parametrize("vocabulary", [SPECIAL, SPELLED], ids=["special", "spelled"])
def test_an_answer_comes_however_long_the_thoughts(vocabulary, bound, acceptance) -> None:
    """Behind `max_thinking_tokens` the marker is forced, by default at half of the budget."""
    wanted = [ord("m")] * 200
    model = writer(vocabulary, wanted, ScriptedDrafter(lambda output: [ord("m")] * 16))
    options = {"max_new_tokens": 60, "max_thinking_tokens": bound, "acceptance": acceptance}
    result = model.generate(PROMPT, xs.choice(["yes", "no"]), thinking=True, **options)
    assert result.value in ("yes", "no")
    assert result.thinking == "m" * (30 if bound is None else bound)


@pytest.mark.parametrize("budget", [8, 20, 70, 200])
@pytest.mark.parametrize("asked", [None, 7])
@pytest.mark.parametrize("vocabulary", [SPECIAL, SPELLED], ids=["special", "spelled"])
def test_the_limit_closes_block_and_answer(vocabulary, asked, budget) -> None:
    """on_limit="close" leaves a whole answer behind thoughts and text without an end."""
    model = writer(vocabulary, [ord("m")] * 500)
    options = {"max_new_tokens": budget, "max_thinking_tokens": asked, "on_limit": "close"}
    if asked is not None and asked >= budget - 1:
        options["max_thinking_tokens"] = None
    result = model.generate(PROMPT, xs.regex("[m]+!"), thinking=True, **options)
    if vocabulary is SPECIAL or budget > 8:
        assert result.finish_reason == "closed"
        assert result.text.endswith("!") and set(result.thinking) <= {"m"}
    assert len(result.token_ids) <= budget


def test_what_is_cut_inside_of_the_block_has_no_text() -> None:
    """A budget that ends in the block leaves thoughts alone; the begun marker is not shown."""
    ids = [*b"So.</thi"]
    result = writer(SPELLED, ids).generate(
        PROMPT, CONSTRAINT, thinking=True, max_new_tokens=8, max_thinking_tokens=7
    )
    assert (result.finish_reason, result.thinking, result.text) == ("length", "So.", "")
    with pytest.raises(IncompleteOutputError):
        _ = result.value


def test_a_stream_gives_answer_or_both() -> None:
    """Iterating gives pieces of the answer; `parts` those of the thoughts too; neither goes back."""
    ids = [*"Né".encode(), *b"</thin", *f"</think>\n{ANSWER}".encode(), END]
    model = writer(SPELLED, ids)
    with model.stream(PROMPT, CONSTRAINT, thinking=True) as stream:
        assert "".join(stream) == stream.result.text == ANSWER
        assert stream.thinking == stream.result.thinking == "Né</thin"
    with model.stream(PROMPT, CONSTRAINT, thinking=True) as stream:
        parts, shown = [], ""
        for kind, piece in stream.parts():
            parts.append((kind, piece))
            assert stream.thinking.startswith(shown)
            shown = stream.thinking
    kinds = [kind for kind, _ in parts]
    assert kinds == sorted(kinds, reverse=True)
    for kind, whole in (("thinking", "Né</thin"), ("text", ANSWER)):
        assert "".join(piece for each, piece in parts if each == kind) == whole
    assert all(piece for _, piece in parts)
    with model.stream(PROMPT, CONSTRAINT, thinking=True, buffered=True) as stream:
        assert stream.thinking is None
        assert list(stream.parts()) == [("thinking", "Né</thin"), ("text", ANSWER)]


def test_stop_strings_count_in_the_answer_alone() -> None:
    """A stop string in the thoughts stops nothing."""
    ids = [*b"a, b", 258, *b"a, b", END]
    result = writer(SPECIAL, ids).generate(PROMPT, thinking=True, stop_strings=",")
    assert (result.finish_reason, result.thinking, result.text) == ("stop_string", "a, b", "a")


@pytest.mark.parametrize(
    ("options", "about"),
    [
        ({"thinking": True, "prefix": "{"}, "prefix"),
        ({"thinking": "yes"}, "thinking"),
        ({"thinking": ("<think>",)}, "thinking"),
        ({"thinking": ("<think>", "")}, "thinking"),
        ({"thinking": True, "chat_template_kwargs": {"enable_thinking": False}}, "enable_thinking"),
        ({"max_thinking_tokens": 3}, "thinking"),
        ({"thinking": True, "max_thinking_tokens": 8, "max_new_tokens": 8}, "max_new_tokens"),
        ({"thinking": True, "max_thinking_tokens": -1}, "max_thinking_tokens"),
        ({"thinking": ("\ud800", "x")}, "thinking"),
    ],
)
def test_what_cannot_be_is_refused(options, about) -> None:
    """Options that contradict each other are errors of ours that name them."""
    with pytest.raises(ArgumentError, match=about):
        MODEL.generate(PROMPT, CONSTRAINT, **options)


# On six tokens (a b c ab bc END): the block is opened with "b" and ends with "ca", which may end within "ab".
MARKERS = ("b", "ca")
CHOICES = xs.choice(["abca", "abcb", "bacc", "cab", "ca"])
OPENED = (0, 1)


def legal(output: tuple[int, ...]) -> tuple[bool, ...]:
    """Which of the six may follow, by reading the texts."""
    texts = [SIX.tokens[token] for token in output]
    for place in range(1, len(texts) + 1):
        _, marker, rest = b"".join(texts[:place]).partition(b"ca")
        if marker:
            matcher = CHOICES.matcher(SIX)[0]
            assert matcher.consume_text(rest.decode()) == len(rest)
            matcher.commit(output[place:])
            return tuple(not matcher.ended and matcher.legal(token) for token in range(V))

    def good(token: int) -> bool:
        rest = (b"".join(texts) + SIX.tokens[token]).partition(b"ca")[2].decode()
        return token != SIX_END and any(text.startswith(rest) for text in ("abca", "bacc", "cab"))

    if len(output) >= 3:  # the bound
        begun = b"".join(texts).endswith(b"c")
        return tuple(token == (0 if begun else 2) for token in range(V))
    return tuple(good(token) for token in range(V))


def promised(logits, params: SamplingParams, budget: int) -> dict:
    """Every output with its probability."""
    found: dict = {}

    def visit(output: tuple[int, ...], weight: float) -> None:
        allowed = legal(output)
        if len(output) == budget or not any(allowed):
            found[output] = found.get(output, 0.0) + weight
            return
        row = reference(logits((*OPENED, *output)), allowed, params)
        for token in row.nonzero()[0]:
            visit((*output, int(token)), weight * row[token])

    visit((), 1.0)
    return found


@pytest.mark.parametrize("rule", ["coupled", "token", "block"])
def test_sampling_across_the_switch_is_exact(rule: str) -> None:
    """Counts of sampled outputs fit the enumerated distribution, with drafts that cross the switch."""
    logits, params = table(5), SamplingParams(1.0)
    wanted = promised(logits, params, 6)
    drafter = ScriptedDrafter(lambda output: [[2, 3, 1], [2, 0, 0, 1], [0, 2, 0, 2, 3]][len(output) % 3])
    model, counts, accepted = stub_model(logits, SIX), Counter(), 0
    for seed in range(300):
        out = model.generate(
            [0],
            CHOICES,
            thinking=MARKERS,
            max_thinking_tokens=3,
            max_new_tokens=6,
            temperature=1.0,
            seed=seed,
            drafter=drafter,
            acceptance=rule,
            guard=False,
        )
        counts[out.token_ids] += 1
        accepted += out.stats.accepted
    assert accepted > 60
    assert chi_square(counts, wanted) > 1e-4


@pytest.mark.parametrize("rule", ["token", "block"])
def test_every_branch_across_the_switch_is_exact(rule: str) -> None:
    """Over all coins and draws, what comes out has exactly the enumerated probabilities."""
    logits, params = table(6), SamplingParams(1.2, top_k=2)
    model = stub_model(logits, SIX)
    drafter = ScriptedDrafter(lambda output: [2, 3, 1, 2])

    def program(pick):
        with oracle_draws(pick):
            return model.generate(
                [0],
                CHOICES,
                thinking=MARKERS,
                max_thinking_tokens=3,
                max_new_tokens=6,
                temperature=1.2,
                top_k=2,
                drafter=drafter,
                acceptance=rule,
                guard=False,
                block_length=3,
            ).token_ids

    assert total_variation(outcomes(program), promised(logits, params, 6)) < EXACT


def test_a_real_tokenizer_with_markers_of_its_own() -> None:
    """Where `</think>` is an added token, it alone ends the block; spelled out it is a thought."""
    markers = [AddedToken(text, special=False) for text in ("<think>", "</think>")]
    tokenizer = byte_level(THINKING, added=markers)
    opened = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True
    )
    length = len(tokenizer.encode(opened + "<think>\n", add_special_tokens=False))
    spelled = list(b"No </think>.")
    ids = [*spelled, tokenizer.convert_tokens_to_ids("</think>"), *f"\n\n{ANSWER}".encode()]
    ids.append(tokenizer.eos_token_id)

    def logits(prefix: tuple[int, ...]) -> list[float]:
        row = [0.0] * len(tokenizer)
        row[ids[min(len(prefix) - length, len(ids) - 1)]] = 10.0
        return row

    model = scripted(tokenizer, logits, "lookup")
    result = model.generate("Hi", CONSTRAINT, thinking=True)
    assert result.token_ids == tuple(ids)
    assert (result.thinking, result.value) == ("No </think>.", {"a": 7})
