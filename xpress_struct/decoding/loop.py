"""The round: forced -> propose and walk -> score -> accept -> commit."""

from __future__ import annotations

import math
import time
from collections.abc import Generator

from torch import Tensor

from xpress_struct.constraints.matcher import Matcher
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.decoding.acceptance import (
    Accepted,
    accept_block,
    accept_coupled,
    accept_token_level,
)
from xpress_struct.decoding.closing import closing_tokens, reserve
from xpress_struct.decoding.request import Block, Request, timed
from xpress_struct.decoding.rows import Rows
from xpress_struct.decoding.text import TextAssembler
from xpress_struct.drafting.drafter import Draft, DraftSession
from xpress_struct.results import FinishReason, Stats, TokenLogprobs
from xpress_struct.sampling import COIN, NoiseKey, uniform
from xpress_struct.target.target import Target

__all__ = ["Decoder"]

# A forced run inside a block needs no guess, so it does not count against the block length; this
# bounds what is scored in vain when the guess before it fails.
_LONGEST_DRAFT = 64


class Decoder:
    """One request's decoding. `rounds` runs it; `output`, `finish` and `stats` say how it went.

    Args:
        matcher: at the start of the output.
        session: who guesses; None decodes without speculation.
        text: collects the text and finds stop strings.
    """

    def __init__(
        self,
        target: Target,
        matcher: Matcher,
        vocabulary: Vocabulary,
        session: DraftSession | None,
        request: Request,
        text: TextAssembler,
        stats: Stats,
        *,
        resumes: bool = False,
    ) -> None:
        self._target, self._matcher, self._session = target, matcher, session
        self._vocabulary = vocabulary
        self._request, self._text, self._resumes = request, text, resumes
        self._cache = target.new_cache()
        self._pending = list(request.prompt)
        self._started = time.perf_counter()
        self.output: list[int] = []
        self.logprobs: list[TokenLogprobs] = []
        self.finish: FinishReason | None = None
        self.stats = stats
        limit = request.max_new_tokens
        if target.max_length is not None:
            limit = min(limit, target.max_length - len(request.prompt))
        self._budget = limit
        # Rounds may emit tokens up to here; behind it, each is weighed against closing the text.
        self._free = limit - reserve(limit) if request.closes else limit

    def rounds(self) -> Generator[None, None, None]:
        """Runs rounds until the text is finished; yields after each, when text may have grown."""
        if self._matcher.ended:
            self.finish = "stop"
        while self.finish is None:
            self._round()
            yield

    def _round(self) -> None:
        self._commit_forced()
        self._check_stopped()
        if self.finish is not None:
            return
        if len(self.output) >= self._free:
            self._emit_or_close()
            return
        block = self._propose()
        logits = self._score(block)
        accepted, rows = self._accept(block, logits)
        self._commit(block, accepted, rows)

    def _commit_forced(self) -> None:
        """Commits what is legal as the only token: its masked probability is 1."""
        while self.finish is None and (run := self._forced_run()):
            self._matcher.commit(run)
            self._pending += run
            for place, token in enumerate(run):
                self.stats.forced += 1
                self._emit(token, last=place == len(run) - 1)

    def _emit_or_close(self) -> None:
        """Emits one token if the text can still be closed behind it within the budget; else closes it."""
        left = self._budget - len(self.output)
        forced = self._matcher.forced()[:1]
        if forced:
            accepted, rows = Accepted(0, forced[0]), None
        else:
            logits = self._score(Block())
            self._cache.rollback_to(self._cache.lengths)
            accepted, rows = self._accept(Block(), logits)
            self._pending = []
            self.stats.note_round(0, 0)
        path = self._matcher.fork()
        path.commit([accepted.token])
        if closing_tokens(path, self._vocabulary, left - 1) is not None:
            self._matcher.commit([accepted.token])
            self._pending.append(accepted.token)
            self.stats.forced += rows is None
            self._emit(accepted.token, last=True, rows=rows)
            return
        closing = closing_tokens(self._matcher, self._vocabulary, left)
        if closing is None:  # this budget never was enough
            self.finish = "length"
            return
        self._matcher.commit(closing)
        for token in closing:
            self._emit(token, last=False)
        self.finish = "closed"

    def _forced_run(self) -> list[int]:
        with timed(self.stats, "walk_s"):
            return self._matcher.forced()[: max(0, self._free - len(self.output))]

    def _check_stopped(self) -> None:
        if self.finish is None and self._request.cancelled():
            self.finish = "cancelled"
        deadline = self._request.deadline
        if self.finish is None and deadline is not None and time.perf_counter() >= deadline:
            self.finish = "timeout"

    def _propose(self) -> Block:
        """Guesses, walked by the grammar; forced runs are filled in between."""
        block = Block()
        left = self._free - len(self.output) - 1
        if self._session is None or left <= 0:
            return block
        path = self._matcher.fork()
        room = min(self._request.block_length, left)
        while len(block.guessed) < room and len(block.tokens) < min(left, _LONGEST_DRAFT):
            with timed(self.stats, "draft_s"):
                guess = self._guess(path, block, room - len(block.guessed))
            more = self._walk(path, guess.tokens, guess.q, block, left)
            if not more or not self._resumes:
                break
        block.ends = path.ended
        block.sent = block.legal - block.ends
        return block

    def _guess(self, path: Matcher, block: Block, room: int) -> Draft:
        """What the grammar spells out, else what the drafter says."""
        assert self._session is not None
        if self._resumes and (spelled := path.spelled()):
            return Draft(spelled[:room])
        return self._session.propose([*self.output, *block.tokens], room, path, self._key())

    def _walk(self, path: Matcher, guess: list[int], q: Tensor | None, block: Block, left: int) -> bool:
        """Adds the legal part of a guess to the block, then what it forces; False at its end."""
        with timed(self.stats, "walk_s"):
            guess = guess[: left - len(block.tokens)]
            legal = path.follow(guess)
            # An illegal token that was drawn is offered and refused; cutting it would be biased.
            # Behind an end token there is nothing to offer.
            offered = guess[: legal + (q is not None and not path.ended)]
            start = len(block.tokens)
            block.guessed += range(start, start + len(offered))
            block.tokens += offered
            block.legal = start + legal
            block.q += [None] * len(offered) if q is None else list(q[: len(offered)].to(self._target.device))
            if len(offered) > legal or not legal:
                return False
            # The end token of a complete text comes free as the next forced one.
            run = [] if path.complete else path.forced()[: left - len(block.tokens)]
            path.commit(run)
            block.tokens += run
            block.legal += len(run)
            block.q += [None] * len(run)
            return not path.complete

    def _key(self) -> NoiseKey:
        """The noise of this round.

        The coupled rule lives on noise that belongs to a place. The block rule looks at tokens and coins of
        places that it may leave to the next round: used there again, they would bias it.
        """
        key = self._request.key
        return key if self._request.rule == "coupled" else key.fresh(len(self.output))

    def _score(self, block: Block) -> Tensor:
        sent = block.tokens[: block.sent]
        with timed(self.stats, "score_s"):
            logits = self._target.score(self._cache, self._pending + sent, len(sent) + 1)
        if self.stats.first_token_s is None:
            self.stats.first_token_s = time.perf_counter() - self._started
        return logits

    def _accept(self, block: Block, logits: Tensor) -> tuple[Accepted, Rows]:
        request = self._request
        started, masks_before = time.perf_counter(), self.stats.mask_s
        place, key = len(request.prompt) + len(self.output), self._key()
        # The block rule looks ahead of what it keeps.
        matcher = self._matcher.fork() if request.rule == "block" else self._matcher
        rows = Rows(
            logits,
            block.tokens,
            block.legal,
            block.ends,
            matcher,
            request.params,
            key,
            place,
            self.stats,
            keep_masks=request.logprobs is not None,
        )
        if request.rule == "coupled":
            accepted = accept_coupled(block.tokens, rows.choice)
        else:
            rule = accept_token_level if request.rule == "token" else accept_block
            accepted = rule(
                block.tokens,
                block.q,
                rows.p,
                lambda slot: uniform(key, place + slot, COIN),
                rows.draw,
            )
        spent = time.perf_counter() - started
        self.stats.accept_s += spent - (self.stats.mask_s - masks_before)
        return accepted, rows

    def _commit(self, block: Block, accepted: Accepted, rows: Rows) -> None:
        kept = block.tokens[: accepted.count]
        ended = accepted.count > block.sent
        emitted = kept if ended else [*kept, accepted.token]
        moved = 0 if self._request.rule == "block" else rows.advanced
        self._matcher.commit(emitted[moved:])
        cached = self._cache.lengths[0] - (block.sent - min(accepted.count, block.sent))
        self._cache.rollback_to([cached])
        self._pending = emitted[-1:]
        guessed = set(block.guessed)
        self.stats.note_round(len(block.guessed), sum(slot < accepted.count for slot in block.guessed))
        for slot, token in enumerate(emitted):
            if self.finish is None:
                self.stats.forced += slot < len(kept) and slot not in guessed
                self._emit(token, last=slot == len(emitted) - 1, rows=rows, slot=slot)

    def _emit(self, token: int, *, last: bool, rows: Rows | None = None, slot: int = 0) -> None:
        """Adds a token to the output and sees whether the text is finished.

        The matcher stands behind the last token committed with this one.
        """
        self.output.append(token)
        if self._request.logprobs is not None:
            self.logprobs.append(self._logprobs(token, rows, slot))
        ended = last and self._matcher.ended
        silent = last and self._matcher.ended_silently
        if not silent and self._text.feed(token):
            self.finish = "stop_string"
        elif ended:
            self.finish = "stop"
        elif len(self.output) >= self._budget:
            self.finish = "stop" if self._matcher.complete else "length"

    def _logprobs(self, token: int, rows: Rows | None, slot: int) -> TokenLogprobs:
        if rows is None:
            return TokenLogprobs(token, 0.0, ((token, 0.0),))
        scores = rows.logprobs(slot)
        best = scores.topk(min(self._request.logprobs or 0, scores.shape[-1]))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return TokenLogprobs(token, float(scores[token]), tuple((i, s) for i, s in pairs if s > -math.inf))
