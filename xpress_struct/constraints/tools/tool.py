"""Tool: what a model may call; ToolCall: that it was called."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from xpress_struct.errors import ArgumentError

__all__ = ["Tool", "ToolCall"]

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


@dataclass(frozen=True)
class Tool:
    """A function that the model may call.

    Attributes:
        name: letters, digits, `_`, `.` and `-`; at most 64.
        description: for the model.
        parameters: JSON Schema of the arguments, of type "object".
        function: what `ToolCall.run` calls, with the arguments by keyword.
        adapter: makes typed arguments; None leaves them as a dict of plain data.

    Raises:
        ArgumentError: the name or the parameters are none.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(
        default_factory=lambda: {"type": "object", "properties": {}, "additionalProperties": False}
    )
    function: Callable[..., Any] | None = None
    adapter: TypeAdapter[Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ArgumentError(
                f"The tool name {self.name!r} is not 1 to 64 letters, digits, '_', '.' and '-'."
            )
        if not isinstance(self.parameters, Mapping) or self.parameters.get("type") != "object":
            raise ArgumentError(
                f"The parameters of the tool {self.name!r} must be a JSON Schema with "
                '"type": "object" at its root.'
            )


@dataclass(frozen=True)
class ToolCall:
    """A call that a model made.

    Attributes:
        name: of the tool.
        arguments: of a type (a Pydantic model) an instance; else a dict, whose values for a function have
            the types of its annotations. What has a default and was left out is not in it.
    """

    name: str
    arguments: Any
    _function: Callable[..., Any] | None = field(default=None, repr=False, compare=False)

    def run(self) -> Any:
        """Calls the function and returns what it returns; of an `async def`, that is a coroutine.

        Raises:
            ArgumentError: the tool was not given as a function.
        """
        if self._function is None:
            raise ArgumentError(
                f"The tool {self.name!r} was not given as a function, so there is nothing to run: use its "
                "arguments."
            )
        return self._function(**self.arguments)
