"""Vocabulary: what each token id spells, which ids end a text, and how wide the logits are."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from llguidance import LLTokenizer, TokenizerWrapper
from tokenizers import Tokenizer

from xpress_struct.errors import TokenizerMismatchError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Vocabulary"]

# Added tokens that steer a model rather than spell text, although some tokenizers do not flag them
# as special: a JSON string must not contain them as one token.
_CONTROL = re.compile(
    r"<\|.*\|>|</?think(ing)?>|</?[a-z]+_[a-z_]+>|[<\[]\|?(unused|reserved|extra_id)[^>\]]*[>\]]"
)


class Vocabulary:
    """The tokens of a model as bytes. Immutable, shared by threads; costs about a second to build.

    Attributes:
        tokens: bytes of each id; b"" for special tokens and for ids without text.
        end_ids: ids that end a text, the preferred one first; empty if the model has none.
        special_ids: ids that never count as text.
        width: number of logits of the model, at least len(tokens).
        engine: the same, as llguidance knows it.
    """

    def __init__(
        self,
        engine: LLTokenizer,
        tokens: Sequence[bytes],
        end_ids: Sequence[int],
        special_ids: Iterable[int],
        width: int,
    ) -> None:
        self.engine = engine
        self.tokens = tuple(tokens)
        self.end_ids = tuple(end_ids)
        self.special_ids = frozenset(special_ids)
        self.width = width

    @classmethod
    def from_tokenizer(
        cls,
        tokenizer: PreTrainedTokenizerBase,
        *,
        width: int | None = None,
        end_ids: Sequence[int] | None = None,
    ) -> Vocabulary:
        """Reads a Hugging Face fast tokenizer (byte-level, or Metaspace with byte fallback).

        Args:
            width: number of logits of the model; wider than the tokenizer is fine (padding ids).
            end_ids: ids that end a text; by default the tokenizer's own.

        Raises:
            TokenizerMismatchError: the tokenizer has ids that the model has no logits for, or is of
                a kind whose tokens cannot be mapped to bytes.
        """
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise TokenizerMismatchError(
                f"{type(tokenizer).__name__} is not a fast tokenizer, so its tokens cannot be mapped "
                "to bytes. Load it with AutoTokenizer.from_pretrained(..., use_fast=True), or pass a "
                "Vocabulary made by Vocabulary.from_tokens."
            )
        description = json.loads(backend.to_str())
        description.update(padding=None, truncation=None)
        for added in description.get("added_tokens", ()):
            added["special"] = added["special"] or bool(_CONTROL.fullmatch(added["content"]))
        size = max(tokenizer.get_vocab().values()) + 1
        width = size if width is None else width
        _check_width(size, width)
        if end_ids is None:
            end_ids = [] if tokenizer.eos_token_id is None else [int(tokenizer.eos_token_id)]
        strange = [i for i in end_ids if not 0 <= i < size]
        if strange:
            raise TokenizerMismatchError(
                f"The model ends texts with the ids {strange}, which this tokenizer of {size} ids does not "
                "have. Pass the tokenizer that came with the model."
            )
        if not end_ids:
            description.setdefault("added_tokens", []).append(_phantom(size))
        text = json.dumps(description)
        try:
            # llguidance reads the bytes of the tokens; the text is encoded here, since it would take a
            # text that looks like a control token for that token.
            reader = _engine(text, size, end_ids)
            special = {i for i in range(size) if reader.is_special_token(i)}
            tokens = [b"" if i in special else reader.decode_bytes([i]) for i in range(size)]
            # Grammars name special tokens by what they are called.
            called = [reader.decode_bytes([i]) if i in special else tokens[i] for i in range(size)]
            source = _PlainText(text, [*called, b""], {*special, size})
            engine = _engine(TokenizerWrapper(source), size, end_ids)
        except Exception as error:
            raise TokenizerMismatchError(
                f"The tokens of this {type(tokenizer).__name__} cannot be mapped to bytes: {error}. "
                "Byte-level tokenizers and Metaspace ones with byte fallback are supported."
            ) from error
        return cls(engine, tokens, end_ids, special, width)

    @classmethod
    def from_tokens(
        cls,
        tokens: Sequence[bytes],
        *,
        end_ids: Sequence[int] = (),
        special_ids: Iterable[int] = (),
        width: int | None = None,
    ) -> Vocabulary:
        """Makes a vocabulary of plain byte strings; text is tokenised by longest match.

        An id with empty bytes can never be drawn. End ids may spell text of their own and then
        stand for it inside a grammar.
        """
        width = len(tokens) if width is None else width
        _check_width(len(tokens), width)
        special = {*special_ids, *(i for i in end_ids if not tokens[i])}
        special |= {i for i, token in enumerate(tokens) if not token}
        source = _LongestMatch([*tokens, b""], special | {len(tokens)})
        engine = _engine(TokenizerWrapper(source), len(tokens), end_ids)
        return cls(
            engine,
            [b"" if i in special else t for i, t in enumerate(tokens)],
            end_ids,
            special,
            width,
        )

    @property
    def end_id(self) -> int | None:
        """The end token that a finished grammar emits, or None."""
        return self.end_ids[0] if self.end_ids else None

    def special_id(self, name: str) -> int | None:
        """The special token that is called so, or None."""
        wanted = name.encode()
        return next((i for i in sorted(self.special_ids) if self.engine.decode_bytes([i]) == wanted), None)

    @cached_property
    def fingerprint(self) -> str:
        """sha256, in hex, of all tokens and the end ids: equal where ids mean the same."""
        digest = hashlib.sha256()
        for token in self.tokens:
            digest.update(len(token).to_bytes(4, "little") + token)
        digest.update(repr(self.end_ids).encode())
        return digest.hexdigest()

    def decode(self, ids: Sequence[int]) -> bytes:
        """Bytes that a sequence of ids spells; special tokens spell nothing."""
        return b"".join(self.tokens[i] for i in ids)

    def encode(self, text: str) -> list[int]:
        """Canonical tokens of a text, without special tokens around it."""
        return self.engine.tokenize_str(text)

    def encode_bytes(self, data: bytes) -> list[int]:
        """Canonical tokens of bytes; broken UTF-8 at the end is spelled byte by byte."""
        return self.engine.tokenize_bytes(data)


def _check_width(size: int, width: int) -> None:
    if width < size:
        raise TokenizerMismatchError(
            f"The tokenizer has {size} ids but the model has logits for {width}: they do not belong "
            "together. Pass the tokenizer that came with the model."
        )


def _engine(source: str | TokenizerWrapper, size: int, end_ids: Sequence[int]) -> LLTokenizer:
    return LLTokenizer(source, eos_token=list(end_ids) or [size])


def _phantom(index: int) -> dict[str, Any]:
    """The engine needs an id for "the text may end here": for a model without an end token, one
    beyond the tokenizer, which can never be drawn."""
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": index, "content": "<|no end token|>", "special": True, **flags}


class _Source:
    """What llguidance asks of a tokenizer: bytes of the tokens, which are special, and encoding."""

    bos_token_id = None
    eos_token_id = 0

    def __init__(self, tokens: Sequence[bytes], special: set[int]) -> None:
        self.tokens = [token or b"<|no text %d|>" % i for i, token in enumerate(tokens)]
        self.special_token_ids = sorted(special)


class _PlainText(_Source):
    """Encodes with a Hugging Face tokenizer, text that looks like a control token included."""

    # Stands before every text, so that no blank is put in front of it (Metaspace).
    _GUARD = "\x02"

    def __init__(self, description: str, tokens: Sequence[bytes], special: set[int]) -> None:
        super().__init__(tokens, special)
        self._backend = Tokenizer.from_str(description)
        self._backend.encode_special_tokens = True
        self._guard = self._encode(self._GUARD)

    def __call__(self, text: str) -> list[int]:
        if isinstance(text, bytes):
            raise TypeError("text, not bytes")  # tells llguidance what to pass
        ids = self._encode(self._GUARD + text)
        if ids[: len(self._guard)] == self._guard:
            return ids[len(self._guard) :]
        return self._encode(text)

    def _encode(self, text: str) -> list[int]:
        return list(self._backend.encode(text, add_special_tokens=False).ids)


class _LongestMatch(_Source):
    """Encodes by longest match over a plain list of tokens."""

    def __init__(self, tokens: Sequence[bytes], special: set[int]) -> None:
        super().__init__(tokens, special)
        self._ids: dict[bytes, int] = {}
        for index, token in enumerate(tokens):
            if index not in special:
                self._ids.setdefault(token, index)
        self._longest = max(map(len, self._ids), default=0)

    def __call__(self, text: bytes | str) -> list[int]:
        data: Any = text.encode() if isinstance(text, str) else text
        ids: list[int] = []
        place = 0
        while place < len(data):
            for length in range(min(self._longest, len(data) - place), 0, -1):
                found = self._ids.get(bytes(data[place : place + length]))
                if found is not None:
                    ids.append(found)
                    place += length
                    break
            else:
                break  # the vocabulary cannot spell this byte: a dead end, found by the matcher
        return ids
