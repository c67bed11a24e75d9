"""Which draft a schema is written in, and the validator that goes with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import jsonschema

__all__ = ["DRAFTS", "draft_of", "guessed_draft", "validator_class"]

DRAFTS: Mapping[str, int] = {
    "http://json-schema.org/draft-03/schema": 3,
    "http://json-schema.org/draft-04/schema": 4,
    "http://json-schema.org/draft-06/schema": 6,
    "http://json-schema.org/draft-07/schema": 7,
    "https://json-schema.org/draft/2019-09/schema": 2019,
    "https://json-schema.org/draft/2020-12/schema": 2020,
}
"""`$schema` without its final "#" -> the draft, by number or year."""

_VALIDATORS: Mapping[int, Any] = {
    4: jsonschema.Draft4Validator,
    6: jsonschema.Draft6Validator,
    7: jsonschema.Draft7Validator,
    2019: jsonschema.Draft201909Validator,
    2020: jsonschema.Draft202012Validator,
}
_DATA = ("const", "default", "enum", "examples")


def draft_of(schema: Any, default: int) -> int:
    """The draft that `schema` names, or `default` when it names none or an unknown one."""
    if isinstance(schema, dict) and isinstance(schema.get("$schema"), str):
        return DRAFTS.get(schema["$schema"].rstrip("#"), default)
    return default


def guessed_draft(schema: Any) -> int:
    """The draft of a whole document: named, or else 2020-12 unless it cannot be.

    Without `$schema`, a boolean `exclusiveMinimum` or `exclusiveMaximum` means draft 4, and a list of schemas
    under `items` means draft 7.
    """
    named = draft_of(schema, 0)
    if named:
        return named
    found = 2020
    stack = [schema]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            edges = (value.get("exclusiveMinimum"), value.get("exclusiveMaximum"))
            if any(isinstance(edge, bool) for edge in edges) and ("minimum" in value or "maximum" in value):
                return 4
            if isinstance(value.get("items"), list):
                found = 7
            stack += [v for k, v in value.items() if k not in _DATA]
        elif isinstance(value, list):
            stack += value
    return found


def _multiple_of(_: Any, divisor: Any, instance: Any, __: Any) -> Iterator[jsonschema.ValidationError]:
    """multipleOf on decimal fractions: 0.59 is a multiple of 0.01, which it is not in doubles."""
    if isinstance(instance, bool) or not isinstance(instance, (int, float)):
        return
    if (Fraction(repr(instance)) / Fraction(repr(divisor))).denominator != 1:
        yield jsonschema.ValidationError(f"{instance!r} is not a multiple of {divisor!r}")


_EXACT: Mapping[int, Any] = {
    draft: jsonschema.validators.extend(kind, {"multipleOf": _multiple_of})  # type: ignore[no-untyped-call]
    for draft, kind in _VALIDATORS.items()
}


def validator_class(schema: Any) -> Any:
    """jsonschema's validator class for the draft of `schema`, with an exact `multipleOf`."""
    return _EXACT.get(guessed_draft(schema), _EXACT[2020])
