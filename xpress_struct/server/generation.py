"""A request -> what the model is asked, for every choice of its answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.tools import Tool
from xpress_struct.constraints.tools.note import tools_note
from xpress_struct.messages import plain_messages
from xpress_struct.model import Model
from xpress_struct.options import Options
from xpress_struct.prompt import Prompt
from xpress_struct.results import Generation
from xpress_struct.server.constraints import Spec, spec_of, tool_of
from xpress_struct.server.errors import RequestError
from xpress_struct.server.limits import Limits
from xpress_struct.server.requests import ChatRequest, CompletionRequest, NamedTool, Request
from xpress_struct.server.worker import Finished, Job, Piece

__all__ = ["Task", "chat_task", "completion_task"]

_SEEDS = 1 << 63
# Choices have seeds of their own, far from those of each other's retries.
_SEED_STEP = 1 << 32
_COMPLETION_TOKENS = 16


@dataclass(frozen=True)
class Task:
    """What the model is asked.

    Attributes:
        prompts: each is answered `n` times.
        spec: of the constraint, or None.
        param: the field that the constraint came from.
        calls: the answer may be a call of a tool.
        shows_schema: the schema stands in the prompt.
        options: of `Model.stream`, without seed, timeout and cancel.
    """

    prompts: Sequence[Prompt]
    n: int
    spec: Spec | None
    param: str | None
    calls: bool
    shows_schema: bool
    seed: int
    options: dict[str, Any]

    def work(
        self,
        model: Model,
        constraint: Constraint | None,
        deadline: float,
        job: Job,
        note: Callable[[Generation], None],
    ) -> None:
        """Runs every choice, in the worker's thread.

        Args:
            deadline: on `time.perf_counter`.
            note: is told every result.

        Raises:
            RequestError: the time was over.
            XPressError: the model cannot be asked so.
        """
        prompts = self.prompts
        if self.shows_schema and constraint is not None:
            prompts = [model.prompt_with_schema(prompt, constraint) for prompt in prompts]
        for index in range(len(prompts) * self.n):
            left = deadline - time.perf_counter()
            if left <= 0:
                raise _too_late()
            options = {
                **self.options,
                "seed": (self.seed + index % self.n * _SEED_STEP) % _SEEDS,
                "timeout": left,
                "cancel": job.cancel,
            }
            buffered = constraint is not None and bool(constraint.checked_after)
            prompt = prompts[index // self.n]
            with model.stream(prompt, constraint, buffered=buffered, **options) as stream:
                for kind, piece in stream.parts():
                    job.emit(Piece(index, piece, kind == "thinking"))
            note(stream.result)
            if stream.result.finish_reason == "timeout":
                raise _too_late()
            job.emit(Finished(index, stream.result))
            if job.cancel.is_set():
                return


def _too_late() -> RequestError:
    return RequestError("The answer took longer than this server allows.", status=504, code="timeout")


def chat_task(asked: ChatRequest, limits: Limits, seed: int) -> Task:
    """The task of a chat request.

    Raises:
        RequestError, ArgumentError: it asks for what cannot be.
    """
    spec, param = spec_of(asked, limits.max_depth)
    tools, call = _tools(asked)
    if tools:
        if spec is not None:
            raise RequestError(
                f"{param} cannot be combined with tools that may be called; with tool_choice='none' it can.",
                param=param,
                code="unsupported_parameter",
            )
        spec, param = ("tools", [[[t.name, t.description, dict(t.parameters)] for t in tools], call]), "tools"
    if asked.top_logprobs is not None and not asked.logprobs:
        raise RequestError("top_logprobs needs logprobs=true.", param="top_logprobs")
    if asked.max_tokens is not None and asked.max_completion_tokens not in (None, asked.max_tokens):
        raise RequestError("max_tokens and max_completion_tokens differ; give one.", param="max_tokens")
    shown = asked.response_format is not None and asked.response_format.type == "json_schema"
    thinks = asked.chat_template_kwargs
    messages = plain_messages(_messages(asked), tools_note(tools, must=call == "required") if tools else "")
    return Task(
        prompts=[messages],
        n=_choices(asked, 1, limits),
        spec=spec,
        param=param,
        calls=bool(tools),
        shows_schema=shown and any(message["role"] == "user" for message in messages),
        seed=seed,
        options={
            **_options(asked),
            "max_new_tokens": _tokens(
                asked.max_completion_tokens or asked.max_tokens, limits.max_tokens, limits
            ),
            # The library counts the tokens to show; one is the least.
            "logprobs": max(1, asked.top_logprobs or 0) if asked.logprobs else 0,
            "thinking": bool(thinks and thinks.enable_thinking),
        },
    )


def completion_task(asked: CompletionRequest, limits: Limits, seed: int) -> Task:
    """The task of a completion request.

    Raises:
        RequestError: it asks for what cannot be.
    """
    spec, param = spec_of(asked, limits.max_depth)
    prompt: Any = asked.prompt
    several = not isinstance(prompt, str) and bool(prompt) and not isinstance(prompt[0], int)
    prompts = list(prompt) if several else [prompt]
    return Task(
        prompts=prompts,
        n=_choices(asked, len(prompts), limits),
        spec=spec,
        param=param,
        calls=False,
        shows_schema=False,
        seed=seed,
        options={
            **_options(asked),
            "chat": False,
            "max_new_tokens": _tokens(asked.max_tokens, min(_COMPLETION_TOKENS, limits.max_tokens), limits),
            "logprobs": 0 if asked.logprobs is None else max(1, asked.logprobs),
        },
    )


def _options(asked: Request) -> dict[str, Any]:
    given = {"top_p": asked.top_p, "top_k": asked.top_k, "min_p": asked.min_p, "stop_strings": asked.stop}
    options = {name: value for name, value in given.items() if value is not None}
    options["temperature"] = 1.0 if asked.temperature is None else asked.temperature
    Options.read(options)  # refused here, before the line
    return options


def _tokens(asked: int | None, usual: int, limits: Limits) -> int:
    if asked is not None and asked > limits.max_tokens:
        raise RequestError(f"This server writes at most {limits.max_tokens} tokens.", param="max_tokens")
    return asked or usual


def _choices(asked: Request, prompts: int, limits: Limits) -> int:
    n = asked.n or 1
    if n * prompts > limits.max_choices:
        raise RequestError(f"This server gives at most {limits.max_choices} answers at once.", param="n")
    if n > 1 and asked.temperature == 0:
        raise RequestError("n > 1 needs temperature > 0: greedy answers are equal.", param="n")
    return n


def _tools(asked: ChatRequest) -> tuple[list[Tool], Literal["required", "auto"]]:
    """The tools that may be called, and whether one must be."""
    tools = [tool_of(tool) for tool in asked.tools or ()]
    wanted = asked.tool_choice or ("auto" if tools else "none")
    if wanted == "none":
        return [], "auto"
    if not tools:
        raise RequestError("tool_choice needs tools.", param="tool_choice")
    if not isinstance(wanted, NamedTool):
        return tools, wanted
    named = [tool for tool in tools if tool.name == wanted.function.name]
    if not named:
        raise RequestError(f"tool_choice names {wanted.function.name!r}, no tool.", param="tool_choice")
    return named, "required"


def _messages(asked: ChatRequest) -> list[dict[str, Any]]:
    """The messages with their text in one piece."""
    messages = []
    for place, message in enumerate(asked.messages):
        param = f"messages.{place}"
        if message.content is None and message.role != "assistant":
            raise RequestError(f"{param}: content is missing.", param=f"{param}.content")
        if (message.role == "tool") != (message.tool_call_id is not None):
            raise RequestError(
                f"{param}: tool_call_id belongs to the role 'tool'.", param=f"{param}.tool_call_id"
            )
        if message.tool_calls and message.role != "assistant":
            raise RequestError(f"{param}: tool_calls belongs to the role 'assistant'.", param=param)
        made = message.model_dump(exclude_none=True)
        if isinstance(message.content, list):
            made["content"] = "".join(part.text for part in message.content)
        messages.append(made)
    return messages
