"""Model: a target, its tokenizer and a drafter; starts requests and draws again where a check fails."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from xpress_struct.asynchronous import AsyncStream, in_thread, stopped_by
from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.json_schema import json_schema
from xpress_struct.constraints.matcher import FreeMatcher, Matcher, TextMatcher
from xpress_struct.constraints.thinking import ThinkingMatcher
from xpress_struct.constraints.thinking_block import thinking_block
from xpress_struct.constraints.vocabulary import Vocabulary
from xpress_struct.decoding.costs import Costs
from xpress_struct.decoding.guard import Guard, History
from xpress_struct.decoding.loop import Decoder
from xpress_struct.decoding.proposer import BlockLength, Guesser, Proposer
from xpress_struct.decoding.request import Request
from xpress_struct.decoding.text import TextAssembler
from xpress_struct.decoding.thinking_text import ThinkingText
from xpress_struct.drafting.drafter import DraftContext, Drafter
from xpress_struct.drafting.loading import as_drafter
from xpress_struct.drafting.lookup import LookupDrafter
from xpress_struct.errors import ArgumentError, OutputValidationError, UnsupportedFeatureError
from xpress_struct.options import GenerateOptions, Options
from xpress_struct.prompt import Prompt, encode_prompt, token_ids, with_constraint
from xpress_struct.results import Generation, Stats
from xpress_struct.sampling import NoiseKey
from xpress_struct.streaming import BufferedStream, Stream
from xpress_struct.target.target import Target
from xpress_struct.thinking import most_thoughts, with_open_block

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase
    from typing_extensions import Unpack

__all__ = ["Model"]


class Model:
    """A target, its tokenizer and a drafter: the thing that generates. Safe for threads.

    Made by `load`; or from parts, for targets of your own.
    """

    def __init__(
        self,
        target: Target,
        tokenizer: PreTrainedTokenizerBase | None,
        vocabulary: Vocabulary,
        drafter: Drafter | Model | str | None = "auto",
    ) -> None:
        self.target = target
        self.tokenizer = tokenizer
        self.vocabulary = vocabulary
        self.drafter = as_drafter(drafter)
        self._costs, self._history = Costs(), History()

    def generate(
        self,
        prompt: Prompt,
        constraint: Constraint | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Generation:
        """Generates text under a constraint.

        Args:
            prompt: text, chat messages, or token ids.
            constraint: what the text must be; None leaves it free.
            options: see `xpress_struct.Options`.

        Returns:
            The generation. When it was cut, `finish_reason` says so and `.value` raises.

        Raises:
            ArgumentError, UnknownArgumentError: an argument cannot be honoured.
            DeadEndError: the vocabulary cannot spell what the constraint asks for.
            OutputValidationError: every attempt failed a check that the mask cannot make.
        """
        return self._complete(prompt, constraint, Options.read(options), row=0)

    def stream(
        self,
        prompt: Prompt,
        constraint: Constraint | None = None,
        *,
        buffered: bool = False,
        **options: Unpack[GenerateOptions],
    ) -> Stream:
        """The same as `generate`, piece by piece; see `Stream`. Use it in a `with` block.

        Args:
            buffered: give the text in one piece, after its final check.

        Raises:
            UnsupportedFeatureError: the constraint has checks that the mask cannot make, so that a
                piece might have to be taken back; `buffered=True` is the way.
        """
        read = Options.read(options)
        if buffered:
            return BufferedStream(lambda: self._complete(prompt, constraint, read, row=0))
        if isinstance(constraint, Constraint) and constraint.checked_after:
            names = ", ".join(sorted({item.keyword for item in constraint.checked_after}))
            raise UnsupportedFeatureError(
                f"This constraint is partly checked after generation ({names}), so its text cannot "
                "be streamed as final. Pass buffered=True to get it in one piece.",
                feature="stream",
            )
        return self._start(prompt, constraint, read, 0, read.deadline)

    def generate_many(
        self,
        prompts: Sequence[Prompt],
        constraint: Constraint | Sequence[Constraint | None] | None = None,
        *,
        num_samples: int = 1,
        **options: Unpack[GenerateOptions],
    ) -> list[Generation]:
        """Generates for several prompts, one after another, `num_samples` times each.

        Args:
            constraint: of all texts, or a list with one per prompt; None leaves a text free.

        Returns:
            len(prompts) * num_samples generations, samples of a prompt side by side. Each has noise
            of its own under one seed.
        """
        read = Options.read(options)
        read = replace(read, seed=read.draw_seed())
        if num_samples < 1:
            raise ArgumentError(f"num_samples={num_samples!r}: it must be 1 or more.")
        if num_samples > 1 and read.sampling.greedy:
            raise ArgumentError("num_samples > 1 needs temperature > 0: greedy samples are equal.")
        each = _one_per_prompt(constraint, len(prompts))
        results = []
        for row in range(len(prompts) * num_samples):
            place = row // num_samples
            results.append(self._complete(prompts[place], each[place], read, row))
        return results

    def generate_json(
        self,
        prompt: Prompt,
        type_or_schema: Any,
        *,
        schema_in_prompt: bool | Literal["auto"] = "auto",
        **options: Unpack[GenerateOptions],
    ) -> Any:
        """Generates a JSON document and returns its typed value; see the module's function."""
        constraint = type_or_schema if isinstance(type_or_schema, Constraint) else json_schema(type_or_schema)
        if schema_in_prompt not in (True, False, "auto"):
            raise ArgumentError(f"schema_in_prompt={schema_in_prompt!r}: True, False or 'auto'.")
        if schema_in_prompt == "auto":
            prompt = self.prompt_with_schema(prompt, constraint, chat=options.get("chat"))
        elif schema_in_prompt:
            prompt = with_constraint(prompt, constraint)
        return self.generate(prompt, constraint, **options).value

    async def agenerate(
        self,
        prompt: Prompt,
        constraint: Constraint | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Generation:
        """The same as `generate`, in a thread, so that the event loop goes on.

        Cancelling the task stops the model before its next round; the cancellation comes out when it has
        stopped. How many run at once is up to the loop's default executor.
        """
        stop, read = stopped_by(options)
        return await in_thread(lambda: self.generate(prompt, constraint, **read), stop)

    async def agenerate_json(
        self,
        prompt: Prompt,
        type_or_schema: Any,
        *,
        schema_in_prompt: bool | Literal["auto"] = "auto",
        **options: Unpack[GenerateOptions],
    ) -> Any:
        """The same as `generate_json`, in a thread; see `agenerate`."""
        stop, read = stopped_by(options)

        def work() -> Any:
            return self.generate_json(prompt, type_or_schema, schema_in_prompt=schema_in_prompt, **read)

        return await in_thread(work, stop)

    def astream(
        self,
        prompt: Prompt,
        constraint: Constraint | None = None,
        *,
        buffered: bool = False,
        **options: Unpack[GenerateOptions],
    ) -> AsyncStream:
        """The same as `stream`, for coroutines; see `AsyncStream`. Use it in an `async with` block."""
        stop, read = stopped_by(options)
        return AsyncStream(lambda: self.stream(prompt, constraint, buffered=buffered, **read), stop)

    def prompt_with_schema(
        self, prompt: Prompt, constraint: Constraint, *, chat: bool | None = None
    ) -> Prompt:
        """The prompt with the constraint's schema after it, or its tools in the system message, where a chat
        template is used."""
        uses_chat = bool(getattr(self.tokenizer, "chat_template", None)) and chat is not False
        if not uses_chat or token_ids(prompt) is not None:
            return prompt
        return with_constraint(prompt, constraint)

    def _complete(
        self, prompt: Prompt, constraint: Constraint | None, options: Options, row: int
    ) -> Generation:
        """Runs a request to its end; draws again where a check on the finished text fails."""
        seed, deadline = options.draw_seed(), options.deadline
        earlier: Stats | None = None
        for attempt in range(options.max_retries + 1):
            read = replace(options.for_retry if attempt else options, seed=seed + attempt)
            with self._start(prompt, constraint, read, row, deadline) as stream:
                for _ in stream:
                    pass
            result = stream.result
            if earlier is not None:
                result.stats.add_discarded(earlier)
            if constraint is None or not constraint.checked_after or not result.complete:
                return result
            try:
                result.value  # noqa: B018
                return result
            except OutputValidationError as error:
                earlier, failed = result.stats, error
        raise OutputValidationError(
            f"{options.max_retries + 1} texts failed a check that the mask cannot make "
            f"(see constraint.checked_after). The last: {failed}",
            text=failed.text,
        ) from failed

    def _start(
        self,
        prompt: Prompt,
        constraint: Constraint | None,
        options: Options,
        row: int,
        deadline: float | None,
    ) -> Stream:
        started = time.perf_counter()
        _check_constraint(constraint)
        ids = self._prompt_ids(prompt, options)
        stats = Stats(prompt_tokens=len(ids), acceptance=options.acceptance)
        seed = options.draw_seed()
        stats.seed = None if options.sampling.greedy else seed
        drafter = self._drafter_of(options, stats)
        answer = self._matcher(constraint, options.prefix, stats)
        matcher: Matcher = answer
        block = thinking_block(self.vocabulary, options.markers[1]) if options.markers else None
        if block is not None:
            room = options.max_new_tokens
            if self.target.max_length is not None:
                room = min(room, self.target.max_length - len(ids))
            matcher = ThinkingMatcher(block, answer, most_thoughts(block, options, room))
        request = Request(
            prompt=tuple(ids),
            end_ids=self.vocabulary.end_ids,
            params=options.sampling,
            key=NoiseKey(seed, row),
            rule=options.acceptance,
            max_new_tokens=options.max_new_tokens,
            deadline=deadline,
            cancelled=options.cancel.is_set if options.cancel else lambda: False,
            logprobs=options.logprobs or None,
            closes=options.on_limit == "close",
        )
        accepts = constraint.accepts if constraint else None
        given = (options.prefix, options.stops, options.include_stop_string, accepts)
        text = TextAssembler(self.vocabulary, *given) if block is None else ThinkingText(block, *given)
        proposer = self._proposer(drafter, request, options, stats)
        decoder = Decoder(self.target, matcher, self.vocabulary, proposer, request, text, stats)
        return Stream(decoder, text, constraint.parser if constraint else str, started)

    def _prompt_ids(self, prompt: Prompt, options: Options) -> list[int]:
        ids = encode_prompt(
            prompt,
            self.tokenizer,
            chat=options.chat,
            chat_template_kwargs=options.chat_template_kwargs,
            thinking=options.markers is not None,
        )
        if options.markers:
            ids = with_open_block(ids, options.markers[0], self.vocabulary)
        # Encoded as the grammar reads it: no blank in front, no control tokens.
        ids += self.vocabulary.encode(options.prefix)
        strange = next((i for i in ids if not 0 <= i < self.vocabulary.width), None)
        if strange is not None:
            raise ArgumentError(
                f"The prompt has the id {strange}; this model knows 0 to {self.vocabulary.width - 1}."
            )
        longest = self.target.max_length
        if longest is not None and len(ids) >= longest:
            raise ArgumentError(
                f"The prompt has {len(ids)} tokens; the model takes {longest}, answer included."
            )
        return ids

    def _drafter_of(self, options: Options, stats: Stats) -> Drafter | None:
        drafter = self.drafter if options.drafter == "model" else as_drafter(options.drafter)
        if drafter is not None and self.target.no_speculation is not None:
            stats.no_speculation = self.target.no_speculation
            return None
        if drafter is not None:
            stats.drafter = drafter.name
        return drafter

    def _proposer(
        self, drafter: Drafter | None, request: Request, options: Options, stats: Stats
    ) -> Proposer:
        """Who guesses: the drafter, and lookup where the guard may fall back to it."""
        control = options.control
        if drafter is None:
            ladder = []
        elif unknown := [name for name in control.asked if name not in getattr(drafter, "honours", ())]:
            raise ArgumentError(f"The drafter {drafter.name!r} has no {', '.join(unknown)}; leave it out.")
        else:
            ladder = [drafter]
            if options.guard and not isinstance(drafter, LookupDrafter):
                ladder.append(LookupDrafter())
        context = DraftContext(
            request.prompt,
            self.vocabulary,
            request.params,
            request.rule,
            self.target,
            control,
            stats,
            timed=options.guard and request.rule == "coupled",
        )
        return Proposer(
            [Guesser(each, each.begin(context)) for each in ladder],
            Guard(options.guard, request.rule, self._costs, stats, self._history),
            BlockLength(None if options.block_length == "auto" else options.block_length),
            self.target.device,
            stats,
        )

    def _matcher(self, constraint: Constraint | None, prefix: str, stats: Stats) -> TextMatcher:
        if constraint is None:
            return FreeMatcher(self.vocabulary)
        matcher, stats.compile_s = constraint.matcher(self.vocabulary)
        fits = matcher.consume_text(prefix) if prefix else 0
        if fits < len(prefix):
            raise ArgumentError(
                f"The prefix does not fit the constraint: {prefix[:fits]!r} does, then "
                f"{prefix[fits : fits + 20]!r} does not (character {fits})."
            )
        return matcher


def _one_per_prompt(
    constraint: Constraint | Sequence[Constraint | None] | None, prompts: int
) -> list[Constraint | None]:
    """A constraint for each prompt, checked before the first text is generated."""
    if isinstance(constraint, Sequence) and not isinstance(constraint, str):
        found = [*constraint]
    else:
        found = [constraint] * prompts
    if len(found) != prompts:
        raise ArgumentError(
            f"{len(found)} constraints for {prompts} prompts: give one for all, or a list with one "
            "(or None) per prompt."
        )
    for each in found:
        _check_constraint(each)
    return found


def _check_constraint(constraint: Any) -> None:
    if constraint is not None and not isinstance(constraint, Constraint):
        raise ArgumentError(
            f"constraint is {constraint!r}; make one with xs.json_schema, xs.regex, xs.choice or xs.lark."
        )
