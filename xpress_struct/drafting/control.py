"""How a drafter is asked to draft."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["DraftControl", "Refine"]

Refine = Literal["none", "sequential", "parallel", "low-confidence", "chunked"]


@dataclass(frozen=True, slots=True)
class DraftControl:
    """What a caller may ask of a drafter; None leaves it to the drafter.

    Attributes:
        refine: how a block's tokens are made to depend on those to their left; see `refinement.refine`.
        refine_passes: parallel passes, at most; "auto" stops adding passes when the last one gained
            under 1 % of acceptance.
        denoising_steps: backbone passes over one block, 1 to 40.
        draft_temperature: of the drafts; the request's own by default, 0 drafts by argmax.
        draft_confidence: a block ends before the first slot whose likeliest token is less likely
            than this, by the drafter's own account.
    """

    refine: Refine | None = None
    refine_passes: int | Literal["auto"] | None = None
    denoising_steps: int | None = None
    draft_temperature: float | None = None
    draft_confidence: float | None = None

    @property
    def asked(self) -> tuple[str, ...]:
        """Names of what is not left to the drafter."""
        return tuple(name for name in self.__slots__ if getattr(self, name) is not None)
