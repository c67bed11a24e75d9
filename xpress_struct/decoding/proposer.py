"""Propose and walk: a drafter's guesses, as far as the grammar takes them, with what it forces between."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.decoding.guard import Guard
from xpress_struct.decoding.request import Block
from xpress_struct.drafting.drafter import Draft, Drafter, DraftSession
from xpress_struct.results import Stats, timed
from xpress_struct.sampling import Noise

__all__ = ["BlockLength", "Guesser", "Proposer"]

# A forced run inside a block needs no guess, so it does not count against the block length; this
# bounds what is scored in vain when the guess before it fails.
_LONGEST_DRAFT = 64
# The last slot of an adapted block is reached with at least this probability.
_REACHED = 0.1
# Rounds by which a count has lost two thirds of its weight.
_MEMORY = 8


class Guesser:
    """A drafter with its session of one request."""

    def __init__(self, drafter: Drafter, session: DraftSession) -> None:
        self.name, self.session = drafter.name, session
        self.resumes: bool = drafter.resumes
        self.taps: tuple[int, ...] = getattr(drafter, "taps", ())
        self.longest: int = getattr(drafter, "longest", 16)


class BlockLength:
    """How many guesses a round asks for: a fixed number, or one that follows recent acceptance.

    When each guess stands with probability a, the k-th is of use with probability a ** k. The length is
    the last k whose use is likely enough. Only past rounds count, so no rule is biased. What was looked
    up and what was drafted are counted apart: copies are long where they are right.
    """

    def __init__(self, fixed: int | None) -> None:
        self._fixed = fixed
        self._counts = dict.fromkeys((False, True), (4.0, 1.0))

    def ask(self, longest: int, copied: bool | None = None) -> int:
        """Guesses to ask for, at most `longest` of an adapted block.

        Args:
            copied: whether they were looked up; None: as many as either kind may be.
        """
        if self._fixed is not None:
            return self._fixed
        counts = self._counts.values() if copied is None else [self._counts[copied]]
        rate = max(stood / (stood + fell) for stood, fell in counts)
        return max(2, min(longest, math.ceil(math.log(_REACHED) / math.log(rate))))

    def learn(self, proposed: int, accepted: int, copied: bool = False) -> None:
        """Notes one round's guesses."""
        if proposed:
            keep = 1 - 1 / _MEMORY
            stood, fell = self._counts[copied]
            self._counts[copied] = stood * keep + accepted, max(fell * keep + (accepted < proposed), 1e-3)


class Proposer:
    """Who guesses in each round, and how much.

    Args:
        guessers: the drafter, then those that the guard may fall back to.
        guard: chooses among them by round.
        length: guesses per round.
        device: where q goes.
    """

    def __init__(
        self,
        guessers: Sequence[Guesser],
        guard: Guard,
        length: BlockLength,
        device: torch.device,
        stats: Stats,
    ) -> None:
        self._guessers, self._guard, self._length = guessers, guard, length
        self._device, self._stats = device, stats
        self._reports: list[tuple[int, Tensor]] = []

    @property
    def taps(self) -> tuple[int, ...]:
        """Layers of the target that the drafter reads."""
        return self._guessers[0].taps if self._guessers else ()

    def read(self, states: Tensor) -> None:
        """Hands on the tapped states of tokens that the cache keeps."""
        self._guessers[0].session.read(states)  # type: ignore[attr-defined]

    def propose(self, matcher: Matcher, output: Sequence[int], left: int, noise: Noise) -> Block:
        """Guesses behind `output`, walked by the grammar; forced runs are filled in between.

        Args:
            matcher: at the end of the output; it is not moved.
            left: how many tokens may be drafted.
            noise: of the round.
        """
        block = Block()
        guesser = self._guard.choose(self._guessers)
        if guesser is None or left <= 0:
            return block
        path = matcher.fork()
        room = min(self._length.ask(guesser.longest), left)
        while len(block.guessed) < room and len(block.tokens) < min(left, _LONGEST_DRAFT):
            draft = self._guess(guesser, path, output, block, room - len(block.guessed), noise)
            if not block.tokens:  # whoever guesses first says how long the block may be
                room = min(room, self._length.ask(guesser.longest, draft.origin == "looked_up"))
            more = self._walk(path, draft, block, room, left)
            if not more or not guesser.resumes:
                break
        block.ends = path.ended
        block.sent = block.legal - block.ends
        return block

    def learn(self, block: Block, accepted: int, pending: int, scored: float, overhead: float) -> None:
        """Notes how a round went; see `Guard.learn`."""
        for slots, sums in self._reports:
            self._stats.note_draft(0, (), slots, *sums.tolist())
        self._reports.clear()
        stood = sum(slot < accepted for slot in block.guessed)
        copied = bool(block.guessed) and block.origins[block.guessed[0]] == "looked_up"
        self._length.learn(len(block.guessed), stood, copied)
        self._guard.learn(stood, pending, block.sent, scored, overhead)

    def _guess(
        self,
        guesser: Guesser,
        path: Matcher,
        output: Sequence[int],
        block: Block,
        room: int,
        noise: Noise,
    ) -> Draft:
        """What the grammar spells out, else what the drafter says.

        The last token that is spelled may hold, as the target writes it, what comes behind it too: a quote
        with the comma. So there the drafter goes first.
        """
        stats = self._stats
        inside = stats.refine_s + stats.mask_s
        with timed(stats, "draft_s"):
            spelled = path.spelled() if guesser.resumes else []
            if len(spelled) > 1:
                return Draft(spelled[:-1][:room], origin="looked_up")
            so_far = [*output, *block.tokens]
            draft = guesser.session.propose(so_far, room, path, noise, len(block.tokens))
            # What was drawn is never thrown away: it would bias the rules that ask for its probability.
            if spelled and draft.q is None and not (draft.tokens and path.legal(draft.tokens[0])):
                draft = Draft(spelled, origin="looked_up")
        stats.draft_s -= stats.refine_s + stats.mask_s - inside
        if draft.report is not None:
            self._reports.append(draft.report)
        return draft

    def _walk(self, path: Matcher, draft: Draft, block: Block, room: int, left: int) -> bool:
        """Adds the legal part of a guess to the block, then what it forces; False at its end.

        A draft may hold forced tokens, which are no guesses: it is cut where the block has `room` guesses.
        """
        with timed(self._stats, "walk_s"):
            start = len(block.tokens)
            guess, q = draft.tokens[: left - start], draft.q
            legal = 0
            for token in guess:
                chosen = not path.forced()
                if chosen and len(block.guessed) == room:
                    guess = guess[:legal]
                    break
                if not path.follow([token]):
                    break
                if chosen:
                    block.guessed.append(start + legal)
                block.origins.append(draft.origin_of(legal) if chosen else "forced")
                legal += 1
            # An illegal token that was drawn is offered and refused; cutting it would be biased.
            # Behind an end token there is nothing to offer.
            if q is not None and legal < len(guess) and not path.ended:
                block.guessed.append(start + legal)
                block.origins.append(draft.origin_of(legal))
                offered = guess[: legal + 1]
            else:
                offered = guess[:legal]
            block.tokens += offered
            block.legal = start + legal
            block.q += [None] * len(offered) if q is None else list(q[: len(offered)].to(self._device))
            if len(offered) > legal or not legal:
                return False
            # The end token of a complete text comes free as the next forced one.
            run = [] if path.complete else path.forced()[: left - len(block.tokens)]
            path.commit(run)
            block.tokens += run
            block.origins += ["forced"] * len(run)
            block.legal += len(run)
            block.q += [None] * len(run)
            return not path.complete
