"""The prompt contract: text, chat messages or ids -> the ids that the target reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.errors import ArgumentError
from xpress_struct.messages import plain_messages

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Prompt", "compact_schema", "encode_prompt", "token_ids", "with_constraint", "with_schema"]

Prompt = str | Sequence[Mapping[str, Any]] | Sequence[int]

_SCHEMA_NOTE = "\n\nAnswer with JSON that fits this JSON Schema:\n"


def token_ids(prompt: Any) -> list[int] | None:
    """The ids of a prompt that is a list, array or tensor of ids ([n] or [1, n]); None for others."""
    if hasattr(prompt, "tolist"):
        prompt = prompt.tolist()
        if len(prompt) == 1 and isinstance(prompt[0], list):
            prompt = prompt[0]
    if isinstance(prompt, (str, bytes)) or not isinstance(prompt, Sequence):
        return None
    if any(isinstance(item, bool) or not hasattr(item, "__index__") for item in prompt):
        return None
    return [int(item) for item in prompt]


def encode_prompt(
    prompt: Prompt,
    tokenizer: PreTrainedTokenizerBase | None,
    *,
    chat: bool | None = None,
    chat_template_kwargs: Mapping[str, Any] | None = None,
    thinking: bool = False,
) -> list[int]:
    """Ids of a prompt.

    Args:
        prompt: text (one user message when the tokenizer has a chat template, raw text otherwise), a
            list of chat messages, or ids as a list, array or tensor, which are taken as they are.
        tokenizer: None takes ids only.
        chat: False forces raw text; True asks for the chat template.
        chat_template_kwargs: passed to the chat template.
        thinking: passed as `enable_thinking` where the template knows it.

    Raises:
        ArgumentError: the prompt is empty or of another type, or no chat template exists.
    """
    options = dict(chat_template_kwargs or {})
    template = getattr(tokenizer, "chat_template", None)
    if "enable_thinking" in str(template):
        options.setdefault("enable_thinking", thinking)
    ids = token_ids(prompt)
    if ids is None:
        if tokenizer is None:
            raise ArgumentError("This model has no tokenizer, so a prompt is a list of token ids.")
        ids = _text_ids(prompt, tokenizer, chat, options)
    if not ids:
        raise ArgumentError("The prompt is empty; a model needs at least one token to start from.")
    return ids


def _text_ids(
    prompt: Any, tokenizer: PreTrainedTokenizerBase, chat: bool | None, options: dict[str, Any]
) -> list[int]:
    if isinstance(prompt, str):
        use_chat = bool(tokenizer.chat_template) if chat is None else chat
        if not use_chat:
            return list(tokenizer.encode(prompt))
        prompt = [{"role": "user", "content": prompt}]
    if not isinstance(prompt, Sequence) or isinstance(prompt, bytes):
        raise ArgumentError(_WANTED.format(type(prompt).__name__))
    if not all(isinstance(item, Mapping) and "role" in item for item in prompt):
        raise ArgumentError(_WANTED.format(f"a list of {type(prompt[0]).__name__}"))
    if chat is False:
        raise ArgumentError("chat=False takes raw text or ids, not chat messages.")
    return _chat_ids(prompt, tokenizer, options)


def with_constraint(prompt: Prompt, constraint: Constraint) -> Prompt:
    """The prompt with what a model should know of the constraint: a schema after the last user message, or
    tools in the system message; calls and results of earlier turns become text.

    Raises:
        ArgumentError: the prompt is a list of ids, or has no user message with text.
    """
    if constraint.note is None:
        return prompt if constraint.schema is None else with_schema(prompt, constraint.schema)
    if isinstance(prompt, str):
        prompt = [{"role": "user", "content": prompt}]
    if not all(isinstance(item, Mapping) and "role" in item for item in prompt):
        raise ArgumentError("Tools are told in chat messages; pass text or messages, with their roles.")
    return plain_messages(prompt, constraint.note)  # type: ignore[arg-type]


def with_schema(prompt: Prompt, schema: Any) -> Prompt:
    """The prompt with a compact schema, descriptions included, after its last user message.

    Raises:
        ArgumentError: the prompt is a list of ids, or has no user message with text.
    """
    compact = compact_schema(schema)
    note = _SCHEMA_NOTE + json.dumps(compact, ensure_ascii=False, separators=(",", ":"))
    if isinstance(prompt, str):
        return prompt + note
    messages = [dict(item) if isinstance(item, Mapping) else item for item in prompt]
    for message in reversed(messages):
        if isinstance(message, dict) and message.get("role") == "user":
            if not isinstance(message.get("content"), str):
                break
            message["content"] += note
            return messages  # type: ignore[return-value]
    raise ArgumentError(
        "schema_in_prompt needs text or chat messages with a user message in text; pass "
        "schema_in_prompt=False."
    )


def compact_schema(schema: Any) -> Any:
    """The schema as a model reads it best: local references inlined where they do not recur, and
    without what only tools need (titles, `$schema`, ids, closed objects). Descriptions stay."""
    return _compact(schema, schema, ())


def _compact(node: Any, root: Any, inside: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_compact(item, root, inside) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str) and reference not in inside:
        target = _local(root, reference)
        if isinstance(target, dict):
            siblings = {key: value for key, value in node.items() if key != "$ref"}
            inlined = _compact({**target, **siblings}, root, (*inside, reference))
            # A definition that recurs must stay where its inner reference finds it.
            if reference not in json.dumps(inlined):
                return inlined
    kept: dict[str, Any] = {}
    for key, value in node.items():
        if key in _FOR_TOOLS or (key, value) == ("additionalProperties", False):
            continue
        if key in ("properties", "patternProperties", "$defs", "definitions"):
            value = {name: _compact(part, root, inside) for name, part in value.items()}
        elif key not in ("const", "enum", "default", "examples"):
            value = _compact(value, root, inside)
        kept[key] = value
    for key in ("$defs", "definitions"):
        if key in kept and f'"#/{key}/' not in json.dumps(kept):
            del kept[key]
    return kept


_FOR_TOOLS = {"title", "$schema", "$id", "id", "$comment"}


def _local(root: Any, reference: str) -> Any:
    """What a reference into the same document points at, or None."""
    if not reference.startswith("#/"):
        return None
    found = root
    for part in reference[2:].split("/"):
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    return found


def _chat_ids(
    messages: Sequence[Any], tokenizer: PreTrainedTokenizerBase, options: dict[str, Any]
) -> list[int]:
    template = tokenizer.chat_template
    if not template:
        raise ArgumentError(
            "This tokenizer has no chat template; pass one text, or set tokenizer.chat_template."
        )
    try:
        text = tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=True, **options
        )
    except Exception as error:  # templates raise what they like
        raise ArgumentError(f"The chat template refuses the messages: {error}") from error
    return list(tokenizer.encode(text, add_special_tokens=False))


_WANTED = (
    "A prompt is text, a list of chat messages ({{'role': ..., 'content': ...}}) or a list of token "
    "ids, not {}."
)
