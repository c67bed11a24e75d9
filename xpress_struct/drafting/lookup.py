"""Lookup drafter: the answer copies from the prompt and from itself.

Prompt lookup (Saxena 2023; `prompt_lookup_num_tokens` of transformers) matches token n-grams. Here
bytes are matched: a word in the prompt (" Houston") and the same word after a quote ("Houston") are
different tokens but the same bytes. The continuation is tokenised anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.drafting.drafter import Draft, DraftContext
from xpress_struct.errors import ArgumentError
from xpress_struct.sampling import Noise

__all__ = ["LookupDrafter"]


class LookupDrafter:
    """Guesses that what followed the last bytes before follows them again.

    Args:
        longest: longest context that is compared, in bytes.
        shortest: shortest context that counts as a match, in bytes.
    """

    resumes = True
    name = "lookup"
    taps: tuple[int, ...] = ()
    longest = 16
    honours = frozenset[str]()

    def __init__(self, longest: int = 48, shortest: int = 2) -> None:
        if not 1 <= shortest <= longest:
            raise ArgumentError(f"lookup needs 1 <= shortest <= longest, not {shortest} and {longest}.")
        self.longest, self.shortest = longest, shortest

    def begin(self, context: DraftContext) -> _LookupSession:
        return _LookupSession(self, context.vocabulary.decode(context.prompt), context.vocabulary)


class _LookupSession:
    def __init__(self, drafter: LookupDrafter, prompt: bytes, vocabulary: Vocabulary) -> None:
        self._drafter = drafter
        self._prompt = prompt
        self._vocabulary = vocabulary

    def propose(
        self, output: Sequence[int], room: int, matcher: Matcher, noise: Noise, drafted: int = 0
    ) -> Draft:
        text = self._prompt + self._vocabulary.decode(output)
        end, matched = self._continuation(text)
        if not matched:
            return Draft([])
        # A token spells four bytes or so; twice that leaves the last token of the room whole.
        follows = text[end : end + 8 * room]
        return Draft(self._vocabulary.encode_bytes(follows)[:room], matched=matched, origin="looked_up")

    def _continuation(self, text: bytes) -> tuple[int, int]:
        """Where the longest earlier match of the text's end ends, and its length; the latest of equal ones.

        A match of some length holds matches of all shorter ones, so the length is found by halving: a
        handful of searches, also in long prompts.
        """
        low, high = self._drafter.shortest, min(self._drafter.longest, len(text) - 1)
        if high < low:
            return 0, 0
        place = text.rfind(text[-low:], 0, len(text) - 1)
        if place < 0:
            return 0, 0
        while low < high:
            middle = (low + high + 1) // 2
            found = text.rfind(text[-middle:], 0, len(text) - 1)
            if found < 0:
                high = middle - 1
            else:
                place, low = found, middle
        return place + low, low
