"""Constraint: what may be said, compiled once, immutable, shared by threads and requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache as memoise
from functools import partial
from typing import Any, Literal

from llguidance import LLMatcher, LLTokenizer

from xpress_struct.constraints.compiled import compile_error, engine_for, limits
from xpress_struct.constraints.matcher import GrammarMatcher, TextMatcher
from xpress_struct.constraints.report import Checked
from xpress_struct.constraints.vocabulary import Vocabulary

__all__ = ["Constraint"]


@dataclass(frozen=True)
class Constraint:
    """A compiled constraint. Made by `json_schema`, `regex`, `choice`, `lark` and `tools`.

    Attributes:
        kind: which of them made it; "engine" where it was read from another library's.
        grammar: the llguidance grammar that masks come from.
        parser: complete text -> value; raises OutputValidationError.
        schema: JSON Schema to show in a prompt, or None.
        enforced: JSON Schema keywords that the mask enforces fully.
        checked_after: what is validated on the finished value only.
        matcher_class: makes the matcher; one of its own where the grammar cannot say all.
        note: what a model should be told besides, or None.
        report: of a Lark grammar, what was rewritten, proved, gated and bounded (a `LarkReport`).
    """

    kind: Literal["json_schema", "regex", "choice", "lark", "tools", "engine"]
    grammar: str
    parser: Callable[[str], Any] = field(repr=False)
    schema: Any = field(default=None, repr=False)
    enforced: tuple[str, ...] = ()
    checked_after: tuple[Checked, ...] = ()
    matcher_class: Callable[[LLMatcher, Vocabulary], GrammarMatcher] = field(
        default=GrammarMatcher, repr=False
    )
    note: str | None = field(default=None, repr=False)
    report: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        # Compiled once without a model, so that a bad constraint fails where it is made. One that names
        # tokens of a model is only read; it is compiled for its model's tokens.
        validate = partial(LLMatcher.validate_grammar_with_warnings, self.grammar, limits=limits())
        failed, messages = validate(_byte_tokenizer())
        if failed and any("token" in message.lower() for message in messages):
            failed, messages = validate()
        if failed:
            raise compile_error("\n".join(messages))

    def parse(self, text: str) -> Any:
        """The value of a complete text.

        Raises:
            OutputValidationError: the text does not satisfy the constraint.
        """
        return self.parser(text)

    def accepts(self, text: str) -> bool:
        """True when the mask allows the whole text, in some tokenization of it."""
        matcher, _ = self.matcher(_bytes())
        return matcher.consume_text(text) == len(text) and matcher.accepting

    def matcher(self, vocabulary: Vocabulary) -> tuple[TextMatcher, float]:
        """A matcher at the start, and the seconds its compilation took (0 when cached)."""
        engine, seconds = engine_for(self.grammar, vocabulary)
        return self.matcher_class(engine, vocabulary), seconds


@memoise
def _byte_tokenizer() -> LLTokenizer:
    return LLTokenizer("byte")


@memoise
def _bytes() -> Vocabulary:
    engine = _byte_tokenizer()
    return Vocabulary(engine, [bytes([i]) for i in range(256)], [], (), 256)
