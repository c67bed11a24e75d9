"""A logits processor of Outlines -> the constraint that it enforces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from outlines.backends.llguidance import LLGuidanceLogitsProcessor
from outlines.backends.outlines_core import OutlinesCoreLogitsProcessor
from outlines.backends.xgrammar import XGrammarLogitsProcessor

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import UnsupportedFeatureError
from xpress_struct.integrations.outlines.engine_matcher import EngineMatcher
from xpress_struct.integrations.outlines.index_matcher import IndexMatcher, IndexTable
from xpress_struct.integrations.outlines.xgrammar_matcher import XGrammarMatcher

__all__ = ["EngineConstraint", "recover"]


@dataclass(frozen=True, kw_only=True)
class EngineConstraint(Constraint):
    """A constraint that another engine compiled for one vocabulary.

    Attributes:
        start: makes a matcher at the start.
    """

    kind: Any = "engine"
    grammar: str = ""
    parser: Callable[[str], Any] = field(default=str, repr=False)
    start: Callable[[], EngineMatcher] = field(repr=False)

    def __post_init__(self) -> None:
        """There is nothing to compile."""

    def accepts(self, text: str) -> bool:
        matcher = self.start()
        return matcher.consume_text(text) == len(text) and matcher.accepting

    def matcher(self, vocabulary: Vocabulary) -> tuple[EngineMatcher, float]:
        return self.start(), 0.0


def recover(processor: Any, vocabulary: Vocabulary) -> Constraint:
    """The constraint of an Outlines processor.

    Args:
        vocabulary: of the model that the processor was made for.

    Raises:
        UnsupportedFeatureError: it is of none of Outlines' three backends.
    """
    # A subclass may mask otherwise.
    if type(processor) is LLGuidanceLogitsProcessor:
        return Constraint(kind="engine", grammar=processor.grammar, parser=str)
    if type(processor) is XGrammarLogitsProcessor:
        made = partial(processor.xgr.GrammarMatcher, processor.compiled_grammar)
        return EngineConstraint(start=lambda: XGrammarMatcher(made(), vocabulary))
    if type(processor) is OutlinesCoreLogitsProcessor:
        return EngineConstraint(start=partial(IndexMatcher, IndexTable(processor.index, vocabulary)))
    raise UnsupportedFeatureError(
        f"{type(processor).__name__} is no processor of Outlines' backends llguidance, xgrammar or "
        "outlines_core, so its constraint cannot be read: pass an output type, or a constraint of this "
        "library as OutlinesGenerate(constraint).",
        feature="processor",
    )
