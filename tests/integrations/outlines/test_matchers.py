"""Matchers over the engines of Outlines' backends: masks are theirs, and every step can be taken back."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.integrations.outlines.shared import SAME_MASKS, processor
from tests.integrations.tiny import END, PROMPTS, TOKENIZER
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import DeadEndError
from xpress_struct.integrations.outlines.engine_matcher import EngineMatcher
from xpress_struct.integrations.outlines.recovered import EngineConstraint, recover

VOCABULARY = Vocabulary.from_tokenizer(TOKENIZER, end_ids=[END])


def matcher(key: tuple[str, str]) -> EngineMatcher:
    constraint = recover(processor(*key), VOCABULARY)
    assert isinstance(constraint, EngineConstraint)
    return constraint.matcher(VOCABULARY)[0]


def legal(asked: EngineMatcher) -> list[int]:
    bits = np.unpackbits(asked.mask(), count=len(VOCABULARY.tokens), bitorder="little")
    return bits.nonzero()[0].tolist()


def walk(asked: EngineMatcher, seed: int, most: int = 80) -> list[int]:
    """Commits legal tokens at random up to the end of the text; returns them."""
    random = np.random.default_rng(seed)
    tokens: list[int] = []
    while not asked.ended and len(tokens) < most:
        tokens.append(int(random.choice(legal(asked))))
        asked.commit(tokens[-1:])
    return tokens


def their_masks(key: tuple[str, str], tokens: list[int]) -> list[list[int]]:
    """The legal tokens that Outlines' own processor leaves in front of each token."""
    asked = processor(*key)
    asked.reset()
    prompt, masks = TOKENIZER.encode(PROMPTS[0]), []
    with torch.compiler.set_stance("force_eager"):
        for length in range(len(tokens)):
            ids = torch.tensor([[*prompt, *tokens[:length]]])
            scores = asked(ids, torch.zeros(1, len(TOKENIZER)))
            masks.append(scores.isfinite().nonzero()[:, 1].tolist())
    return masks


@pytest.mark.parametrize("key", SAME_MASKS, ids="-".join)
def test_masks_are_those_of_outlines(key) -> None:
    """At every place of random texts, the mask holds what Outlines' processor leaves."""
    for seed in range(3):
        tokens = walk(matcher(key), seed, 25)
        asked, masks = matcher(key), []
        for token in tokens:
            masks.append(legal(asked))
            asked.commit([token])
        assert masks == their_masks(key, tokens)


@pytest.mark.parametrize("key", SAME_MASKS, ids="-".join)
def test_a_token_is_taken_where_the_mask_holds_it(key) -> None:
    """`follow`, `legal` and `forced` agree with the mask for every id, and refused ids change nothing."""
    asked = matcher(key)
    for token in walk(matcher(key), 5, 25):
        mask = legal(asked)
        assert asked.forced() == (mask if len(mask) == 1 else [])
        for index in (*range(len(VOCABULARY.tokens)), -1, len(VOCABULARY.tokens)):
            assert asked.legal(index) == (index in mask)
            assert asked.fork().follow([index]) == (index in mask)
        assert asked.follow([token, -1]) == 1
    with pytest.raises(RuntimeError, match="not legal"):
        matcher(key).commit([END])


@pytest.mark.parametrize("key", SAME_MASKS, ids="-".join)
def test_every_step_can_be_taken_back(key) -> None:
    """After a rollback of any length, over the end token too, and on forks, masks are as before."""
    for seed in range(4):
        asked = matcher(key)
        masks, forks = [], []
        tokens: list[int] = []
        while not asked.ended and len(tokens) < 60:
            masks.append(legal(asked))
            forks.append(asked.fork())
            tokens += walk(asked, seed + len(tokens), 1)
        for length in range(len(tokens) - 1, -1, -max(1, len(tokens) // 7)):
            asked.rollback(len(asked._tokens) - length)
            assert not asked.ended
            assert legal(asked) == masks[length] == legal(forks[length])
            assert asked.follow(tokens[length:]) == len(tokens) - length
        with pytest.raises(ValueError, match="cannot take back"):
            asked.rollback(len(tokens) + 1)


@pytest.mark.parametrize("key", SAME_MASKS, ids="-".join)
def test_what_is_spelled_out_can_be_followed(key) -> None:
    """The guess of what must come next is legal, wherever there is one."""
    guesses = 0
    for seed in range(5):
        asked = matcher(key)
        while not asked.ended and len(asked._tokens) < 40:
            guess = asked.spelled()
            guesses += bool(guess)
            assert asked.fork().follow(guess) == len(guess)
            walk(asked, seed, 1)
        assert asked.spelled() == asked.forced() == [] or not asked.ended
    assert guesses


@pytest.mark.parametrize("backend", ["outlines_core", "xgrammar"])
def test_the_end_token_ends_a_whole_text_only(backend: str) -> None:
    """The end is legal where the text may end, forced where nothing else can come, and no text itself."""
    asked = matcher((backend, "json"))
    whole = '{"name":"b","ok":true}'
    assert asked.consume_text('{"name":"b","x') == len('{"name":"b","')
    assert asked._tokens == []
    assert asked.consume_text(whole[:-1]) == len(whole) - 1
    assert not asked.accepting
    assert not asked.legal(END)
    assert asked.consume_text("}") == 1
    assert asked.accepting and asked.complete and not asked.ended
    assert asked.forced() == [END]
    asked.commit([END])
    assert asked.ended and asked.ended_silently and asked.accepting
    assert asked.forced() == [] and not asked.legal(END)
    with pytest.raises(RuntimeError, match="has ended"):
        asked.mask()
    constraint = recover(processor(backend, "json"), VOCABULARY)
    assert constraint.accepts(whole) and not constraint.accepts(whole[:-1])
    assert constraint.parse(whole) == whole


def test_a_dead_end_is_an_error() -> None:
    """Where the engine's mask holds nothing, the error says where; nothing is legal."""
    asked = matcher(("xgrammar", "regex"))
    asked.commit(TOKENIZER.encode("abc"))
    asked._mask = np.zeros_like(asked._packed())
    assert asked.forced() == [] and not asked.legal(END)
    with pytest.raises(DeadEndError, match="output token 1, after 'abc'"):
        asked.mask()


@pytest.mark.parametrize("kind", ["json", "regex", "cfg"])
def test_the_grammar_of_llguidance_is_taken_as_it_is(kind: str) -> None:
    """The recovered constraint takes the texts of the output type, and no others."""
    constraint = recover(processor("llguidance", kind), VOCABULARY)
    taken, refused = {
        "json": ('{"name": "abc", "ok":\ttrue}', '{"name": "d", "ok": true}'),
        "regex": ("ab a b cd", "ab a b"),
        "cfg": ("abc,(abc,bdc)", "abc,"),
    }[kind]
    assert constraint.accepts(taken)
    assert not constraint.accepts(refused)
