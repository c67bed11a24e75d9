"""What a request may say. Fields of OpenAI's that would change the answer and are not served are refused by
name; unknown ones too; those that change nothing are taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from xpress_struct.server.errors import RequestError

__all__ = [
    "ChatRequest",
    "CompletionRequest",
    "JsonSchemaFormat",
    "Message",
    "Request",
    "ResponseFormat",
    "StructuredOutputs",
    "ToolSpec",
    "read_request",
]

IGNORED = frozenset(
    {
        "metadata",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
    }
)
"""Fields that name the caller or the bill; no answer depends on them."""

NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "audio": (),
    "best_of": (1,),
    "echo": (False,),
    "frequency_penalty": (0,),
    "function_call": (),
    "functions": (),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "prediction": (),
    "presence_penalty": (0,),
    "reasoning_effort": ("none",),
    "suffix": ("",),
    "verbosity": (),
    "web_search_options": (),
}
"""Fields that are not served -> values that ask for nothing; null is another."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, protected_namespaces=())


class TextPart(_Model):
    """A part of a message."""

    type: Literal["text"]
    text: str


class CalledFunction(_Model):
    """The function of a call; `arguments` is JSON text, which clients may have parsed."""

    name: str
    arguments: str
    parsed_arguments: Any = None


class Call(_Model):
    """A call that an earlier answer made."""

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction
    index: int | None = None


class Message(_Model):
    """A chat message. What clients send back of an answer is known: `parsed` repeats it, thoughts stay out of
    later prompts, the rest is null."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None
    name: str | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    refusal: None = None
    audio: None = None
    function_call: None = None
    parsed: Any = None
    annotations: list[None] | None = Field(default=None, max_length=0)


class JsonSchemaFormat(_Model):
    """A named JSON Schema. It is always enforced, with `strict` or without."""

    name: str
    description: str | None = None
    schema_: dict[str, Any] | bool = Field(alias="schema")
    strict: bool | None = None


class ResponseFormat(_Model):
    """OpenAI's way to ask for a structure."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaFormat | None = None


class StructuredOutputs(_Model):
    """vLLM's way to ask for a structure; exactly one of them. `json` is a schema, or its text."""

    json_: dict[str, Any] | bool | str | None = Field(default=None, alias="json")
    regex: str | None = None
    choice: list[str] | None = Field(default=None, min_length=1, max_length=10_000)
    grammar: str | None = None


class FunctionSpec(_Model):
    """A function that may be called. Its parameters are always enforced, with `strict` or without."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ToolSpec(_Model):
    """A tool."""

    type: Literal["function"]
    function: FunctionSpec


class NamedFunction(_Model):
    """A function by name."""

    name: str


class NamedTool(_Model):
    """The one tool to call."""

    type: Literal["function"]
    function: NamedFunction


class StreamOptions(_Model):
    """What a stream tells besides."""

    include_usage: bool | None = None
    include_obfuscation: Literal[False] | None = None


class Request(_Model):
    """What both endpoints take. Null is the default everywhere."""

    model: str
    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputs | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = Field(default=None, ge=1)
    seed: int | None = None
    stop: str | list[str] | None = Field(default=None, max_length=16)
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    max_tokens: int | None = Field(default=None, ge=1)


class TemplateArguments(_Model):
    """Of vLLM's arguments of the chat template, the one that is served."""

    enable_thinking: bool | None = None


class ChatRequest(Request):
    """`/v1/chat/completions`."""

    messages: list[Message] = Field(min_length=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(default=None, ge=0, le=20)
    tools: list[ToolSpec] | None = Field(default=None, max_length=128)
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    chat_template_kwargs: TemplateArguments | None = None


class CompletionRequest(Request):
    """`/v1/completions`."""

    prompt: str | list[int] | list[str] | list[list[int]]
    logprobs: int | None = Field(default=None, ge=0, le=20)


R = TypeVar("R", bound=Request)


def read_request(kind: type[R], body: Mapping[str, Any]) -> R:
    """A request from the JSON object of its body.

    Raises:
        RequestError: a field is missing, unknown, malformed or not served; `param` names it.
    """
    fields = {}
    for name, value in body.items():
        if name in NEUTRAL:
            if value is not None and value not in NEUTRAL[name]:
                raise RequestError(
                    f"{name} is not supported; leave it out.", param=name, code="unsupported_parameter"
                )
        elif name not in IGNORED:
            fields[name] = value
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        # Of a union each branch complains; the one that got furthest means the most.
        first = max(error.errors(include_url=False, include_input=False), key=lambda item: len(item["loc"]))
        param = ".".join(str(part) for part in first["loc"])
        unknown = first["type"] == "extra_forbidden"
        what = f"Unknown parameter {param!r}." if unknown else f"{param}: {first['msg']}."
        code = "unknown_parameter" if unknown else "invalid_value"
        raise RequestError(what, param=param, code=code) from None
