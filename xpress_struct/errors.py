"""The errors of xpress_struct: one family, each also the builtin it is a kind of.

Every message says what was wrong, where (JSON pointer, line and column, token position) and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "ArgumentError",
    "CacheRollbackError",
    "CompileLimitError",
    "DeadEndError",
    "GrammarError",
    "IncompleteOutputError",
    "MissingPackageError",
    "ModelError",
    "OutputValidationError",
    "SchemaError",
    "TokenizerMismatchError",
    "UnknownArgumentError",
    "UnsupportedFeatureError",
    "XPressError",
]


class XPressError(Exception):
    """Root of every error that this library raises on purpose."""


class ArgumentError(XPressError, ValueError):
    """An argument has a value that cannot be honoured."""


class UnknownArgumentError(XPressError, TypeError):
    """An argument has a name that the call does not know; the message names the nearest known one."""


class SchemaError(XPressError, ValueError):
    """A JSON Schema, or a Python type that stands for one, is malformed or can match nothing.

    Attributes:
        pointer: JSON pointer (RFC 6901) of the offending part; "" is the whole schema.
        keyword: the keyword concerned, or None.
    """

    def __init__(self, message: str, *, pointer: str = "", keyword: str | None = None) -> None:
        self.pointer, self.keyword = pointer, keyword
        super().__init__(f"{message} (at {pointer or 'the root'})")


class GrammarError(XPressError, ValueError):
    """A grammar or a regular expression does not compile.

    Attributes:
        line, column: place of the fault in the grammar's text, counted from 1, or None.
    """

    def __init__(self, message: str, *, line: int | None = None, column: int | None = None) -> None:
        self.line, self.column = line, column
        super().__init__(message)


class UnsupportedFeatureError(XPressError, NotImplementedError):
    """Something well formed that cannot be enforced exactly, so it is refused rather than dropped.

    Attributes:
        feature: the keyword, construct or option that is not supported.
        pointer: JSON pointer of it in a schema, or None outside schemas.
    """

    def __init__(self, message: str, *, feature: str, pointer: str | None = None) -> None:
        self.feature, self.pointer = feature, pointer
        super().__init__(message if pointer is None else f"{message} (at {pointer or 'the root'})")


class CompileLimitError(XPressError, RuntimeError):
    """A constraint is larger than the compile limits allow (size, depth, lexer states, time)."""


class DeadEndError(XPressError, RuntimeError):
    """No token of the vocabulary can continue the text that the constraint asks for.

    Attributes:
        position: index of the output token at which nothing was legal.
        text: the output before it.
    """

    def __init__(self, message: str, *, position: int, text: str) -> None:
        self.position, self.text = position, text
        super().__init__(message)


class IncompleteOutputError(XPressError, RuntimeError):
    """The output was cut (token budget, timeout, cancellation), so it has no value.

    Attributes:
        text: the partial text.
        token_ids: the partial output.
        finish_reason: "length", "timeout" or "cancelled".
    """

    def __init__(self, message: str, *, text: str, token_ids: Sequence[int], finish_reason: str) -> None:
        self.text, self.token_ids, self.finish_reason = text, tuple(token_ids), finish_reason
        super().__init__(message)


class OutputValidationError(XPressError, ValueError):
    """A complete output failed the check that follows generation (jsonschema, pydantic).

    Attributes:
        text: the complete text that failed.
    """

    def __init__(self, message: str, *, text: str) -> None:
        self.text = text
        super().__init__(message)


class TokenizerMismatchError(XPressError, ValueError):
    """Tokenizer, model and drafter do not belong together."""


class DrafterMismatchError(XPressError, ValueError):
    """A drafter does not fit the target: sizes, taps, ids, or the prompts it was trained on."""


class CacheRollbackError(XPressError, RuntimeError):
    """A key/value cache cannot be rolled back exactly, so it cannot serve speculation."""


class ModelError(XPressError, OSError):
    """A model could not be fetched, read or written."""


class MissingPackageError(XPressError, ImportError):
    """A package that only this part of the library needs is not installed; the message says how to."""
