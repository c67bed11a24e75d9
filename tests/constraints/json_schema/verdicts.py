"""Which values the mask of a rewritten schema takes, byte by byte."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

from llguidance import LLMatcher, LLTokenizer

from xpress_struct.constraints.json_schema import engine
from xpress_struct.constraints.json_schema.report import Rewritten
from xpress_struct.constraints.json_schema.rewrite import rewrite

BYTES = LLTokenizer("byte")
LAYOUT: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


@dataclass(frozen=True)
class Row:
    """One schema: values that must be taken, values that must not, keywords left to check after."""

    schema: Any
    taken: tuple[Any, ...] = ()
    refused: tuple[Any, ...] = ()
    checked: tuple[str, ...] = ()


class Taker:
    """A compiled schema. Values are serialised as json.dumps does; `text` takes raw text."""

    def __init__(self, schema: Any, **options: Any) -> None:
        self.rewritten: Rewritten = rewrite(schema, **options)
        made = json.dumps(self.rewritten.schema)
        self.grammar = LLMatcher.grammar_from_json_schema(made, LAYOUT)
        error = LLMatcher.validate_grammar(self.grammar, BYTES, limits=engine.limits())
        assert not error, error

    @property
    def checked(self) -> tuple[str, ...]:
        return tuple(sorted({c.keyword for c in self.rewritten.checked_after}))

    def text(self, text: str) -> bool:
        matcher = LLMatcher(BYTES, self.grammar, limits=engine.limits())
        tokens = list(text.encode())
        return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()

    def __call__(self, value: Any) -> bool:
        return self.text(json.dumps(value, ensure_ascii=False))


def check(row: Row, **options: Any) -> Taker:
    taker = Taker(row.schema, **options)
    assert [v for v in row.taken if not taker(v)] == [], "valid, and not taken"
    assert [v for v in row.refused if taker(v)] == [], "invalid, and taken"
    assert taker.checked == tuple(sorted(row.checked))
    return taker


def closing_walk(taker: Taker, seed: int, soft_limit: int = 200, hard_limit: int = 1500) -> str | None:
    """A random text under the mask, which closes what is open after `soft_limit` bytes; None if it is cut."""
    rng = random.Random(seed)
    matcher = LLMatcher(BYTES, taker.grammar, limits=engine.limits())
    out = bytearray()
    while len(out) < hard_limit:
        if matcher.is_accepting() and (matcher.is_stopped() or rng.random() < 0.5):
            return out.decode()
        mask = matcher.compute_bitmask()
        legal = [b for b in range(256) if mask[b >> 3] >> (b & 7) & 1]
        if not legal:
            return out.decode() if matcher.is_accepting() else None
        closers = [b for b in legal if b in b'"}]']
        likely = [b for b in legal if b in b'"}],:{[tfn019 abcxyz']
        if closers and (len(out) > soft_limit or rng.random() < 0.3):
            legal = closers
        elif likely and rng.random() < 0.9:
            legal = likely
        byte = rng.choice(legal)
        assert matcher.consume_token(byte)
        out.append(byte)
    return None
