"""The steps of a search that closes a text: what one byte more costs at a place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.constraints.vocabulary import Vocabulary

__all__ = ["Step", "steps"]

# What ends something, what a value is made of, what leads on: cheap first. All else is deferred.
_CODE = {b")": 0, b"]": 0, b"}": 0, b" ": 3, b"\n": 5, b":": 4, b"1": 4, b"=": 4}
# Inside of free text a bracket is only text.
_TEXT = {b'"': 0, b"'": 0, b"`": 0, b"\n": 2, b"]": 2, b"a": 8}
_PASS, _PASS_COST = (b"pass", b" pass"), 2
# No keyword stands in front of these.
_SIGNS = [b".", b",", b"=", b"(", b")", b"]", b":"]
_DEFERRED = 10
# Up to so many letters begin words of the grammar; more begin names.
_MOST_WORDS = 12
_LETTERS = [bytes([c]) for c in b"axbcdefghijklmnopqrstuvwyz"]
_OTHERS = [bytes([c]) for c in b"(\"'{0.;>,/*_-2[<`3456789+!#$%&?@\\^|~ \n\t"]
_FEW = 4


@dataclass(frozen=True)
class Step:
    """One token more, at a cost; or, without a token, the dearer steps of a place."""

    token: int
    cost: int

    @property
    def deferred(self) -> bool:
        return self.token < 0


def steps(path: Matcher, vocabulary: Vocabulary, text: bytes, taken: Step | None) -> list[Step]:
    """The legal steps from a place, the best first; the last may stand for dearer ones.

    Args:
        text: what was added so far.
        taken: the step that led here; a deferred one asks for the dearer steps.
    """
    ids = _bytes(vocabulary)
    if taken is not None and taken.deferred:
        return _dearer(path, vocabulary, ids)
    found = _cheap(path, ids, text)
    if not found:
        return _dearer(path, vocabulary, ids)
    least = min(cost for _, cost in found)
    found.sort(key=lambda each: each[1])
    # A single way is not dear however long it is.
    length = 2 if len(found) > 1 else 1
    return [Step(token, cost - least + length) for token, cost in found] + [Step(-1, _DEFERRED)]


def _cheap(path: Matcher, ids: dict[bytes, int], text: bytes) -> list[tuple[int, int]]:
    def legal(byte: bytes) -> bool:
        return byte in ids and path.legal(ids[byte])

    if legal(b"?") and legal(b"q"):
        return [(ids[byte], cost) for byte, cost in _TEXT.items() if legal(byte)]
    line = text.rpartition(b"\n")[2]
    doubled = text[-1:] in (b" ", b"\n")
    indents = b"\n" in text and not line.strip(b" ")
    # A second blank is not worth its place, unless it indents.
    passed = {b"\n": doubled, b" ": doubled and not indents}
    found = {byte: cost for byte, cost in _CODE.items() if not passed.get(byte) and legal(byte)}
    steps = [(ids[byte], cost) for byte, cost in found.items()]
    for word in _PASS:
        if legal(word) and _is_word(path, ids, word):
            steps.append((ids[word], _PASS_COST))
    return steps


def _is_word(path: Matcher, ids: dict[bytes, int], word: bytes) -> bool:
    """Whether it is a word of the grammar here: behind a name some sign could stand."""
    behind = path.fork()
    behind.commit([ids[word]])
    return not any(sign in ids and behind.legal(ids[sign]) for sign in _SIGNS)


def _dearer(path: Matcher, vocabulary: Vocabulary, ids: dict[bytes, int]) -> list[Step]:
    """Words and names, signs, and where there is none of them the shortest legal tokens."""
    found, words = [], []
    for letter in _LETTERS:
        for form in (letter.upper(), letter):
            if form in ids and path.legal(ids[form]):
                words.append(ids[form])
                break
    if len(words) > _MOST_WORDS:
        lower = [ids[each] for each in _LETTERS if each in ids and path.legal(ids[each])]
        words = lower[:1] or words[:1]
    found = [Step(token, 1) for token in words]
    found += [
        Step(ids[other], 2 + rank // 4)
        for rank, other in enumerate(_OTHERS)
        if other in ids and path.legal(ids[other])
    ]
    return found or [Step(token, 2) for token in _shortest(path, vocabulary)]


def _shortest(path: Matcher, vocabulary: Vocabulary) -> list[int]:
    legal = np.flatnonzero(np.unpackbits(path.mask(), bitorder="little"))
    ends = set(vocabulary.end_ids)
    ranked = sorted((len(vocabulary.tokens[i]), int(i)) for i in legal if int(i) not in ends)
    return [token for _, token in ranked[:_FEW]]


@lru_cache(maxsize=8)
def _bytes(vocabulary: Vocabulary) -> dict[bytes, int]:
    """The tokens of single ASCII bytes, and of words."""
    wanted = {*_PASS, *(bytes([c]) for c in range(128))}
    ids: dict[bytes, int] = {}
    for index, token in enumerate(vocabulary.tokens):
        if token in wanted and index not in vocabulary.special_ids:
            ids.setdefault(token, index)
    return ids
