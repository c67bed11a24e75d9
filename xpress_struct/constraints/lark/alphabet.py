"""One alphabet for all terminals of a grammar: the classes of characters that none of them tells apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xpress_struct.constraints.json_schema import charset as cs
from xpress_struct.constraints.json_schema.automaton import atoms

__all__ = ["Alphabet"]

_MOST_CLASSES = 400


class Alphabet:
    """A partition of all characters; its classes are numbered, and a set of them is a bit mask.

    Args:
        charsets: sets that must be unions of classes.

    Raises:
        regular.TooComplexError: there are too many classes.
    """

    def __init__(self, charsets: Iterable[cs.Charset]) -> None:
        self.classes = atoms(sorted(set(charsets)), _MOST_CLASSES)
        self.size = len(self.classes)
        self.end = self.size  # stands for the end of the text, after the classes
        self._masks: dict[cs.Charset, int] = {}

    def mask(self, charset: cs.Charset) -> int:
        """The classes of a set."""
        found = self._masks.get(charset)
        if found is None:
            found = 0
            for index, one in enumerate(self.classes):
                if any(low <= one[0][0] <= high for low, high in charset):
                    found |= 1 << index
            self._masks[charset] = found
        return found

    def charset(self, mask: int) -> cs.Charset:
        """The characters of some classes."""
        return cs.union(*(self.classes[i] for i in members(mask & ~(1 << self.end))))

    def word(self, text: str) -> list[int]:
        """The classes of a text's characters."""
        return [self.index(ord(c)) for c in text]

    def index(self, code: int) -> int:
        """The class of a character."""
        for index, one in enumerate(self.classes):
            if any(low <= code <= high for low, high in one):
                return index
        raise ValueError(f"U+{code:04X} is no character")


def members(mask: int) -> Iterator[int]:
    """The numbers in a bit mask."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
