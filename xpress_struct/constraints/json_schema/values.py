"""Complete JSON text -> checked value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

import jsonschema
from jsonschema.exceptions import best_match
from jsonschema_specifications import REGISTRY as SPECIFICATIONS
from pydantic import TypeAdapter, ValidationError
from referencing import Resource
from referencing.jsonschema import DRAFT202012

from xpress_struct.constraints.json_schema.dialects import validator_class
from xpress_struct.constraints.json_schema.formats import FORMATS, UNWRITTEN
from xpress_struct.constraints.json_schema.python_patterns import readable
from xpress_struct.errors import OutputValidationError, SchemaError

__all__ = ["SchemaParser", "TypeParser", "load_json"]


def load_json(text: str) -> Any:
    """Standard JSON only: no NaN or Infinity, no key twice in one object.

    Raises:
        OutputValidationError: the text is not that.
    """
    try:
        return json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except ValueError as error:
        raise OutputValidationError(f"The output is not JSON: {error}", text=text) from None


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


@cache
def _format_checker() -> jsonschema.FormatChecker:
    known = {*FORMATS, *UNWRITTEN} & set(jsonschema.FormatChecker.checkers)
    return jsonschema.FormatChecker(known)


class SchemaParser:
    """Parses and validates with jsonschema, in the draft that the schema names.

    Args:
        registry: documents that `$ref` may name, by URI.
        formats: "known" checks the formats that the mask writes, and those that only a check can know.
    """

    def __init__(
        self,
        schema: Any,
        registry: Mapping[str, Any] | None = None,
        formats: Literal["known", "ignore"] = "known",
    ) -> None:
        self._made_of = schema, registry, formats
        validator = validator_class(schema)
        schema = readable(schema)
        try:
            validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            path = "".join(f"/{str(p).replace('~', '~0').replace('/', '~1')}" for p in error.path)
            raise SchemaError(f"Not a valid JSON Schema: {error.message}", pointer=path) from None
        resources = (
            (uri, Resource.from_contents(document, default_specification=DRAFT202012))
            for uri, document in (registry or {}).items()
        )
        self._validator = validator(
            schema,
            registry=SPECIFICATIONS.with_resources(resources),
            format_checker=_format_checker() if formats == "known" else None,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # A validator class cannot be pickled; a `Generation`, which holds its parser, can.
        return SchemaParser, self._made_of

    def __call__(self, text: str) -> Any:
        value = load_json(text)
        error = best_match(self._validator.iter_errors(value))
        if error is not None:
            raise OutputValidationError(
                f"The output does not satisfy the schema: {error.message} (at {error.json_path}, "
                f"keyword {error.validator!r}).",
                text=text,
            )
        return value


class TypeParser:
    """Parses and validates with pydantic, into the type."""

    def __init__(self, adapter: TypeAdapter[Any]) -> None:
        self._adapter = adapter

    def __call__(self, text: str) -> Any:
        load_json(text)
        try:
            return self._adapter.validate_json(text)
        except ValidationError as error:
            raise OutputValidationError(
                f"The output does not validate as its type: {error}", text=text
            ) from error
