"""Decoding that takes no forced token for free, so that a drafter's blocks stand alone.

The library commits what the grammar forces without a forward. Here the round does not learn that a token is
forced: it scores and accepts it like any other. The drafter is shown the grammar as always, since its
masks are what its drafts are made under.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.matcher import Matcher
from xpress_struct.drafting.drafter import Draft, DraftContext, Drafter, TappedSession
from xpress_struct.sampling import Noise

__all__ = ["UnforcedDrafter", "unforced"]


def unforced(constraint: Constraint | None) -> Constraint | None:
    """The same constraint, with the same masks, that names no forced tokens to the round."""
    if constraint is None:
        return None
    inner = constraint.matcher_class
    hiding = cast(Any, lambda engine, vocabulary: _Hiding(inner(engine, vocabulary)))
    return replace(constraint, matcher_class=hiding)


class UnforcedDrafter:
    """A drafter that reads hidden states, and sees the grammar behind `unforced`."""

    def __init__(self, drafter: Drafter) -> None:
        self._drafter = drafter
        self.resumes, self.name, self.taps = drafter.resumes, drafter.name, drafter.taps
        self.longest, self.honours = drafter.longest, drafter.honours

    def begin(self, context: DraftContext) -> _Session:
        return _Session(cast(TappedSession, self._drafter.begin(context)))


class _Session:
    def __init__(self, session: TappedSession) -> None:
        self._session = session
        self.read = session.read

    def propose(
        self, output: Sequence[int], room: int, matcher: Matcher, noise: Noise, drafted: int = 0
    ) -> Draft:
        shown = matcher.inner if isinstance(matcher, _Hiding) else matcher
        return self._session.propose(output, room, shown, noise, drafted)


class _Hiding:
    """A matcher that keeps to itself what is forced."""

    def __init__(self, inner: Matcher) -> None:
        self.inner = inner

    @property
    def ended(self) -> bool:
        return self.inner.ended

    @property
    def ended_silently(self) -> bool:
        return self.inner.ended_silently

    @property
    def accepting(self) -> bool:
        return self.inner.accepting

    @property
    def complete(self) -> bool:
        return self.inner.complete

    def forced(self) -> list[int]:
        return []

    spelled = forced

    def ending(self) -> bytes | None:
        return self.inner.ending()

    def legal(self, token: int) -> bool:
        return self.inner.legal(token)

    def mask(self) -> np.ndarray:
        return self.inner.mask()

    def follow(self, draft: Sequence[int]) -> int:
        return self.inner.follow(draft)

    def commit(self, tokens: Sequence[int]) -> None:
        self.inner.commit(tokens)

    def rollback(self, count: int) -> None:
        self.inner.rollback(count)

    def fork(self) -> _Hiding:
        return _Hiding(self.inner.fork())
