"""The round: forced -> propose and walk -> score -> accept -> commit."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Sequence

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
from xpress_struct.decoding.device_rows import DeviceRows
from xpress_struct.decoding.proposer import Proposer
from xpress_struct.decoding.request import Block, Request
from xpress_struct.decoding.rows import Rows
from xpress_struct.decoding.text import TextAssembler
from xpress_struct.origins import Origin
from xpress_struct.results import FinishReason, Stats, TokenLogprobs, timed
from xpress_struct.sampling import COIN, Noise, uniform
from xpress_struct.target.target import Target

__all__ = ["Decoder"]

# Bytes of the text that tell the search for a closing how its line begins.
_LOOKED_BACK = 200


class Decoder:
    """One request's decoding. `rounds` runs it; `output`, `finish` and `stats` say how it went.

    Args:
        matcher: at the start of the output.
        proposer: who guesses.
        text: collects the text and finds stop strings.
    """

    def __init__(
        self,
        target: Target,
        matcher: Matcher,
        vocabulary: Vocabulary,
        proposer: Proposer,
        request: Request,
        text: TextAssembler,
        stats: Stats,
    ) -> None:
        self._target, self._matcher, self._proposer = target, matcher, proposer
        self._vocabulary = vocabulary
        self._request, self._text = request, text
        self._taps = proposer.taps
        self._cache = target.new_cache(self._taps) if self._taps else target.new_cache()  # type: ignore[call-arg]
        self._noise = Noise(request.key, target.width, target.device)
        self._pending = list(request.prompt)
        self._started = time.perf_counter()
        self.output: list[int] = []
        self.origins: list[Origin] = []
        # Length of the text at the start and behind each token.
        self.ends = [len(text.text)]
        self.logprobs: list[TokenLogprobs] = []
        self.finish: FinishReason | None = None
        self.stats = stats
        limit = request.max_new_tokens
        if target.max_length is not None:
            limit = min(limit, target.max_length - len(request.prompt))
        self._budget = limit
        # Rounds may emit tokens up to here; behind it, each is weighed against closing the text.
        self._free = limit - reserve(limit) if request.closes else limit
        # What closes the text from here, as far as it is known.
        self._closing: list[int] | None = None

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
        stats, pending = self.stats, len(self._pending)
        scored, drafted = stats.score_s, stats.draft_s + stats.refine_s
        self._renew_noise()
        block = self._propose()
        logits = self._score(block)
        accepted, rows = self._accept(block, logits)
        self._commit(block, accepted, rows)
        scored, drafted = stats.score_s - scored, stats.draft_s + stats.refine_s - drafted
        self._proposer.learn(block, accepted.count, pending, scored, drafted)

    def _commit_forced(self) -> None:
        """Commits what is legal as the only token: its masked probability is 1."""
        while self.finish is None and (run := self._forced_run()):
            self._matcher.commit(run)
            self._pending += run
            for place, token in enumerate(run):
                self.stats.forced += 1
                self._emit(token, "forced", last=place == len(run) - 1)

    def _emit_or_close(self) -> None:
        """Emits one token if the text can still be closed behind it within the budget; else closes it.

        Where no closing is found at either place, it goes on and looks again behind the next token.
        """
        left = self._budget - len(self.output)
        forced = self._matcher.forced()[:1]
        if forced:
            accepted, rows = Accepted(0, forced[0]), None
        else:
            self._renew_noise()
            logits = self._score(Block())
            self._keep(self._cache.lengths[0])
            accepted, rows = self._accept(Block(), logits)
            self._pending = []
            self.stats.note_round(0, 0)
        closing, self._closing = self._closing, self._closing_behind(accepted.token, left, bool(forced))
        if self._closing is None and len(self.output) == self._free:
            closing = self._search(self._matcher, left)
        if self._closing is not None or closing is None:
            self._matcher.commit([accepted.token])
            self._pending.append(accepted.token)
            self.stats.forced += rows is None
            self._emit(accepted.token, "forced" if rows is None else "bonus", last=True, rows=rows)
            if self.finish == "length" and self._closing == []:
                self.finish = "closed"
            return
        self._matcher.commit(closing)
        for token in closing:
            self._emit(token, "closed", last=False)
        self.finish = "closed"

    def _closing_behind(self, token: int, left: int, forced: bool) -> list[int] | None:
        """What closes the text behind a token of this place, with all but one of the tokens left."""
        if forced and self._closing and self._closing[0] == token:
            return self._closing[1:]  # a search from there would find the same
        path = self._matcher.fork()
        path.commit([token])
        return self._search(path, left - 1, [token])

    def _search(self, path: Matcher, most: int, token: Sequence[int] = ()) -> list[int] | None:
        written = self._text.text.encode()[-_LOOKED_BACK:] + self._vocabulary.decode(token)
        return closing_tokens(path, self._vocabulary, most, written)

    def _forced_run(self) -> list[int]:
        with timed(self.stats, "walk_s"):
            return self._matcher.forced()[: max(0, self._free - len(self.output))]

    def _check_stopped(self) -> None:
        if self.finish is None and self._request.cancelled():
            self.finish = "cancelled"
        deadline = self._request.deadline
        if self.finish is None and deadline is not None and time.perf_counter() >= deadline:
            self.finish = "timeout"

    def _renew_noise(self) -> None:
        """The noise of this round.

        The coupled rule lives on noise that belongs to a place. The block rule looks at tokens and coins of
        places that it may leave to the next round: used there again, they would bias it.
        """
        if self._request.rule == "coupled":
            self._noise.forget(len(self._request.prompt) + len(self.output))
        else:
            key = self._request.key.fresh(len(self.output))
            self._noise = Noise(key, self._target.width, self._target.device)

    def _propose(self) -> Block:
        left = self._free - len(self.output) - 1
        return self._proposer.propose(self._matcher, self.output, left, self._noise)

    def _score(self, block: Block) -> Tensor:
        sent = block.tokens[: block.sent]
        with timed(self.stats, "score_s"):
            logits = self._target.score(self._cache, self._pending + sent, len(sent) + 1)
        if self.stats.first_token_s is None:
            self.stats.first_token_s = time.perf_counter() - self._started
        return logits

    def _accept(self, block: Block, logits: Tensor) -> tuple[Accepted, Rows]:
        request, stats = self._request, self.stats
        started, elsewhere = time.perf_counter(), stats.mask_s + stats.score_s
        place = len(request.prompt) + len(self.output)
        # Rows that are decided together, or looked ahead of, move past what will stand.
        matcher = self._matcher.fork() if self._looks_ahead else self._matcher
        rows = (DeviceRows if self._at_once else Rows)(
            logits,
            block.tokens,
            block.legal,
            block.ends,
            matcher,
            request.params,
            self._noise,
            place,
            stats,
            keep_masks=request.logprobs is not None,
        )

        def coin(slot: int) -> float:
            return uniform(self._noise.key, place + slot, COIN)

        if request.rule == "coupled":
            accepted = accept_coupled(block.tokens, rows.choice)
        elif isinstance(rows, DeviceRows):
            accepted = rows.accept(request.rule, block.q, coin)
        else:
            rule = accept_token_level if request.rule == "token" else accept_block
            accepted = rule(block.tokens, block.q, rows.p, coin, rows.draw)
        spent = time.perf_counter() - started
        stats.accept_s += spent - (stats.mask_s + stats.score_s - elsewhere)
        return accepted, rows

    def _commit(self, block: Block, accepted: Accepted, rows: Rows) -> None:
        kept = block.tokens[: accepted.count]
        ended = accepted.count > block.sent
        emitted = kept if ended else [*kept, accepted.token]
        self._matcher.commit(emitted[0 if self._looks_ahead else rows.advanced :])
        self._keep(self._cache.lengths[0] - (block.sent - min(accepted.count, block.sent)))
        self._pending = emitted[-1:]
        origins: list[Origin] = [*block.origins[: len(kept)], "bonus"]
        self.stats.note_round(len(block.guessed), sum(slot < accepted.count for slot in block.guessed))
        for slot, token in enumerate(emitted):
            if self.finish is None:
                self.stats.forced += origins[slot] == "forced"
                self._emit(token, origins[slot], last=slot == len(emitted) - 1, rows=rows, slot=slot)

    @property
    def _at_once(self) -> bool:
        """Whether a transfer from the device costs more than rows that are not needed."""
        return self._target.device.type != "cpu"

    @property
    def _looks_ahead(self) -> bool:
        return self._request.rule == "block" or self._at_once

    def _keep(self, length: int) -> None:
        """Rolls the cache back to a length; what the last forward left in it is read by the drafter."""
        dropped = self._cache.lengths[0] - length
        self._cache.rollback_to([length])
        if self._taps and (states := self._cache.tapped) is not None:
            self._proposer.read(states[: len(states) - dropped])

    def _emit(
        self, token: int, origin: Origin, *, last: bool, rows: Rows | None = None, slot: int = 0
    ) -> None:
        """Adds a token to the output and sees whether the text is finished.

        The matcher stands behind the last token committed with this one.
        """
        self.output.append(token)
        self.origins.append(origin)
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
        self.ends.append(len(self._text.text))

    def _logprobs(self, token: int, rows: Rows | None, slot: int) -> TokenLogprobs:
        if rows is None:
            return TokenLogprobs(token, 0.0, ((token, 0.0),))
        scores = rows.logprobs(slot)
        best = scores.topk(min(self._request.logprobs or 0, scores.shape[-1]))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return TokenLogprobs(token, float(scores[token]), tuple((i, s) for i, s in pairs if s > -math.inf))
