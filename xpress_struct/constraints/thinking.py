"""Thinking: a block of free text in front of what a constraint says, in one matcher.

What is legal, place by place:

    in the block      every token but those that end a text. One that completes the end marker and holds more
                      is legal only when the constraint takes the rest, in any spelling, as the beginning of
                      the answer. Behind `bound` tokens, the next token of the end marker alone.
    behind it         at most two newlines, then what the constraint says. A token of newlines and more is
                      legal only when the constraint takes the rest.
    in the answer     what the constraint says.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xpress_struct.constraints.matcher import TextMatcher
from xpress_struct.constraints.thinking_block import Place, Step, ThinkingBlock
from xpress_struct.errors import DeadEndError

__all__ = ["ThinkingMatcher"]


class ThinkingMatcher:
    """A matcher of thoughts and then an answer.

    Args:
        block: where the thoughts end.
        answer: matcher at the start of the answer; it is forked, never moved.
        bound: tokens in the block after which its end is forced.
    """

    def __init__(self, block: ThinkingBlock, answer: TextMatcher, bound: int) -> None:
        self._block, self._start, self._bound = block, answer, bound
        self._places = [Place()]
        self._answer: TextMatcher | None = None
        self._begins: dict[bytes, bool] = {}

    @property
    def ended(self) -> bool:
        return self._answer is not None and self._answer.ended

    @property
    def ended_silently(self) -> bool:
        return self._answer is not None and self._answer.ended_silently

    @property
    def accepting(self) -> bool:
        return self._answer is not None and self._answer.accepting

    @property
    def complete(self) -> bool:
        return self._answer is not None and self._answer.complete

    def forced(self) -> list[int]:
        if self._answer is None:
            written = len(self._places) - 1
            return self._closing()[written - self._bound :] if written >= self._bound else []
        return [] if self._in_gap(self._answer) else self._answer.forced()

    def spelled(self) -> list[int]:
        return self.forced() if self._answer is None else self._answer.spelled()

    def ending(self) -> bytes | None:
        return None if self._answer is None else self._answer.ending()

    def legal(self, token: int) -> bool:
        vocabulary = self._block.vocabulary
        if not 0 <= token < len(vocabulary.tokens):
            return False
        if self._answer is None:
            if forced := self.forced():
                return token == forced[0]
            return token not in vocabulary.end_ids and self._may_begin(self._read(token).answer)
        if self._in_gap(self._answer) and token in self._block.newline_tokens:
            return self._may_begin(self._read(token).answer)
        return self._answer.legal(token)

    def mask(self) -> np.ndarray:
        if self._answer is None:
            packed = self._block.thoughts.copy()
            if forced := self.forced():
                packed[:] = 0
                packed[forced[0] >> 3] = 1 << (forced[0] & 7)
                return packed
            for token, rest in self._block.closers(self._places[-1].matched):
                if not self._may_begin(rest):
                    packed[token >> 3] &= ~(1 << (token & 7)) & 255
            return packed
        packed = self._answer.mask()
        if self._in_gap(self._answer):
            for token in self._block.newline_tokens:
                packed[token >> 3] &= ~(1 << (token & 7)) & 255
                packed[token >> 3] |= self.legal(token) << (token & 7)
        return packed

    def follow(self, draft: Sequence[int]) -> int:
        for step, token in enumerate(draft):
            if not self.legal(token):
                return step
            self._consume(token)
        return len(draft)

    def commit(self, tokens: Sequence[int]) -> None:
        followed = self.follow(tokens)
        if followed < len(tokens):
            raise RuntimeError(f"token {tokens[followed]} is not legal at place {len(self._places) - 1}")

    def rollback(self, count: int) -> None:
        if not 0 <= count < len(self._places):
            raise ValueError(f"cannot take back {count} of {len(self._places) - 1} tokens")
        if count == 0:
            return
        del self._places[-count:]
        place = self._places[-1]
        if place.inside:
            self._answer = None
        elif place.answering and self._answer is not None:
            self._answer.rollback(count)
        else:
            self._answer = self._start.fork()

    def fork(self) -> ThinkingMatcher:
        twin = ThinkingMatcher(self._block, self._start, self._bound)
        twin._places, twin._begins = list(self._places), self._begins
        twin._answer = None if self._answer is None else self._answer.fork()
        return twin

    def _in_gap(self, answer: TextMatcher) -> bool:
        """True where a newline may still come that is not the answer's."""
        return self._places[-1].gap is not None and not answer.complete

    def _read(self, token: int) -> Step:
        return self._block.read(self._places[-1], token)

    def _may_begin(self, rest: bytes) -> bool:
        """Whether the answer may begin with the rest of a token."""
        if not rest:
            return True
        if rest not in self._begins:
            try:
                text = rest.decode()
            except UnicodeDecodeError:  # half a character
                self._begins[rest] = False
            else:
                self._begins[rest] = self._start.fork().consume_text(text) == len(text)
        return self._begins[rest]

    def _consume(self, token: int) -> None:
        """Moves on by one token that is legal."""
        step, rest = self._read(token), b""
        if self._answer is None:
            rest = step.answer
            if not step.place.inside:
                self._answer = self._start.fork()
        elif self._in_gap(self._answer) and token in self._block.newline_tokens:
            rest = step.answer
        else:
            self._answer.commit([token])
        if rest and self._answer is not None:
            self._answer.consume_text(rest.decode())
        self._places.append(step.place)

    def _closing(self) -> list[int]:
        """The end of the block, from where its bound was reached."""
        tokens = self._block.closing(self._places[self._bound].matched)
        if not tokens:
            raise DeadEndError(
                "The tokens of this model cannot spell the rest of the end marker.",
                position=len(self._places) - 1,
                text="",
            )
        return tokens
