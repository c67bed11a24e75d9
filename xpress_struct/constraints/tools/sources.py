"""What people pass as a tool: a function, a type, an OpenAI spec -> Tool."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter
from pydantic_core import PydanticSerializationError, to_jsonable_python
from typing_extensions import NotRequired, TypedDict

from xpress_struct.constraints.json_schema.types import read_schema
from xpress_struct.constraints.tools.tool import Tool
from xpress_struct.errors import ArgumentError, SchemaError

__all__ = ["as_tool"]

_SPEC_KEYS = {"name", "description", "parameters", "strict"}


def as_tool(source: Any) -> Tool:
    """The tool of a source.

    Args:
        source: a `Tool`; a function whose parameters have annotations; a Pydantic model, dataclass or
            TypedDict; or a spec of OpenAI's, as chat completions have it or flat as responses have it.

    Raises:
        ArgumentError: it is none of these, or a parameter cannot be told to a model.
    """
    if isinstance(source, Tool):
        return source
    if isinstance(source, Mapping):
        return _of_spec(source)
    if isinstance(source, type):
        return _of_type(source)
    if callable(source):
        return _of_function(source)
    raise ArgumentError(
        f"{source!r} is no tool: pass a function, a Pydantic model, an OpenAI tool spec or a Tool."
    )


def _of_spec(spec: Mapping[str, Any]) -> Tool:
    kind = spec.get("type", "function")
    if kind != "function":
        raise ArgumentError(f"A tool of type {kind!r} cannot be called here; only functions can.")
    inner = spec.get("function")
    # `strict` may have either value: parameters are always enforced.
    given = dict(inner) if isinstance(inner, Mapping) else {k: v for k, v in spec.items() if k != "type"}
    if unknown := given.keys() - _SPEC_KEYS:
        raise ArgumentError(f"An OpenAI tool spec has no {', '.join(sorted(map(str, unknown)))}.")
    if "name" not in given:
        raise ArgumentError(f"The tool spec has no name: {dict(spec)!r}.")
    about = given.get("description") or ""
    if given.get("parameters") is None:
        return Tool(given["name"], about)
    return Tool(given["name"], about, given["parameters"])


def _of_type(kind: type) -> Tool:
    schema, adapter = read_schema(kind)
    reference = schema.get("$ref", "")
    if reference.startswith("#/$defs/"):  # a type that holds itself
        schema = {**schema["$defs"][reference.removeprefix("#/$defs/")], "$defs": schema["$defs"]}
    return Tool(kind.__name__, schema.get("description", ""), schema, adapter=adapter)


def _of_function(function: Callable[..., Any]) -> Tool:
    name = getattr(function, "__name__", None)
    if name is None:
        raise ArgumentError(f"{function!r} has no name: pass a function, or a Tool with a name of its own.")
    try:
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters.values()
    except (NameError, TypeError, ValueError) as error:
        raise ArgumentError(f"The parameters of the function {name!r} cannot be read: {error}") from None
    fields: dict[str, Any] = {}
    for each in parameters:
        if each.kind in (each.POSITIONAL_ONLY, each.VAR_POSITIONAL, each.VAR_KEYWORD):
            raise ArgumentError(
                f"The parameter {str(each)!r} of the function {name!r} is {each.kind.description}; a model "
                "gives arguments by name."
            )
        if each.name not in hints:
            raise ArgumentError(f"The parameter {each.name!r} of the function {name!r} has no annotation.")
        hint = hints[each.name]
        fields[each.name] = hint if each.default is each.empty else NotRequired[hint]
    make: Any = TypedDict
    arguments = make(name, fields)
    arguments.__pydantic_config__ = ConfigDict(extra="forbid")
    try:
        schema, adapter = read_schema(TypeAdapter(arguments))
    except (SchemaError, TypeError, ValueError, RuntimeError) as error:  # pydantic's are of several kinds
        raise ArgumentError(
            f"The function {name!r} has a parameter that JSON cannot give: {str(error).splitlines()[0]}"
        ) from None
    for each in parameters:
        _show_default(schema, each)
    schema.pop("title", None)
    about = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
    return Tool(name, about, schema, function, adapter)


def _show_default(schema: dict[str, Any], parameter: inspect.Parameter) -> None:
    """Tells the model what a parameter is when it is left out, where JSON can."""
    if parameter.default is parameter.empty:
        return
    try:
        schema["properties"][parameter.name].setdefault("default", to_jsonable_python(parameter.default))
    except PydanticSerializationError:
        return
