"""The keywords that speak of one type each, as shapes; and the shapes of constant values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from xpress_struct.errors import SchemaError

from . import regular as rx
from .regex_text import language
from .shapes import Arr, Bool, Keys, Null, Num, Obj, Shape, Source, Str
from .sites import Conj, Site

__all__ = [
    "CONSTRAINTS",
    "TYPES",
    "array_shape",
    "constant",
    "count",
    "number",
    "number_shape",
    "pattern_keys",
    "pattern_language",
    "same",
    "string_list",
    "types_of",
]

CONSTRAINTS = frozenset(
    [
        "$dynamicRef",
        "$recursiveRef",
        "$ref",
        "additionalItems",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "contains",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "if",
        "items",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "not",
        "oneOf",
        "pattern",
        "patternProperties",
        "prefixItems",
        "properties",
        "propertyNames",
        "required",
        "then",
        "type",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
    ]
)
"""Keywords that constrain values; every other one is an annotation and is ignored."""

TYPES: Mapping[str, type] = {
    "null": Null,
    "boolean": Bool,
    "number": Num,
    "integer": Num,
    "string": Str,
    "array": Arr,
    "object": Obj,
}


def _malformed(site: Site, keyword: str, wanted: str) -> SchemaError:
    return SchemaError(f"{keyword} must be {wanted}", pointer=site.pointer, keyword=keyword)


def number(site: Site, keyword: str, value: Any) -> Fraction:
    """A JSON number as the decimal fraction that its text says (0.1 is one tenth)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _malformed(site, keyword, "a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise _malformed(site, keyword, "finite")
    return Fraction(value) if isinstance(value, int) else Fraction(repr(value))


def count(site: Site, keyword: str) -> int | None:
    value = site.schema.get(keyword)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        raise _malformed(site, keyword, "a whole number")
    if value < 0:
        raise _malformed(site, keyword, "at least 0")
    return int(value)


def string_list(site: Site, keyword: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise _malformed(site, keyword, "a list of strings")
    return tuple(value)


def types_of(site: Site) -> tuple[str, ...]:
    value = site.schema["type"]
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not names:
        raise _malformed(site, "type", "a type name or a list of them")
    for name in names:
        if not isinstance(name, str) or name not in TYPES:
            raise SchemaError(f"unknown type {name!r}", pointer=site.pointer, keyword="type")
    return tuple(names)


def number_shape(site: Site) -> tuple[Num, ...]:
    """The numeric keywords of one schema; several shapes never, none when they exclude every number."""
    schema = site.schema
    low = high = None
    low_open = high_open = False
    if "minimum" in schema:
        low = number(site, "minimum", schema["minimum"])
    if "maximum" in schema:
        high = number(site, "maximum", schema["maximum"])
    open_low, open_high = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if isinstance(open_low, bool) and site.draft == 4:
        low_open = open_low and low is not None
    elif open_low is not None and site.draft > 4:
        edge = number(site, "exclusiveMinimum", open_low)
        if low is None or edge >= low:
            low, low_open = edge, True
    if isinstance(open_high, bool) and site.draft == 4:
        high_open = open_high and high is not None
    elif open_high is not None and site.draft > 4:
        edge = number(site, "exclusiveMaximum", open_high)
        if high is None or edge <= high:
            high, high_open = edge, True
    multiples: tuple[Fraction, ...] = ()
    if "multipleOf" in schema:
        multiples = (number(site, "multipleOf", schema["multipleOf"]),)
        if multiples[0] <= 0:
            raise _malformed(site, "multipleOf", "greater than 0")
    if low is not None and high is not None and (low, low_open or high_open) > (high, False):
        return ()
    return (Num(False, low, low_open, high, high_open, multiples),)


def pattern_language(site: Site, keyword: str, pattern: Any, *, either: bool = False) -> rx.Regex:
    """The language of a pattern.

    Raises:
        SchemaError: it is not a string.
        PatternError: it has no regular language, or none that is known here.
    """
    if not isinstance(pattern, str):
        raise _malformed(site, keyword, "a string")
    return language(pattern, either=either)


def pattern_keys(site: Site, pattern: str) -> Keys:
    """The keys that a pattern of patternProperties matches.

    Raises:
        PatternError: as for `pattern_language`.
    """
    return Keys(language(pattern), language(pattern, either=True))


def array_shape(site: Site, conj: Callable[[Any, tuple[str | int, ...]], Conj]) -> Arr:
    """prefixItems, items, additionalItems, minItems, maxItems, uniqueItems and contains of one schema."""
    schema = site.schema
    rest: Conj = ()
    prefix: tuple[Conj, ...] = ()
    items = schema.get("items", True)
    if isinstance(items, list) and site.draft < 2020:
        prefix = tuple(conj(s, ("items", i)) for i, s in enumerate(items))
        rest = conj(schema.get("additionalItems", True), ("additionalItems",))
    else:
        rest = conj(items, ("items",))
        first = schema.get("prefixItems", []) if site.draft >= 2020 else []
        if not isinstance(first, list):
            raise _malformed(site, "prefixItems", "a list of schemas")
        prefix = tuple(conj(s, ("prefixItems", i)) for i, s in enumerate(first))
    contains: tuple[tuple[Conj, int, int | None], ...] = ()
    if "contains" in schema and site.draft >= 6:
        least, most = 1, None
        if site.draft >= 2019:
            given = count(site, "minContains")
            least, most = 1 if given is None else given, count(site, "maxContains")
        contains = ((conj(schema["contains"], ("contains",)), least, most),)
    unique = schema.get("uniqueItems", False)
    if not isinstance(unique, bool):
        raise _malformed(site, "uniqueItems", "a boolean")
    return Arr(prefix, rest, count(site, "minItems") or 0, count(site, "maxItems"), unique, contains)


def same(a: Any, b: Any) -> bool:
    """JSON equality: 1 is 1.0, true is not 1, members of objects in any order."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(v, b[k]) for k, v in a.items())
    return bool(a == b)


def constant(site: Site, value: Any, conj: Callable[[Any], Conj]) -> Shape:
    """The shape of one value; `conj` makes the schema of a member's value, and of `false`."""
    if value is None:
        return Null()
    if isinstance(value, bool):
        return Bool((value,))
    if isinstance(value, (int, float)):
        return Num(values=(number(site, "const", value),))
    if isinstance(value, str):
        return Str(values=(value,))
    if isinstance(value, list):
        prefix = tuple(conj({"const": v}) for v in value)
        return Arr(prefix, conj(False), len(prefix), len(prefix))
    if isinstance(value, dict):
        names = tuple((k, conj({"const": v})) for k, v in value.items())
        return Obj((Source(names, (), conj(False)),), tuple(value))
    raise SchemaError("not a JSON value", pointer=site.pointer, keyword="const")
