"""OutlinesGenerate: this library's decoding as one argument of an Outlines call."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from outlines.processors import OutlinesLogitsProcessor

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.errors import ArgumentError
from xpress_struct.integrations.outlines.recovered import recover
from xpress_struct.integrations.transformers import XPressGenerate
from xpress_struct.integrations.transformers.processed import Processor

__all__ = ["OutlinesGenerate"]


class OutlinesGenerate(XPressGenerate):
    """Decodes an Outlines call with speculation.

        model = outlines.from_transformers(hf_model, tokenizer)
        fast = OutlinesGenerate(tokenizer=tokenizer)
        model(prompt, Ticket, backend="xgrammar", max_new_tokens=200, custom_generate=fast)

    What Outlines compiled (llguidance, xgrammar, outlines_core) is read from its logits processor and
    followed with rollback. Under xgrammar and outlines_core the greedy ids are those of Outlines without it.
    Where Outlines is given no output type, a constraint of this library may be given here. Keep the object
    for further calls: it keeps the drafter. For all else see `XPressGenerate`.

    Args:
        as of `XPressGenerate`.

    Raises:
        ArgumentError: when called: a constraint is given both here and to Outlines.
        UnsupportedFeatureError: when called: the processor is of none of the three backends.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._recovered: weakref.WeakKeyDictionary[Any, tuple[Vocabulary, Constraint]] = (
            weakref.WeakKeyDictionary()
        )

    def _split(
        self, processors: list[Processor], vocabulary: Vocabulary
    ) -> tuple[Sequence[Constraint | None], list[Processor]]:
        theirs = [each for each in processors if isinstance(each, OutlinesLogitsProcessor)]
        if not theirs:
            return self._constraints, processors
        if len(theirs) > 1 or self._constraints != [None]:
            raise ArgumentError(
                "Two constraints are given: leave out the output type of the Outlines call or the constraint "
                "of OutlinesGenerate."
                if len(theirs) == 1
                else f"{len(theirs)} processors of Outlines are given: a call takes one constraint."
            )
        known = self._recovered.get(theirs[0])
        if known is None or known[0] is not vocabulary:
            known = vocabulary, recover(theirs[0], vocabulary)
            self._recovered[theirs[0]] = known
        return [known[1]], [each for each in processors if each is not theirs[0]]
