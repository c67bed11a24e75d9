"""Output tokens -> text: whole characters only, nothing that would have to be taken back."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence

from xpress_struct.constraints.vocabulary import Vocabulary

__all__ = ["TextAssembler"]


class TextAssembler:
    """Joins token bytes into text as they come.

    Bytes that are no UTF-8 become U+FFFD; an unfinished character at the very end is left out.

    Args:
        prefix: text that the answer begins with.
        stop_strings: texts that end the answer.
        include_stop: keep the stop string in the text.
        accepts: a constraint has the first word: a stop string counts only where what is kept is a
            whole text of it. None without a constraint.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        prefix: str = "",
        stop_strings: Sequence[str] = (),
        include_stop: bool = False,
        accepts: Callable[[str], bool] | None = None,
    ) -> None:
        self._vocabulary = vocabulary
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._stops = tuple(stop_strings)
        self._include_stop = include_stop
        self._accepts = accepts
        self._held_back = max((len(stop) for stop in stop_strings), default=1) - 1
        self._taken = 0
        self._searched = len(prefix)
        self.text = prefix
        self.stopped = False

    def feed(self, token: int) -> bool:
        """Adds a token; True when a stop string ended the text."""
        if token in self._vocabulary.special_ids:
            return False
        return self._add(self._vocabulary.tokens[token])

    def _add(self, spelled: bytes) -> bool:
        self.text += self._decoder.decode(spelled)
        self.stopped = bool(self._stops) and self._cut_at_stop()
        return self.stopped

    @property
    def thinking(self) -> str | None:
        """The thoughts so far; None where there is no thinking block."""
        return None

    def take(self, *, final: bool = False) -> str:
        """Text not taken before that can no longer change; all of it when `final`."""
        whole = final or self.stopped
        end = len(self.text) if whole else max(self._taken, len(self.text) - self._held_back)
        piece = self.text[self._taken : end]
        self._taken = end
        return piece

    def _cut_at_stop(self) -> bool:
        start = self._searched
        hits = sorted(
            (place, stop)
            for stop in self._stops
            for place in _occurrences(self.text, stop, max(0, start - len(stop) + 1))
        )
        self._searched = len(self.text)
        for place, stop in hits:
            kept = self.text[: place + len(stop) * self._include_stop]
            if self._accepts is None or self._accepts(kept):
                self.text = kept
                return True
        return False


def _occurrences(text: str, part: str, start: int) -> list[int]:
    places = []
    place = text.find(part, start)
    while place >= 0:
        places.append(place)
        place = text.find(part, place + 1)
    return places
