"""The matcher of thoughts and an answer: masks by brute force, rollback, forks, the bound."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

import xpress_struct as xs
from xpress_struct.constraints.matcher import FreeMatcher
from xpress_struct.constraints.thinking import ThinkingMatcher
from xpress_struct.constraints.thinking_block import ThinkingBlock
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import ArgumentError

END = 0
WORDS = [b"", b"<", b"/", b"x", b">", b"\n", b"a", b"b", b"</", b"x>", b".<", b">a", b">b", b">\n", b"\n\n"]
WORDS += [b"\n\n\n", b"\na", b"\nb", b"</x>", b"</x>ab", b"/x></x>", b"ab", b"\xc3", b">\xc3", b"<</"]
SPELLED = Vocabulary.from_tokens(WORDS, end_ids=[END])
SPECIAL = Vocabulary.from_tokens([*WORDS, b"</x>"], end_ids=[END], special_ids=[len(WORDS)])
VOCABULARIES = {"spelled": SPELLED, "special": SPECIAL}
ANSWERS = {
    "choice": xs.choice(["ab", "abba", "aab"]),
    "newlines": xs.regex(r"\n{3}a|b"),
    "may be empty": xs.regex("[ab]{0,2}"),
    "free": None,
}


def start(vocabulary: Vocabulary, answer: str, bound: int = 6) -> ThinkingMatcher:
    constraint = ANSWERS[answer]
    inner = FreeMatcher(vocabulary) if constraint is None else constraint.matcher(vocabulary)[0]
    return ThinkingMatcher(ThinkingBlock(vocabulary, "</x>"), inner, bound)


def legal_ids(matcher: ThinkingMatcher, vocabulary: Vocabulary) -> set[int]:
    bits = np.unpackbits(matcher.mask(), bitorder="little")[: len(vocabulary.tokens)]
    return {int(i) for i in np.flatnonzero(bits)}


def defined(vocabulary: Vocabulary, answer: str, tokens: list[int]) -> set[int]:
    """What is legal behind tokens, from the definition: read the text anew with every token in turn."""
    special = vocabulary.special_id("</x>")

    def split(ids: list[int]) -> tuple[str, list[int], str]:
        """Phase, the answer's own tokens, and the text that it began with in the middle of a token."""
        marked, thought = None, b""
        for place, token in enumerate(ids):
            thought += vocabulary.tokens[token]
            if token == special or (special is None and b"</x>" in thought):
                marked = place
                break
        if marked is None:
            return "block", [], ""
        rest = b"" if special is not None else thought.partition(b"</x>")[2]
        after = ids[marked + 1 :]
        for newlines in range(3):
            if rest[:1] == b"\n" and newlines < 2:
                rest = rest[1:]
            elif rest or newlines == 2:
                return "answer", after, rest.decode("latin-1")
            elif after and vocabulary.tokens[after[0]][:1] == b"\n":
                rest, after = vocabulary.tokens[after[0]][1:], after[1:]
            elif after:
                return "answer", after, ""
            else:
                return "gap", [], ""
        raise AssertionError

    def inner(own: list[int], begun: str) -> FreeMatcher | None:
        constraint = ANSWERS[answer]
        matcher = FreeMatcher(vocabulary) if constraint is None else constraint.matcher(vocabulary)[0]
        if not begun.isascii() or matcher.consume_text(begun) < len(begun):
            return None
        matcher.commit(own)
        return matcher

    phase, own, begun = split(tokens)
    legal = set()
    for token in range(len(vocabulary.tokens)):
        ahead, its, text = split([*tokens, token])
        newline = vocabulary.tokens[token][:1] == b"\n"
        if phase == "block":
            good = token != END and (ahead == "block" or inner(its, text) is not None)
        elif phase == "gap" and newline:
            good = inner(its, text) is not None
        else:
            good = inner(own, begun).legal(token)
        if good:
            legal.add(token)
    return legal


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("kind", VOCABULARIES)
def test_the_mask_is_the_definition(kind: str, answer: str) -> None:
    """Along random paths, mask and legal agree with the definition at every place of every phase."""
    vocabulary, rng = VOCABULARIES[kind], random.Random(7)
    phases = set()
    for _ in range(12):
        matcher, tokens = start(vocabulary, answer, bound=99), []
        while not matcher.ended and len(tokens) < 9:
            wanted = defined(vocabulary, answer, tokens)
            assert legal_ids(matcher, vocabulary) == wanted, tokens
            found = {i for i in range(-3, len(vocabulary.tokens) + 3) if matcher.legal(i)}
            assert found == wanted, tokens
            ending = [i for i in wanted if re.search(rb"[</>\n]", vocabulary.tokens[i])]
            token = rng.choice(ending if ending and rng.random() < 0.7 else sorted(wanted))
            if vocabulary is SPECIAL and rng.random() < 0.2 and len(WORDS) in wanted:
                token = len(WORDS)
            matcher.commit([token])
            tokens.append(token)
            phases.add((matcher._places[-1].gap, matcher._places[-1].answering))
    assert len(phases) >= 3


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("kind", VOCABULARIES)
def test_rollback_is_replay_and_forks_are_independent(kind: str, answer: str) -> None:
    """Taking tokens back, over the switch too, leads where a fresh matcher stands; forks go their own way."""
    vocabulary, rng = VOCABULARIES[kind], random.Random(3)
    for _ in range(12):
        matcher, tokens = start(vocabulary, answer), []
        for _ in range(25):
            if tokens and (matcher.ended or rng.random() < 0.3):
                count = rng.randint(0, len(tokens))
                matcher.rollback(count)
                tokens = tokens[: len(tokens) - count]
            else:
                twin = matcher.fork()
                twin.commit([rng.choice(sorted(legal_ids(twin, vocabulary)))])
                token = rng.choice(matcher.forced()[:1] or sorted(legal_ids(matcher, vocabulary)))
                matcher.commit([token])
                tokens.append(token)
            fresh = start(vocabulary, answer)
            assert fresh.follow(tokens) == len(tokens)
            for name in ("ended", "accepting", "complete", "ended_silently"):
                assert getattr(matcher, name) == getattr(fresh, name)
            assert matcher.forced() == fresh.forced()
            if not matcher.ended:
                assert legal_ids(matcher, vocabulary) == legal_ids(fresh, vocabulary)


@pytest.mark.parametrize("bound", [0, 1, 3])
@pytest.mark.parametrize("kind", VOCABULARIES)
@pytest.mark.parametrize("thoughts", [[], [3], [1], [8], [3, 10], [6, 7, 8], [6, 24, 3]])
def test_behind_the_bound_the_marker_is_forced(kind: str, bound: int, thoughts: list[int]) -> None:
    """Where the bound is reached, only the run that ends the block is legal; then comes the answer."""
    vocabulary = VOCABULARIES[kind]
    matcher = start(vocabulary, "choice", bound)
    matcher.commit(thoughts[:bound])
    if len(thoughts) < bound:
        assert matcher.forced() == []
        return
    run = matcher.forced()
    assert run
    for place, token in enumerate(run):
        assert matcher.forced() == run[place:]
        assert legal_ids(matcher, vocabulary) == {token}
        assert [i for i in range(len(vocabulary.tokens)) if matcher.legal(i)] == [token]
        matcher.commit([token])
    assert not matcher.accepting
    assert matcher.follow([6, 7, END]) == 3 or matcher.follow([21, END]) == 2


def test_without_newlines_forced_tokens_stand_at_the_marker() -> None:
    """A vocabulary that has no newline leaves no gap: what the answer forces is free directly behind it."""
    vocabulary = Vocabulary.from_tokens([b"", b"<", b">", b"a", b"b"], end_ids=[END])
    matcher = ThinkingMatcher(ThinkingBlock(vocabulary, "<>"), xs.regex("abba").matcher(vocabulary)[0], 9)
    matcher.commit([3, 1, 2])
    assert matcher.forced()[:4] == [3, 4, 4, 3]


def test_an_unspellable_marker_is_refused() -> None:
    """A marker that no tokens spell is an error, not a block without an end."""
    with pytest.raises(ArgumentError, match="cannot spell"):
        ThinkingBlock(SPELLED, "</y>")


def test_what_is_not_legal_is_not_committed() -> None:
    """Illegal tokens and too many taken back are errors of their own."""
    matcher = start(SPELLED, "choice")
    with pytest.raises(RuntimeError, match="not legal"):
        matcher.commit([END])
    with pytest.raises(ValueError, match="take back"):
        matcher.rollback(1)
