"""The keyword arguments of generation: names, defaults, and what each may be."""

from __future__ import annotations

import difflib
import math
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict, get_args

from xpress_struct.drafting.control import DraftControl, Refine
from xpress_struct.errors import ArgumentError, UnknownArgumentError
from xpress_struct.sampling import Rule, SamplingParams

__all__ = ["RETRY_TEMPERATURE", "GenerateOptions", "Options"]

RETRY_TEMPERATURE = 0.7
"""Temperature of a retry after a greedy text that failed its final check."""


class GenerateOptions(TypedDict, total=False):
    """Keyword arguments of `generate`, `stream` and `generate_json`; see `Options`."""

    prefix: str
    chat: bool | None
    chat_template_kwargs: Mapping[str, Any] | None
    max_new_tokens: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    do_sample: bool | None
    seed: int | None
    stop_strings: str | Sequence[str] | None
    include_stop_string: bool
    timeout: float | None
    cancel: threading.Event | None
    logprobs: int
    drafter: Any
    block_length: int | Literal["auto"]
    refine: Refine
    refine_passes: int | Literal["auto"]
    denoising_steps: int
    draft_temperature: float
    draft_confidence: float
    guard: bool
    acceptance: Rule
    max_retries: int
    on_limit: Literal["cut", "close"]
    thinking: bool | tuple[str, str]
    max_thinking_tokens: int | None


@dataclass(frozen=True, slots=True)
class Options:
    """How to generate.

    Attributes:
        prefix: text that the answer begins with; part of the text and of the value.
        chat: None uses the chat template when there is one; False forces raw text.
        chat_template_kwargs: passed to the chat template.
        max_new_tokens: bound on emitted tokens, forced ones and the end token included.
        temperature, top_k, top_p, min_p: as in `transformers.generate`; 0 is greedy, the default.
        do_sample: may be given, and must agree with the temperature.
        seed: makes a sampled result repeatable; None takes a random one, reported in the stats.
        stop_strings: texts that end the answer. Under a constraint the grammar comes first: one
            counts only where the text that is kept is whole.
        include_stop_string: keep it in the text.
        timeout: seconds after which no round starts; the result is then cut.
        cancel: an event that ends the generation before its next round.
        logprobs: report this many likeliest tokens per place; 0 reports nothing.
        drafter: who guesses in this call; "model" takes the model's own. See `load`.
        block_length: guesses per round, at most; "auto" follows recent acceptance.
        refine, refine_passes, denoising_steps, draft_temperature, draft_confidence: how to draft, for
            drafters that know of it; see `DraftControl`. None leaves it to the drafter.
        guard: go without the drafter while it costs more than it saves; False always drafts.
        acceptance: "coupled" (default: the tokens of decoding without speculation), "token", "block".
        on_limit: what happens when the token budget ends: "cut" leaves the text unfinished; "close" keeps
            up to 64 tokens to close it under the constraint, so that its last part is not the model's.
        max_retries: how often a text is drawn again when it fails a check that the mask cannot make
            (`constraint.checked_after`). Retries are sampled, from seeds that follow from `seed`.
        thinking: True lets the model think freely before the answer, between `<think>` and `</think>`; a pair
            of texts names other markers. Thoughts are no part of the text and the value.
        max_thinking_tokens: tokens of thought after which the end marker is forced; None takes half of
            `max_new_tokens`, which counts them too.

    Raises:
        ArgumentError: a value cannot be honoured.
    """

    prefix: str = ""
    chat: bool | None = None
    chat_template_kwargs: Mapping[str, Any] | None = None
    max_new_tokens: int = 1024
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    do_sample: bool | None = None
    seed: int | None = None
    stop_strings: str | Sequence[str] | None = None
    include_stop_string: bool = False
    timeout: float | None = None
    cancel: threading.Event | None = None
    logprobs: int = 0
    drafter: Any = "model"
    block_length: int | Literal["auto"] = "auto"
    refine: Refine | None = None
    refine_passes: int | Literal["auto"] | None = None
    denoising_steps: int | None = None
    draft_temperature: float | None = None
    draft_confidence: float | None = None
    guard: bool = True
    acceptance: Rule = "coupled"
    max_retries: int = 3
    on_limit: Literal["cut", "close"] = "cut"
    thinking: bool | tuple[str, str] = False
    max_thinking_tokens: int | None = None

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Options:
        """Options from keyword arguments.

        Raises:
            UnknownArgumentError: a name is not known; the nearest known one is named.
        """
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                near = difflib.get_close_matches(_FAMILIAR.get(name, name), known, 1, 0.5)
                hint = f" Did you mean {near[0]!r}?" if near else f" Known: {', '.join(known)}."
                raise UnknownArgumentError(f"Unknown argument {name!r}.{hint}")
        return cls(**given)

    def __post_init__(self) -> None:
        for name, (kinds, words) in _KINDS.items():
            value = getattr(self, name)
            if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                raise ArgumentError(f"{name}={value!r}: it must be {words}.")
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if not isinstance(value, (str, _NONE)) and not least <= value <= most:
                words = f"{least} or more" if most == math.inf else f"between {least} and {most}"
                raise ArgumentError(f"{name}={value}: it must be {words}.")
        self.sampling  # noqa: B018  (its own checks)
        for name, choices in _WORDS.items():
            if isinstance(getattr(self, name), str) and getattr(self, name) not in choices:
                raise ArgumentError(f"{name}={getattr(self, name)!r}: it must be one of {choices}.")
        if self.do_sample is not None and self.do_sample == self.sampling.greedy:
            raise ArgumentError(
                f"do_sample={self.do_sample} does not agree with temperature={self.temperature}: "
                "a temperature above 0 samples, 0 is greedy."
            )
        if self.timeout is not None and self.timeout <= 0:
            raise ArgumentError(f"timeout={self.timeout!r}: it must be above 0 seconds, or None.")
        if any(not isinstance(stop, str) or not stop for stop in self.stops):
            raise ArgumentError("stop_strings must be non-empty texts.")
        self._check_thinking()

    def _check_thinking(self) -> None:
        asked = (self.chat_template_kwargs or {}).get("enable_thinking")
        if self.thinking and asked is not None and not asked:
            raise ArgumentError(f"thinking={self.thinking!r} does not agree with enable_thinking={asked!r}.")
        markers = self.markers
        if markers is None and self.max_thinking_tokens is not None:
            raise ArgumentError("max_thinking_tokens needs thinking=True.")
        if markers is None:
            return
        if len(markers) != 2 or not all(_is_marker(each) for each in markers):
            raise ArgumentError(
                f"thinking={self.thinking!r}: True, False, or the two texts that begin and end the block."
            )
        if self.prefix:
            raise ArgumentError(
                "prefix and thinking cannot be combined: the answer that the prefix begins comes after the "
                "thoughts. Leave one of them out."
            )
        if self.max_thinking_tokens is not None and self.max_thinking_tokens >= self.max_new_tokens:
            raise ArgumentError(
                f"max_thinking_tokens={self.max_thinking_tokens} leaves nothing of max_new_tokens="
                f"{self.max_new_tokens} for the answer."
            )

    @property
    def markers(self) -> tuple[str, str] | None:
        """The texts that begin and end the thinking block; None without thinking."""
        if not isinstance(self.thinking, bool):
            return self.thinking
        asked = self.thinking or bool((self.chat_template_kwargs or {}).get("enable_thinking"))
        return ("<think>", "</think>") if asked else None

    @property
    def sampling(self) -> SamplingParams:
        """The sampling part."""
        return SamplingParams(self.temperature, self.top_k, self.top_p, self.min_p)

    @property
    def control(self) -> DraftControl:
        """The part that a drafter reads."""
        return DraftControl(
            self.refine,
            self.refine_passes,
            self.denoising_steps,
            self.draft_temperature,
            self.draft_confidence,
        )

    @property
    def stops(self) -> tuple[str, ...]:
        """Stop strings as a tuple."""
        if self.stop_strings is None:
            return ()
        return (self.stop_strings,) if isinstance(self.stop_strings, str) else (*self.stop_strings,)

    @property
    def deadline(self) -> float | None:
        """The moment on `time.perf_counter` at which the timeout is over, from now."""
        return None if self.timeout is None else time.perf_counter() + self.timeout

    @property
    def for_retry(self) -> Options:
        """The same, but sampling: a greedy retry would repeat itself."""
        if not self.sampling.greedy:
            return self
        return replace(self, temperature=RETRY_TEMPERATURE, do_sample=None)

    def draw_seed(self) -> int:
        """The seed, or a fresh random one."""
        return secrets.randbits(63) if self.seed is None else self.seed


def _is_marker(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and value.encode(errors="ignore").decode() == value


_NONE = type(None)
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "prefix": ((str,), "text"),
    "chat": ((bool, _NONE), "True, False or None"),
    "chat_template_kwargs": ((Mapping, _NONE), "a mapping"),
    "max_new_tokens": ((int,), "a whole number"),
    "temperature": ((int, float), "a number"),
    "top_k": ((int,), "a whole number"),
    "top_p": ((int, float), "a number"),
    "min_p": ((int, float), "a number"),
    "do_sample": ((bool, _NONE), "True, False or None"),
    "seed": ((int, _NONE), "a whole number"),
    "stop_strings": ((str, Sequence, _NONE), "a text or a list of texts"),
    "include_stop_string": ((bool,), "True or False"),
    "timeout": ((int, float, _NONE), "a number of seconds"),
    "cancel": ((threading.Event, _NONE), "a threading.Event"),
    "logprobs": ((int,), "a whole number"),
    "block_length": ((int, str), "a whole number or 'auto'"),
    "refine": ((str, _NONE), "a text"),
    "refine_passes": ((int, str, _NONE), "a whole number or 'auto'"),
    "denoising_steps": ((int, _NONE), "a whole number"),
    "draft_temperature": ((int, float, _NONE), "a number"),
    "draft_confidence": ((int, float, _NONE), "a number"),
    "guard": ((bool,), "True or False"),
    "acceptance": ((str,), "a text"),
    "max_retries": ((int,), "a whole number"),
    "on_limit": ((str,), "a text"),
    "thinking": ((bool, tuple, list), "True, False, or a pair of texts"),
    "max_thinking_tokens": ((int, _NONE), "a whole number"),
}
_RANGES: dict[str, tuple[float, float]] = {
    "max_new_tokens": (1, math.inf),
    "logprobs": (0, math.inf),
    "block_length": (1, math.inf),
    "refine_passes": (1, math.inf),
    "denoising_steps": (1, 40),
    "draft_temperature": (0, math.inf),
    "draft_confidence": (0, 1),
    "max_retries": (0, math.inf),
    "max_thinking_tokens": (0, math.inf),
}
_WORDS: dict[str, tuple[str, ...]] = {
    "block_length": ("auto",),
    "refine": get_args(Refine),
    "refine_passes": ("auto",),
    "acceptance": get_args(Rule),
    "on_limit": ("cut", "close"),
}

# Names that other libraries use for the same thing.
_FAMILIAR = {
    "max_tokens": "max_new_tokens",
    "max_length": "max_new_tokens",
    "stop": "stop_strings",
    "max_time": "timeout",
    "assistant_model": "drafter",
    "schema": "constraint",
    "enable_thinking": "thinking",
    "thinking_budget": "max_thinking_tokens",
}
