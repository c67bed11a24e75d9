"""B42: a grammar that begins behind a thinking block takes effect inside a drafted block."""

from __future__ import annotations

import pytest

import xpress_struct as xs
from tests.cases.scripts import PROMPT, bytes_and, noisy
from tests.stubs import END, ScriptedDrafter, stub_model
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.model import Model

ANSWER = '{"a": 7}'
CONSTRAINT = xs.json_schema(
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
)
SPECIAL = Vocabulary.from_tokens(
    [bytes([i]) for i in range(256)] + [b"", b"<think>", b"</think>", b"\n\n", b'{"a"'],
    end_ids=[END],
    special_ids=[257, 258],
)
# The marker begins inside of `.</`, ends inside of `>{"` and `>\n`, and is one token besides.
SPELLED = bytes_and(b".</", b"</think>", b'>{"', b">\n", b"\n\n", b'nk>{"a": 7}', b">{{")
# Ways to write "So.</think>", perhaps newlines, and the answer.
SPECIAL_WAYS = {
    "at once": [*b"So.", 258, 260, *b": 7}", END],
    "empty line": [*b"So.", 258, 259, 260, *b": 7}", END],
    "newlines": [*b"So.", 258, 10, 10, 260, *b": 7}", END],
}
SPELLED_WAYS = {
    "bytes": [*f"So.</think>{ANSWER}".encode(), END],
    "one token": [*b"So.", 258, *ANSWER.encode(), END],
    "begins inside": [*b"So", 257, *f"think>{ANSWER}".encode(), END],
    "ends inside": [*b"So", 257, *b"think", 259, *b'a": 7}', END],
    "newline inside": [*b"So.</think", 260, 10, *ANSWER.encode(), END],
    "whole answer": [*b"So.</thi", 262, END],
}
WAYS = {
    **{f"special-{name}": (SPECIAL, ids) for name, ids in SPECIAL_WAYS.items()},
    **{f"spelled-{name}": (SPELLED, ids) for name, ids in SPELLED_WAYS.items()},
}


def writer(vocabulary: Vocabulary, ids: list[int], drafter: object = None) -> Model:
    """A model that wants to write these ids behind a prompt whose block is opened."""
    opening = len(PROMPT) + (2 if vocabulary is SPECIAL else len("<think>\n"))

    def logits(prefix: tuple[int, ...]) -> list[float]:
        row = [0.0] * vocabulary.width
        row[ids[min(len(prefix) - opening, len(ids) - 1)]] = 10.0
        return row

    return stub_model(logits, vocabulary, drafter)


@pytest.mark.parametrize("acceptance", ["coupled", "token", "block"])
@pytest.mark.parametrize("resumes", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_b42_a_draft_walks_across_the_end_of_the_block(way: str, resumes: bool, acceptance: str) -> None:
    """`</think>{"a"` in a draft is one `{`: the draft stands, and ids and text are those without it."""
    vocabulary, ids = WAYS[way]
    plain = writer(vocabulary, ids).generate(PROMPT, CONSTRAINT, thinking=True)
    drafter = ScriptedDrafter(lambda output: ids[len(output) : len(output) + 16], resumes)
    drafted = writer(vocabulary, ids, drafter).generate(
        PROMPT, CONSTRAINT, thinking=True, acceptance=acceptance, guard=False, block_length=16
    )
    for result in (plain, drafted):
        assert result.token_ids == tuple(ids)
        assert (result.thinking, result.text, result.value) == ("So.", ANSWER, {"a": 7})
        assert result.finish_reason == "stop"
    assert drafted.stats.accepted == drafted.stats.proposed > 0
    assert drafted.stats.forwards <= 2 < plain.stats.forwards


@pytest.mark.parametrize("acceptance", ["coupled", "token", "block"])
@pytest.mark.parametrize("start", [b"{{", b"{", b'"a"', b"\n\n\n{", b"x"])
@pytest.mark.parametrize("way", ["special-at once", "spelled-bytes"])
def test_b42_a_wrong_draft_behind_the_marker_changes_nothing(way: str, start: bytes, acceptance: str) -> None:
    """Whatever a draft says behind the marker, the answer has its one `{`."""
    vocabulary, ids = WAYS[way]
    marker = [258] if vocabulary is SPECIAL else [*b"</think>"]
    before = ids.index(ord(".")) + 1

    def guess(output: tuple[int, ...]) -> list[int]:
        return [*ids[len(output) : before], *marker, *start] if len(output) <= before else []

    out = writer(vocabulary, ids, ScriptedDrafter(guess)).generate(
        PROMPT, CONSTRAINT, thinking=True, acceptance=acceptance, guard=False, block_length=16
    )
    assert out.token_ids == tuple(ids)
    assert out.text == ANSWER


def test_b42_a_token_that_breaks_the_grammar_does_not_end_the_block() -> None:
    """`>{{` would end the block and break the grammar: it is not legal there, and the next best token is."""
    ids = [*b"So.</think", 263, *ANSWER.encode(), END]
    likes = writer(SPELLED, ids)

    def logits(prefix: tuple[int, ...]) -> list[float]:
        row = likes.target._logits(prefix)
        row[ord(">")] += 9.0 * (row[263] > 0)
        return row

    out = stub_model(logits, SPELLED).generate(PROMPT, CONSTRAINT, thinking=True)
    assert out.token_ids == (*ids[:-10], ord(">"), *ids[11:])
    assert (out.thinking, out.text) == ("So.", ANSWER)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("vocabulary", [SPECIAL, SPELLED], ids=["special", "spelled"])
def test_b42_garbage_across_the_switch_changes_no_id(vocabulary: Vocabulary, seed: int) -> None:
    """Random drafts with markers, braces and ends in them leave the ids of a sampled text as they are."""
    pieces = [b"</think>", b".</", b"think>", b'{"a": ', b"\n\n", b"7}", b"{{"]
    logits = noisy(seed, vocabulary.width)

    def guess(output: tuple[int, ...]) -> list[int]:
        chosen = [pieces[(seed + len(output) * k) % len(pieces)] for k in (1, 2, 3)]
        tail = [258, END] if (seed + len(output)) % 3 == 0 else [258]
        return [
            *vocabulary.encode(b"".join(chosen[:2]).decode()),
            *tail,
            *vocabulary.encode(chosen[2].decode()),
        ]

    options = {"temperature": 1.0, "seed": seed, "max_new_tokens": 60, "thinking": True}
    options["max_thinking_tokens"] = seed
    plain = stub_model(logits, vocabulary).generate(PROMPT, CONSTRAINT, **options)
    for resumes in (False, True):
        model = stub_model(logits, vocabulary, ScriptedDrafter(guess, resumes))
        drafted = model.generate(PROMPT, CONSTRAINT, guard=False, **options)
        assert drafted.token_ids == plain.token_ids
        assert (drafted.text, drafted.thinking) == (plain.text, plain.thinking)
        assert drafted.finish_reason == plain.finish_reason
