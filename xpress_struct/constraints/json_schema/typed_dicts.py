"""`typing.TypedDict` for pydantic, which before Python 3.12 reads only that of typing_extensions."""

from __future__ import annotations

import sys
import types
import typing
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typing_extensions

__all__ = ["readable_type"]


def readable_type(kind: Any) -> Any:
    """The type with every `typing.TypedDict` in it made anew by typing_extensions; others stay as they are.

    TypedDicts in the fields of classes (Pydantic models, dataclasses) are theirs to spell.
    """
    return kind if sys.version_info >= (3, 12) else _readable(kind, ())


def _readable(kind: Any, inside: tuple[Any, ...]) -> Any:
    if type(kind).__module__ == "typing" and typing.is_typeddict(kind) and kind not in inside:
        fields: dict[str, Any] = {}
        for name, hint in get_type_hints(kind, include_extras=True).items():
            bare = hint
            while get_origin(bare) in (typing_extensions.Required, typing_extensions.NotRequired):
                (bare,) = get_args(bare)
            needed = name in kind.__required_keys__
            marker = typing_extensions.Required if needed else typing_extensions.NotRequired
            fields[name] = marker[_readable(bare, (*inside, kind))]
        made: Any = typing_extensions.TypedDict(kind.__name__, fields)  # type: ignore[misc]
        made.__doc__, made.__module__ = kind.__doc__, kind.__module__
        return made
    origin, parts = get_origin(kind), get_args(kind)
    if origin is None or origin is Literal:
        return kind
    changed = tuple(_readable(part, inside) for part in parts)
    if all(new is old for new, old in zip(changed, parts, strict=True)):
        return kind
    if origin is Annotated:
        return Annotated[(changed[0], *kind.__metadata__)]
    if origin in (Union, types.UnionType):
        return Union[changed]  # noqa: UP007  (the parts are known only now)
    return origin[changed]
