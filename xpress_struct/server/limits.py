"""What one request may cost."""

from __future__ import annotations

from dataclasses import dataclass, fields

from xpress_struct.errors import ArgumentError

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """Bounds of a server.

    Attributes:
        max_requests: requests at once, waiting ones included; one decodes at a time.
        max_body_bytes: bytes of a request's body.
        max_depth: levels of lists and objects in a body.
        max_tokens: output tokens of one choice, and what a chat request gets that names no number.
        max_choices: answers to one request: prompts times `n`.
        timeout: seconds from a request's arrival to the end of its answer.
        body_timeout: seconds in which a body must arrive.
        compile_timeout: seconds that a constraint may take to compile.

    Raises:
        ArgumentError: a bound is not above 0.
    """

    max_requests: int = 64
    max_body_bytes: int = 1 << 20
    max_depth: int = 64
    max_tokens: int = 4096
    max_choices: int = 16
    timeout: float = 300.0
    body_timeout: float = 30.0
    compile_timeout: float = 10.0

    def __post_init__(self) -> None:
        for bound in fields(self):
            if not getattr(self, bound.name) > 0:
                raise ArgumentError(f"{bound.name}={getattr(self, bound.name)!r}: it must be above 0.")
