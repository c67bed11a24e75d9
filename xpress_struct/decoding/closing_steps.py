"""The steps of a search that closes a text: what one byte more costs at a place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.constraints.vocabulary import Vocabulary

__all__ = ["Step", "steps"]

# The best step at a place costs 1, so that a long way of best steps is gone to its end.
_UNIT = 4
# What ends something, and the shortest values and blanks. All else is dearer.
_CODE = {b")": 0, b"]": 0, b"}": 0, b"\n": 1, b" ": 4, b":": 3, b"1": 4}
# Inside of free text a bracket is only text.
_TEXT = {b"\n": 0, b'"': 0, b"'": 0, b"`": 0, b'"""': 0, b"'''": 0, b"]": 2, b"<": 3, b"a": 8}
_QUOTES = (b'"', b"'", b"`", b'"""', b"'''")
_DEARER = 10
_MORE_INDENTED = 3
# A statement that does nothing, and what could stand behind it if it were a name.
_NOTHING = (b" pass", b"pass")
_NOTHING_COST = 0
_BEHIND_NAMES = [bytes([c]) for c in b".,=()]:"]
# Up to so many letters begin words of the grammar; more begin names, and one of them will do.
_MOST_WORDS = 12
_LETTERS = [bytes([c]) for c in b"axbcdefghijklmnopqrstuvwyz"]
_SIGNS = [bytes([c]) for c in b"=(\"'{0.;>,/*_-2[<`)]}:13456789+!#$%&?@\\^|~ \n\t"]
_FEW = 4
_BEFORE_VALUES = [bytes([c]) for c in b"=(,[{+-*/<>."]
_PROBES = [*_LETTERS, b"1", b"(", b")", b":", b"'", b";", b"=", b","]


@dataclass(frozen=True)
class Step:
    """One token more, at a cost; or, with the token -1, all dearer steps of a place.

    A step that `loops` is worth less where it could have been taken before.
    """

    token: int
    cost: int
    loops: bool = False

    @property
    def deferred(self) -> bool:
        return self.token < 0


def steps(path: Matcher, vocabulary: Vocabulary, text: bytes, dearer: bool) -> list[Step]:
    """The legal steps from a place, the best first; the last may stand for the dearer ones.

    Args:
        text: what was written so far, or its end.
        dearer: the dearer ones are asked for.
    """
    ids = _bytes(vocabulary)
    in_text = all(each in ids and path.legal(ids[each]) for each in (b"?", b"q"))
    cheap = (_text if in_text else _code)(path, ids, text)
    if not cheap or dearer:
        return _dearer(path, vocabulary, ids, {token for token, _ in cheap}, text)
    least = min(cost for _, cost in cheap)
    cheap.sort(key=lambda each: each[1])
    best, *others = cheap
    found = [Step(best[0], 1)]
    found += [
        Step(token, _UNIT * (cost - least + 2), loops=in_text and cost < _TEXT[b"a"])
        for token, cost in others
    ]
    return [*found, Step(-1, _UNIT * _dearer_cost(text, cheap, ids))]


def _dearer_cost(text: bytes, cheap: list[tuple[int, int]], ids: dict[bytes, int]) -> int:
    """Where only blanks are cheap at the beginning of a line, words are as good."""
    blanks = {ids.get(b" "), ids.get(b"\n")}
    if not text.rpartition(b"\n")[2].strip(b" ") and blanks.issuperset(token for token, _ in cheap):
        return _MORE_INDENTED
    return _DEARER


def _text(path: Matcher, ids: dict[bytes, int], text: bytes) -> list[tuple[int, int]]:
    """(token, cost) of what may end free text, and of a letter."""
    # Behind a quote that closed nothing, one more of the same might; three did not.
    last, wrong = text[-1:], set[bytes]()
    if last in _QUOTES:
        wrong = {each for each in _QUOTES if each != last or text.endswith(3 * last)}
    if last in (b"a", b"]", b"<"):
        wrong |= {b"]", b"<"}
    found = {each: cost for each, cost in _TEXT.items() if each in ids and each not in wrong}
    if last in found and last in _QUOTES:
        found = {last: found.pop(last), **found}
    return [(ids[each], cost) for each, cost in found.items() if path.legal(ids[each])]


def _code(path: Matcher, ids: dict[bytes, int], text: bytes) -> list[tuple[int, int]]:
    """(token, cost) of what is cheap outside of free text."""

    def legal(spelled: bytes) -> bool:
        return spelled in ids and path.legal(ids[spelled])

    last, wrong = text[-1:], set[bytes]()
    # A second blank is not worth its place, unless it indents; nor is a longer name or number.
    if last in (b" ", b"\n"):
        wrong.add(b"\n")
        if text.rpartition(b"\n")[2].strip(b" "):
            wrong.add(b" ")
    found = [(ids[each], cost) for each, cost in _CODE.items() if each not in wrong and legal(each)]
    if last.isalnum():  # a quote there ends something more often than it begins it
        found += [(ids[quote], 1) for quote in (b"'", b'"') if legal(quote)]
    if len(found) > 1 and last.isalnum():
        found = [each for each in found if each[0] != ids[b"1"]]
    blanks = [each for each in found if each[0] in (ids.get(b" "), ids.get(b"\n"))]
    if len(found) > len(blanks) and last in _BEFORE_VALUES:
        found = [each for each in found if each not in blanks]
    elif len(blanks) > 1 and _alike(path, ids, [token for token, _ in blanks]):
        found.remove(blanks[0])  # the line break
    words = [
        (ids[word], _NOTHING_COST) for word in _NOTHING if legal(word) and _does_nothing(path, ids, word)
    ]
    return found + words[:1]


def _alike(path: Matcher, ids: dict[bytes, int], tokens: list[int]) -> bool:
    """Whether the same can follow, as far as a few probes tell."""
    follows = []
    for token in tokens:
        behind = path.fork()
        behind.commit([token])
        follows.append([each in ids and behind.legal(ids[each]) for each in _PROBES])
    return follows[0] == follows[1] and any(follows[0])


def _does_nothing(path: Matcher, ids: dict[bytes, int], word: bytes) -> bool:
    """Whether the word is a statement here, and neither a name nor the beginning of one."""
    behind = path.fork()
    behind.commit([ids[word]])
    ends = b"\n" in ids and behind.legal(ids[b"\n"])
    return ends and not any(sign in ids and behind.legal(ids[sign]) for sign in _BEHIND_NAMES)


def _dearer(
    path: Matcher, vocabulary: Vocabulary, ids: dict[bytes, int], known: set[int], text: bytes
) -> list[Step]:
    """Words and names, then signs; where there is none of them the shortest legal tokens."""
    words = []
    for letter in _LETTERS:
        for form in (letter.upper(), letter):
            if form in ids and path.legal(ids[form]):
                words.append(ids[form])
                break
    if len(words) > _MOST_WORDS:
        lower = [ids[each] for each in _LETTERS if each in ids and path.legal(ids[each])]
        words = lower[:1] or words[:1]
    found = [Step(token, _UNIT, loops=True) for token in words if token not in known]
    found += [
        Step(ids[sign], _UNIT * (2 + rank // 2), loops=True)
        for rank, sign in enumerate(_SIGNS)
        if sign in ids and ids[sign] not in known and path.legal(ids[sign])
    ]
    if not found and not known:
        found = [Step(token, 2 * _UNIT) for token in _shortest(path, vocabulary)]
    if len(found) == 1 and not known:
        return [Step(_whole(path, vocabulary, found[0].token, text[-1:].isupper()), 0)]
    return found


def _whole(path: Matcher, vocabulary: Vocabulary, first: int, upper: bool) -> int:
    """The longest token of the one word that goes on with a token."""
    legal = {vocabulary.tokens[i]: i for i in _legal(path, vocabulary)}
    whole = max(legal, key=len).lower()
    if not all(whole.startswith(token.lower()) for token in legal):
        return first
    cased = [token for token in legal if token == (token.upper() if upper else token.lower())]
    return legal[max(cased or legal, key=len)]


def _legal(path: Matcher, vocabulary: Vocabulary) -> list[int]:
    legal = np.flatnonzero(np.unpackbits(path.mask(), bitorder="little"))
    return [int(i) for i in legal if int(i) not in vocabulary.end_ids]


def _shortest(path: Matcher, vocabulary: Vocabulary) -> list[int]:
    ranked = sorted((len(vocabulary.tokens[i]), i) for i in _legal(path, vocabulary))
    return [token for _, token in ranked[:_FEW]]


@lru_cache(maxsize=8)
def _bytes(vocabulary: Vocabulary) -> dict[bytes, int]:
    """The tokens of single ASCII bytes, of quotes and of words."""
    wanted = {*_NOTHING, *_TEXT, *(bytes([c]) for c in range(128))}
    ids: dict[bytes, int] = {}
    for index, token in enumerate(vocabulary.tokens):
        if token in wanted and index not in vocabulary.special_ids:
            ids.setdefault(token, index)
    return ids
