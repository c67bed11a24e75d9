"""Chat messages in the form of OpenAI -> messages that every chat template takes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["plain_messages"]


def plain_messages(messages: Sequence[Mapping[str, Any]], note: str = "") -> list[dict[str, Any]]:
    """Chat messages in the form of OpenAI -> messages of text alone, which every chat template takes.

    Args:
        messages: an assistant's `tool_calls` become the text of the call, and messages of the role "tool" the
            user's; a "developer" is the system.
        note: goes into the system message, or becomes it.
    """
    plain: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for message in messages:
        role, content = message["role"], message.get("content") or ""
        kept = {"name": message["name"]} if message.get("name") else {}
        for call in message.get("tool_calls") or ():
            function = call["function"]
            names[call["id"]] = function["name"]
            name, arguments = json.dumps(function["name"]), function["arguments"]
            content += f'{{"name": {name}, "arguments": {arguments}}}'
        if role == "tool":
            called = names.get(message["tool_call_id"], message["tool_call_id"])
            role, content = "user", f"Result of {called}: {content}"
            if plain and plain[-1].get("role") == "user":
                plain[-1]["content"] += f"\n{content}"
                continue
        role = "system" if role == "developer" else role
        plain.append({"role": role, "content": content, **kept})
    if note and plain and plain[0]["role"] == "system":
        plain[0]["content"] += f"\n\n{note}"
    elif note:
        plain.insert(0, {"role": "system", "content": note})
    return plain
