"""Output tokens of a model that thinks -> thoughts, and the text of the answer."""

from __future__ import annotations

import codecs
from typing import Any

from xpress_struct.constraints.thinking_block import Place, ThinkingBlock
from xpress_struct.decoding.text import TextAssembler

__all__ = ["ThinkingText"]


class ThinkingText(TextAssembler):
    """Thoughts up to the end marker, then the text; stop strings count in the text alone.

    Args:
        block: where the thoughts end.
        options: as of `TextAssembler`.
    """

    def __init__(self, block: ThinkingBlock, *options: Any) -> None:
        super().__init__(block.vocabulary, *options)
        self._block, self._place = block, Place()
        self._thought_decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._thoughts = ""

    @property
    def thinking(self) -> str:
        return self._thoughts

    def feed(self, token: int) -> bool:
        step = self._block.read(self._place, token)
        if self._place.inside:
            self._thoughts += self._thought_decoder.decode(step.thought, final=not step.place.inside)
        self._place = step.place
        return self._add(step.answer) if step.answer else False
