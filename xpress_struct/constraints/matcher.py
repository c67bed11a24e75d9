"""Matcher: one request's place in a constraint.

What is legal is defined here, once. llguidance forces canonical tokens: where the next bytes are
determined its mask holds one token, although `validate_tokens` takes other spellings of those bytes
too. So:

    legal(place) = {first token of the forced run}           when there is one,
                   what `validate_tokens` takes               otherwise,
                   {the end token}                            when the text is complete.

A matcher is used by one thread at a time; `fork` gives an independent one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from llguidance import LLMatcher

from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import CompileLimitError, DeadEndError

__all__ = ["FreeMatcher", "GrammarMatcher", "Matcher", "TextMatcher", "dead_end"]

_MARKER = b"\xff"
_COMPLETE = ("NoExtension", "NoExtensionBias", "EndOfSentence")


class Matcher(Protocol):
    """What the round asks of a constraint. Tokens are ids; masks are packed uint8 [ceil(n/8)],
    lowest bit first, for the n ids of the tokenizer."""

    @property
    def ended(self) -> bool:
        """True once an end token is committed, or the text is complete and no end token exists."""

    @property
    def ended_silently(self) -> bool:
        """True when the last token ended the text without being part of it. An end id that the grammar
        needs as text is part of it."""

    @property
    def accepting(self) -> bool:
        """True when the text so far satisfies the constraint."""

    @property
    def complete(self) -> bool:
        """True when the text satisfies the constraint and nothing can be added to it."""

    def forced(self) -> list[int]:
        """The run of tokens that is legal as the only one, place by place; [] when there is none."""

    def spelled(self) -> list[int]:
        """Canonical tokens of the bytes that must come next, where several tokens could begin them: a
        good guess, to be checked. [] when no byte is determined."""

    def ending(self) -> bytes | None:
        """Text that should make the text whole, where the constraint knows of one: a guess, to be checked."""

    def legal(self, token: int) -> bool:
        """True when the mask of this place holds the token. Cheaper than a mask."""

    def mask(self) -> np.ndarray:
        """Packed mask of this place.

        Raises:
            DeadEndError: nothing is legal. The matcher cannot be used afterwards, so places that may
                never be reached are asked on a fork.
        """

    def follow(self, draft: Sequence[int]) -> int:
        """Moves on by as many of the draft's tokens as are legal in a row, and says how many; an end
        token is the last. This is the walk of the round, on a fork."""

    def commit(self, tokens: Sequence[int]) -> None:
        """Moves on by legal tokens."""

    def rollback(self, count: int) -> None:
        """Takes back the last `count` committed tokens."""

    def fork(self) -> Matcher:
        """An independent matcher at the same place."""


class TextMatcher(Matcher, Protocol):
    """A matcher of a constraint: it reads text too."""

    def consume_text(self, text: str) -> int:
        """Moves on over given text in any spelling; returns how many of its characters fit.

        Used for text that the model did not write as tokens of its own: a prefix, or the rest of a token
        that began as something else. The place moves only when all of it fits.
        """

    def fork(self) -> TextMatcher:
        """An independent matcher at the same place."""


class GrammarMatcher:
    """Matcher over an llguidance grammar."""

    def __init__(self, engine: LLMatcher, vocabulary: Vocabulary) -> None:
        self._engine = engine
        self._vocabulary = vocabulary
        self._tokens: list[int] = []
        self._ended = self._end_is_text = False
        self._forced: list[int] | None = None

    @property
    def ended(self) -> bool:
        return self._ended or (self._vocabulary.end_id is None and self.complete)

    @property
    def ended_silently(self) -> bool:
        return self._ended and not self._end_is_text

    @property
    def accepting(self) -> bool:
        return self._ended or bool(self._engine.is_accepting())

    @property
    def complete(self) -> bool:
        return self._ended or (
            self._engine.is_stopped()
            and self._engine.stop_reason() in _COMPLETE
            and bool(self._engine.is_accepting())
        )

    def forced(self) -> list[int]:
        if self._forced is None:
            if self.ended:
                self._forced = []
            elif self.complete:
                end = self._vocabulary.end_id
                self._forced = [] if end is None else [end]
            else:
                self._forced = self._engine.compute_ff_tokens()
                self._check_spelling(self._forced)
        return self._forced

    def spelled(self) -> list[int]:
        if self.ended or self.complete:
            return []
        return self.forced() or self._vocabulary.encode_bytes(self._engine.compute_ff_bytes())

    def ending(self) -> bytes | None:
        return None

    def legal(self, token: int) -> bool:
        if self.ended or not 0 <= token < len(self._vocabulary.tokens):
            return False
        forced = self.forced()
        if forced:
            return token == forced[0]
        return bool(self._engine.validate_tokens([token]) == 1)

    def mask(self) -> np.ndarray:
        if self.ended:
            raise RuntimeError("the text has ended; no token follows it")
        size = len(self._vocabulary.tokens)
        forced = self.forced()
        if forced:
            packed = np.zeros((size + 7) // 8, dtype=np.uint8)
            packed[forced[0] >> 3] = 1 << (forced[0] & 7)
            return packed
        # Bits beyond the tokenizer (a phantom end token, padding) are dropped.
        packed = np.frombuffer(self._engine.compute_bitmask(), dtype=np.uint8)[: (size + 7) // 8]
        packed = packed.copy()
        if size % 8:
            packed[-1] &= (1 << size % 8) - 1
        if not self._engine.is_accepting() or self._engine.is_error():
            # At a dead end, and at its limits, the engine offers the end token rather than nothing.
            self._raise_if_stuck()
        if not packed.any():
            self._raise_dead_end()
        return packed

    def follow(self, draft: Sequence[int]) -> int:
        # Asked first: a token that the engine refuses breaks it for good.
        for step, token in enumerate(draft):
            if not self.legal(token):
                return step
            self._consume(token)
        return len(draft)

    def commit(self, tokens: Sequence[int]) -> None:
        followed = self.follow(tokens)
        if followed < len(tokens):
            raise RuntimeError(f"token {tokens[followed]} is not legal at place {len(self._tokens)}")

    def _consume(self, token: int) -> None:
        """Moves on by one token that is legal."""
        forced = self._forced
        if token in self._vocabulary.end_ids and self.complete:
            self._ended = True
        else:
            needed_as_text = not self._engine.is_accepting()
            self._engine.consume_token(token)
            self._ended = token in self._vocabulary.end_ids and self._engine.stop_reason() == "EndOfSentence"
            self._end_is_text = self._ended and needed_as_text
        self._tokens.append(token)
        # What was forced stays forced; the engine need not be asked again.
        self._forced = forced[1:] or None if forced else None

    def rollback(self, count: int) -> None:
        if not 0 <= count <= len(self._tokens):
            raise ValueError(f"cannot take back {count} of {len(self._tokens)} tokens")
        if count == 0:
            return
        # The engine did not see an end token that followed a complete text.
        unseen = self._ended and self._engine.stop_reason() != "EndOfSentence"
        self._engine.rollback(count - unseen)
        del self._tokens[-count:]
        self._ended, self._end_is_text, self._forced = False, False, None

    def fork(self) -> GrammarMatcher:
        twin = GrammarMatcher(self._engine.deep_copy(), self._vocabulary)
        self._copy_to(twin)
        return twin

    def _copy_to(self, twin: GrammarMatcher) -> None:
        twin._tokens, twin._forced = list(self._tokens), self._forced
        twin._ended, twin._end_is_text = self._ended, self._end_is_text

    def consume_text(self, text: str) -> int:
        tokens = self._vocabulary.encode(text)
        if self._engine.validate_tokens(tokens) == len(tokens):
            self._engine.consume_tokens(tokens)
            self._forced = None
            return len(text)
        fits = self._engine.validate_tokens(tokens)
        return len(self._vocabulary.decode(tokens[:fits]).decode("utf-8", errors="ignore"))

    def _check_spelling(self, forced: list[int]) -> None:
        """A vocabulary that cannot spell the forced bytes yields no tokens, or others."""
        if forced:
            wanted = self._engine.compute_ff_bytes()
            # A token that the grammar names by id stands there as a marker, not as what it spells.
            if _MARKER not in wanted and not wanted.startswith(self._vocabulary.decode(forced)):
                self._raise_dead_end()
        else:
            self._raise_if_stuck()

    def _raise_if_stuck(self) -> None:
        engine = self._engine
        if engine.is_stopped() and not self.complete:
            # In the error state the first word of the message is the reason that led there.
            reason = (engine.get_error().split() or [engine.stop_reason()])[0]
            if reason in _COMPLETE:
                self._raise_dead_end()
            raise CompileLimitError(
                f"The constraint became too complex at output token {len(self._tokens)} "
                f"({reason}). Simplify it: fewer alternatives, smaller bounds."
            )

    def _raise_dead_end(self) -> None:
        raise dead_end(self._vocabulary, self._tokens)


def dead_end(vocabulary: Vocabulary, tokens: Sequence[int]) -> DeadEndError:
    """The error of a place behind some tokens at which nothing is legal."""
    text = vocabulary.decode(tokens).decode("utf-8", errors="replace")
    return DeadEndError(
        f"No token of this vocabulary continues the text that the constraint asks for: output "
        f"token {len(tokens)}, after {text[-40:]!r}.",
        position=len(tokens),
        text=text,
    )


class FreeMatcher:
    """No constraint: every id of the tokenizer is legal, end tokens end the text."""

    accepting = True

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._tokens: list[int] = []

    @property
    def ended(self) -> bool:
        return bool(self._tokens) and self._tokens[-1] in self._vocabulary.end_ids

    complete = ended_silently = ended

    def forced(self) -> list[int]:
        return []

    spelled = forced

    def ending(self) -> bytes | None:
        return None

    def legal(self, token: int) -> bool:
        return not self.ended and 0 <= token < len(self._vocabulary.tokens)

    def mask(self) -> np.ndarray:
        size = len(self._vocabulary.tokens)
        return np.packbits(np.ones(size, dtype=np.uint8), bitorder="little")

    def follow(self, draft: Sequence[int]) -> int:
        for step, token in enumerate(draft):
            if not self.legal(token):
                return step
            self._tokens.append(token)
        return len(draft)

    def commit(self, tokens: Sequence[int]) -> None:
        followed = self.follow(tokens)
        if followed < len(tokens):
            raise RuntimeError(f"token {tokens[followed]} is not legal at place {len(self._tokens)}")

    def rollback(self, count: int) -> None:
        if not 0 <= count <= len(self._tokens):
            raise ValueError(f"cannot take back {count} of {len(self._tokens)} tokens")
        del self._tokens[len(self._tokens) - count :]

    def fork(self) -> FreeMatcher:
        twin = FreeMatcher(self._vocabulary)
        twin._tokens = list(self._tokens)
        return twin

    def consume_text(self, text: str) -> int:
        return len(text)
