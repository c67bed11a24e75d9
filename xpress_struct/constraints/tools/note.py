"""What a model is told about tools."""

from __future__ import annotations

import json
from collections.abc import Sequence

from xpress_struct.constraints.tools.tool import Tool

__all__ = ["tools_note"]


def tools_note(tools: Sequence[Tool], *, must: bool) -> str:
    """The system message, or a part of it.

    Args:
        must: an answer is a call.
    """
    listed = "\n".join(
        json.dumps(
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            ensure_ascii=False,
        )
        for tool in tools
    )
    how = 'one JSON object and nothing else: {"name": <name>, "arguments": {<arguments>}}'
    if must:
        return f"Call one of these functions. Answer with {how}\n{listed}"
    return (
        f"You may call one of these functions. To call one, answer with {how}\n{listed}\n"
        "When no call is needed, answer in plain text."
    )
