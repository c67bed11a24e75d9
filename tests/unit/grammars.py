"""Small random grammars whose whole language is known, and vocabularies that overlap."""

from __future__ import annotations

import itertools
import random

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.lark import lark
from xpress_struct.constraints.regex import choice, regex
from xpress_struct.constraints.vocabulary import Vocabulary

LETTERS = ("a", "b", "c", "é", "☃")


def make_vocabulary(rng: random.Random, *, end: bool = True) -> Vocabulary:
    """Every byte of the letters, and a dozen pieces that overlap and cut characters in two."""
    text = "".join(LETTERS).encode()
    tokens = [bytes([byte]) for byte in sorted(set(text))]
    while len(tokens) < 25:
        joined = "".join(rng.choices(LETTERS, k=3)).encode()
        start = rng.randrange(len(joined) - 1)
        piece = joined[start : start + rng.randint(2, 5)]
        if piece not in tokens:
            tokens.append(piece)
    rng.shuffle(tokens)
    if not end:
        return Vocabulary.from_tokens(tokens)
    place = rng.randrange(len(tokens))
    tokens.insert(place, b"")
    return Vocabulary.from_tokens(tokens, end_ids=[place])


def _tree(rng: random.Random, depth: int) -> tuple[str, str, set[str]]:
    """A pattern as regex and as Lark, with its language."""
    kind = rng.choice(["letter", "word", "class", "or", "then", "maybe", "repeat"][: 4 + 3 * (depth > 0)])
    if depth == 0 or kind in ("letter", "word", "class"):
        if kind == "class":
            chosen = rng.sample(LETTERS, 2)
            return f"[{''.join(chosen)}]", f"/[{''.join(chosen)}]/", set(chosen)
        word = "".join(rng.choices(LETTERS, k=1 if kind == "letter" else 3))
        return word, " ".join(f'"{letter}"' for letter in word), {word}
    left = _tree(rng, depth - 1)
    if kind == "maybe":
        return f"(?:{left[0]})?", f"({left[1]})?", {"", *left[2]}
    if kind == "repeat":
        twice = {a + b for a, b in itertools.product(left[2], repeat=2)}
        return f"(?:{left[0]}){{1,2}}", f"(({left[1]}) ({left[1]})?)", left[2] | twice
    right = _tree(rng, depth - 1)
    if kind == "or":
        return f"(?:{left[0]}|{right[0]})", f"(({left[1]}) | ({right[1]}))", left[2] | right[2]
    both = {a + b for a in left[2] for b in right[2]}
    return left[0] + right[0], f"({left[1]}) ({right[1]})", both


def make_grammar(rng: random.Random, kind: str) -> tuple[Constraint, set[bytes]]:
    """A constraint and every text of it, as bytes."""
    while True:
        pattern, rules, language = _tree(rng, 3)
        if 1 < len(language) < 400:
            break
    texts = {text.encode() for text in language}
    if kind == "regex":
        return regex(pattern), texts
    if kind == "choice":
        return choice(sorted(language)[:20]), {t.encode() for t in sorted(language)[:20]}
    return lark(f"start: {rules}\n"), texts
