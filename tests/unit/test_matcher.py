"""The matcher against brute force: legality, rollback, walk, fork, the end, and dead ends."""

from __future__ import annotations

import random

import numpy as np
import pytest

import xpress_struct as xs
from tests.stubs import END, byte_vocabulary
from tests.unit.grammars import make_grammar, make_vocabulary
from xpress_struct.constraints.matcher import FreeMatcher
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import DeadEndError

SEEDS = range(12)
KINDS = ["regex", "choice", "lark"]


def legal_ids(matcher, vocabulary):
    bits = np.unpackbits(matcher.mask(), bitorder="little")
    assert not bits[len(vocabulary.tokens) :].any()
    return set(np.flatnonzero(bits).tolist())


def shared_start(texts):
    low, high = min(texts), max(texts)
    return low[: next((i for i, byte in enumerate(low) if high[i] != byte), len(low))]


def whole(data):
    return data.decode(errors="replace").encode() == data


def replay(constraint, vocabulary, tokens):
    matcher, _ = constraint.matcher(vocabulary)
    matcher.commit(tokens)
    return matcher


def random_path(rng, matcher, vocabulary, limit=40):
    path = []
    while not matcher.ended and len(path) < limit:
        path.append(rng.choice(sorted(legal_ids(matcher, vocabulary))))
        matcher.commit(path[-1:])
    return path


def sides(seed, kind, end=True):
    rng = random.Random(f"{seed} {kind} {end}")
    constraint, texts = make_grammar(rng, kind)
    return rng, constraint, texts, make_vocabulary(rng, end=end)


@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_mask_is_brute_force(seed, kind, end):
    """Legal is the forced token, else every token that some text continues with, else the end."""
    rng, constraint, texts, vocabulary = sides(seed, kind, end)
    for _ in range(3):
        matcher, _ = constraint.matcher(vocabulary)
        so_far = b""
        while True:
            rest = [text[len(so_far) :] for text in texts if text.startswith(so_far)]
            brute = {
                i
                for i, token in enumerate(vocabulary.tokens)
                if token and any(r.startswith(token) for r in rest)
            }
            accepting, complete = b"" in rest, rest == [b""]
            assert matcher.accepting == accepting
            assert matcher.complete == complete
            if complete and not end:
                assert matcher.ended
                assert matcher.forced() == []
                break
            if accepting and end:
                brute.add(vocabulary.end_id)
            found, forced = legal_ids(matcher, vocabulary), matcher.forced()
            assert {i for i in range(len(vocabulary.tokens)) if matcher.legal(i)} == found
            if complete:
                assert forced == [vocabulary.end_id]
            elif forced:
                # Forced bytes are those that every text goes on with.
                assert not accepting
                certain = shared_start(rest)
                assert certain.startswith(vocabulary.decode(forced))
                if whole(so_far) and whole(certain):
                    assert forced == vocabulary.encode_bytes(certain)[: len(forced)]
            assert found == ({forced[0]} if forced else brute)
            token = rng.choice(sorted(found))
            matcher.commit([token])
            if matcher.ended:
                assert so_far + vocabulary.tokens[token] in texts
                break
            so_far += vocabulary.tokens[token]


@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_rollback_is_replay(seed, kind, end):
    """Taking back any number of tokens, the end token too, equals a fresh replay (B44)."""
    rng, constraint, _, vocabulary = sides(seed, kind, end)
    matcher, _ = constraint.matcher(vocabulary)
    path = random_path(rng, matcher, vocabulary)
    for count in range(len(path) + 1):
        matcher.rollback(count)
        kept = len(path) - count
        fresh = replay(constraint, vocabulary, path[:kept])
        assert matcher.ended == fresh.ended
        assert matcher.accepting == fresh.accepting
        assert matcher.complete == fresh.complete
        assert matcher.forced() == fresh.forced()
        if not fresh.ended:
            assert legal_ids(matcher, vocabulary) == legal_ids(fresh, vocabulary)
        matcher.commit(path[kept:])
    for kept in reversed(range(len(path))):
        matcher.rollback(1)
        fresh = replay(constraint, vocabulary, path[:kept])
        assert legal_ids(matcher, vocabulary) == legal_ids(fresh, vocabulary)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_walk_is_step_by_step(seed, kind):
    """`walk` counts what the masks allow one after another, and does not move the place."""
    rng, constraint, _, vocabulary = sides(seed, kind)
    path = random_path(rng, constraint.matcher(vocabulary)[0], vocabulary)
    for start in range(len(path)):
        draft = [*path[start:], 0, 1]
        if rng.random() < 0.6:
            draft[rng.randrange(len(draft))] = rng.randrange(len(vocabulary.tokens))
        stepped, count = replay(constraint, vocabulary, path[:start]), 0
        for token in draft:
            if stepped.ended or token not in legal_ids(stepped, vocabulary):
                break
            stepped.commit([token])
            count += 1
        matcher = replay(constraint, vocabulary, path[:start])
        before = legal_ids(matcher, vocabulary)
        assert matcher.fork().follow(draft) == count
        assert legal_ids(matcher, vocabulary) == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_forced_run(seed, kind):
    """Each token of a forced run is the only legal one at its place."""
    rng, constraint, _, vocabulary = sides(seed, kind)
    matcher, _ = constraint.matcher(vocabulary)
    while not matcher.ended:
        for token in matcher.forced() or [rng.choice(sorted(legal_ids(matcher, vocabulary)))]:
            if matcher.forced():
                assert legal_ids(matcher, vocabulary) == {token}
            matcher.commit([token])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_fork_is_independent(seed, kind):
    """A fork and its origin move without each other."""
    rng, constraint, _, vocabulary = sides(seed, kind)
    path = random_path(rng, constraint.matcher(vocabulary)[0], vocabulary)
    for place in range(len(path)):
        matcher = replay(constraint, vocabulary, path[:place])
        before, twin = legal_ids(matcher, vocabulary), matcher.fork()
        twin.commit(path[place:])
        assert twin.ended
        assert legal_ids(matcher, vocabulary) == before
        twin.rollback(len(path))
        matcher.commit(path[place:])
        start = replay(constraint, vocabulary, [])
        assert legal_ids(twin, vocabulary) == legal_ids(start, vocabulary)


def test_finished_matcher_refuses():
    """Behind the end, nothing is legal, nothing is committed, and nothing breaks."""
    matcher, _ = xs.regex("ab?").matcher(byte_vocabulary())
    matcher.commit([97, END])
    assert matcher.ended
    assert matcher.forced() == []
    assert matcher.fork().follow([98, END]) == 0
    assert not matcher.legal(END)
    for wrong in (lambda: matcher.commit([98]), matcher.mask):
        with pytest.raises(RuntimeError):
            wrong()
    with pytest.raises(ValueError, match="take back"):
        matcher.rollback(3)
    matcher.rollback(1)
    assert legal_ids(matcher, byte_vocabulary()) == {98, END}


def test_illegal_commit():
    """An illegal token is refused, and the matcher stays usable."""
    matcher, _ = xs.regex("[ab]c").matcher(byte_vocabulary())
    for token in (99, END, 257, -1):
        with pytest.raises(RuntimeError, match="not legal"):
            matcher.commit([token])
    matcher.commit([97])
    assert matcher.forced()[0] == 99


@pytest.mark.parametrize(
    ("constraint", "committed", "position"),
    [
        (xs.regex("é"), [], 0),
        (xs.regex("abé"), [0, 1], 2),
        (xs.regex("a[éü]"), [0], 1),
        (xs.choice(["ab", "bé"]), [1], 1),
        (xs.lark('start: "a" /é+/\n'), [0], 1),
    ],
)
def test_dead_end(constraint, committed, position):
    """A text that the vocabulary cannot spell is a dead end with its place and text (B52)."""
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b""], end_ids=[2])
    matcher, _ = constraint.matcher(vocabulary)
    matcher.commit(committed)
    with pytest.raises(DeadEndError) as caught:
        _ = matcher.forced() or matcher.mask()
    assert caught.value.position == position
    assert caught.value.text == vocabulary.decode(committed).decode()


def test_free_matcher():
    """Without a constraint every token is legal until an end token."""
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"", b""], end_ids=[3, 2])
    matcher = FreeMatcher(vocabulary)
    assert legal_ids(matcher, vocabulary) == {0, 1, 2, 3}
    assert matcher.fork().follow([0, 2, 1]) == 2
    assert matcher.fork().follow([0, 9]) == 1
    twin = matcher.fork()
    twin.commit([0, 2])
    assert twin.ended
    assert not matcher.ended
    assert not twin.legal(0)
    twin.rollback(1)
    assert twin.legal(0)
