"""No key twice in one object."""

from __future__ import annotations

import json

import numpy as np
import pytest

import xpress_struct as xs
from tests.stubs import byte_vocabulary
from xpress_struct.constraints.vocabulary import Vocabulary

OPEN = xs.json_schema({"type": "object"})
PIECES = [bytes([i]) for i in range(32, 127)] + [b'": ', b'", "', b'"a": ', b', "a": ', b'"}', b"{}", b""]


@pytest.mark.parametrize(
    ("text", "legal"),
    [
        ('{"a": 1, "b": 2}', True),
        ('{"a": 1, "a": 2}', False),
        ('{"a": {"a": 1}, "b": {"a": 2}}', True),
        ('{"b": [{"a": 1}, {"a": 2}]}', True),
        ('{"b": [{"a": 1, "a": 2}]}', False),
        ('{"a": "b", "b": "a", "c": "a"}', True),
        ('{"x\\"y": 1, "x\\"z": 2}', True),
        ('{"x\\"y": 1, "x\\"y": 2}', False),
        ('{"a": "\\", \\"a\\": ", "b": 1}', True),
    ],
)
def test_a_key_stands_once_in_its_object(text, legal):
    """The mask takes a document exactly when no object in it has a key twice."""
    assert OPEN.accepts(text) is legal


@pytest.mark.parametrize("seed", range(30))
def test_random_walks_never_repeat_a_key(seed):
    """Masks agree with legality token by token, take back exactly, and lead to documents without repeats."""
    vocabulary = Vocabulary.from_tokens(PIECES, end_ids=[len(PIECES) - 1])
    matcher, _ = OPEN.matcher(vocabulary)
    rng = np.random.default_rng(seed)
    walked: list[int] = []
    for _ in range(120):
        if matcher.ended:
            break
        mask = np.flatnonzero(np.unpackbits(matcher.mask(), bitorder="little")[: len(PIECES)])
        assert [i for i in range(len(PIECES)) if matcher.legal(i)] == mask.tolist()
        likely = [i for i in mask if set(PIECES[i]) <= set(b'"ab1:, {}') and PIECES[i] != b" "]
        token = int(rng.choice(likely or mask))
        matcher.commit([token])
        walked.append(token)
        if rng.random() < 0.2:
            back = int(rng.integers(0, len(walked) + 1))
            matcher.rollback(back)
            del walked[len(walked) - back :]
    text = vocabulary.decode(walked).decode()
    if matcher.ended:
        json.loads(text, object_pairs_hook=_once)
    else:
        assert matcher.fork().mask().tolist() == matcher.mask().tolist()


def test_a_prefix_counts():
    """Keys of the answer's prefix are taken."""
    matcher, _ = OPEN.matcher(byte_vocabulary())
    assert matcher.consume_text('{"a": 1, "a') == 11
    assert not matcher.legal(ord('"'))
    assert matcher.legal(ord("b"))


def _once(pairs):
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)
