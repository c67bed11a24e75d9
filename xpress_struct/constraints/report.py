"""What a constraint leaves to check after generation."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Checked"]


@dataclass(frozen=True, order=True)
class Checked:
    """Something that the mask does not enforce fully: the finished value is validated for it.

    Attributes:
        keyword: the JSON Schema keyword, or what stands for one ("pydantic", "lark").
        pointer: JSON pointer (RFC 6901) of the schema that holds it, "" for the root; for a schema outside
            the document, the URI and the pointer inside it.
        reason: why the mask cannot enforce it, in one clause.
    """

    keyword: str
    pointer: str
    reason: str
