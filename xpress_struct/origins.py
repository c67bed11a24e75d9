"""Origins: where each token of a text came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

__all__ = ["ORIGINS", "Origin", "Piece", "counted", "cut"]

Origin = Literal["prefix", "forced", "looked_up", "drafted", "repaired", "bonus", "closed"]
"""Where a token came from.

    "prefix": the text that the answer began with; of pieces only, no token was emitted for it.
    "forced": the only legal one; nothing was drawn.
    "looked_up": a guess copied from the prompt, the output or the text that the grammar spells out, which the
        target confirmed.
    "drafted": a drafting model's own guess, which the target confirmed.
    "repaired": the same, where the refinement had changed the block's first guess: another token is the
        likeliest by the logits before it, or that one was illegal.
    "bonus": the target's own, behind the guesses that it confirmed; without a drafter every free token.
    "closed": of a closing at the token limit (`on_limit="close"`).
"""

Piece = tuple[str, Origin]
"""Text, and where it came from."""

ORIGINS: tuple[Origin, ...] = get_args(Origin)


def cut(text: str, ends: Sequence[int], origins: Sequence[Origin]) -> list[Piece]:
    """A text cut by its tokens; the pieces join to the text.

    A character that several tokens spell belongs to the last of them. Tokens that add no text have no piece.

    Args:
        ends: length of the text before the first token, then behind each; those behind a stop string's cut
            may lie behind the text's end.
        origins: one per token.
    """
    pieces, start = [], 0
    for end, origin in zip(ends, ("prefix", *origins), strict=True):
        if piece := text[start:end]:
            pieces.append((piece, origin))
        start = end
    return pieces


def counted(origins: Iterable[Origin]) -> dict[Origin, int]:
    """How many tokens came from where, in the order of `ORIGINS`; those that occur."""
    counts = Counter(origins)
    return {origin: counts[origin] for origin in ORIGINS if counts[origin]}
