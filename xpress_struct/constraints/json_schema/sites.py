"""Places in schemas: every subschema with its pointer, its draft and a way to resolve its references."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import referencing
import referencing.exceptions
from jsonschema_specifications import REGISTRY as METASCHEMAS
from referencing.jsonschema import DRAFT202012, UnknownDialect, specification_with

from xpress_struct.errors import SchemaError, UnsupportedFeatureError

from .dialects import DRAFTS, draft_of, guessed_draft

__all__ = ["Conj", "Places", "Site", "Term"]


@dataclass(frozen=True, eq=False)
class Site:
    """One schema (an object or a boolean) at one place; interned, so compared by identity."""

    schema: Any
    pointer: str
    draft: int
    resolver: Any
    serial: int

    def __repr__(self) -> str:
        return f"Site({self.pointer or '#'})"


class Term(NamedTuple):
    """A site, or its complement."""

    site: Site
    negative: bool = False


Conj = tuple[Term, ...]
"""All of these at once; the empty one takes every value."""


def _escape(part: str | int) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")


class Places:
    """The root schema and everything reachable from it.

    Raises:
        SchemaError: from every method, for a reference that does not resolve or a subschema that is
            neither an object nor a boolean.
    """

    def __init__(self, schema: Any, registry: Mapping[str, Any]) -> None:
        self._interned: dict[tuple[int, str, int], Site] = {}
        self._keep: list[Any] = []
        for document, pointer in ((schema, ""), *((d, uri) for uri, d in registry.items())):
            if not isinstance(document, (dict, bool)):
                raise SchemaError(
                    f"a schema is an object or a boolean, not {type(document).__name__}", pointer=pointer
                )
        draft = guessed_draft(schema)
        if draft == 3:
            raise UnsupportedFeatureError(
                "JSON Schema draft 3 is not supported; draft 4 to 2020-12 are", feature="$schema", pointer=""
            )
        resources = []
        for uri, contents in registry.items():
            resources.append((uri, self._resource(contents, draft)))
        root = self._resource(schema, draft)
        base = root.id() or ""
        known = METASCHEMAS.with_resources(resources).with_resource(base, root)
        self._pointers: dict[int, str] = {}
        self._index(schema, "")
        self.dynamic_anchors: dict[str, int] = {}
        self.recursive_anchors = 0
        for contents in (schema, *registry.values()):
            self._anchors(contents)
        self.root = self.site(schema, "", draft, known.resolver(base_uri=base))

    @staticmethod
    def _resource(schema: Any, draft: int) -> referencing.Resource[Any]:
        uri = next(u for u, d in DRAFTS.items() if d == draft)
        default = specification_with(uri)
        try:
            return referencing.Resource.from_contents(schema, default_specification=default)
        except UnknownDialect:
            return DRAFT202012.create_resource(schema)

    def _index(self, schema: Any, pointer: str) -> None:
        stack = [(schema, pointer)]
        while stack:
            value, at = stack.pop()
            if isinstance(value, dict):
                self._pointers.setdefault(id(value), at)
                stack += [(v, f"{at}/{_escape(k)}") for k, v in value.items()]
            elif isinstance(value, list):
                stack += [(v, f"{at}/{i}") for i, v in enumerate(value)]

    def _anchors(self, contents: Any) -> None:
        stack = [contents]
        while stack:
            value = stack.pop()
            if isinstance(value, dict):
                name = value.get("$dynamicAnchor")
                if isinstance(name, str):
                    self.dynamic_anchors[name] = self.dynamic_anchors.get(name, 0) + 1
                self.recursive_anchors += value.get("$recursiveAnchor") is True
                stack += value.values()
            elif isinstance(value, list):
                stack += value

    def site(self, schema: Any, pointer: str, draft: int, resolver: Any) -> Site:
        if not isinstance(schema, (dict, bool)):
            raise SchemaError(
                f"a schema is an object or a boolean, not {type(schema).__name__}", pointer=pointer
            )
        if isinstance(schema, bool):
            key = (int(schema), pointer, draft)
        else:
            key = (id(schema), "", draft)
        found = self._interned.get(key)
        if found is None:
            self._keep.append(schema)  # an id is only good while its object lives
            found = Site(schema, pointer, draft, resolver, len(self._interned))
            self._interned[key] = found
        return found

    def below(self, site: Site, schema: Any, *path: str | int) -> Site:
        """The subschema `schema`, found at `path` under `site`."""
        pointer = site.pointer + "".join(f"/{_escape(p)}" for p in path)
        resolver, draft = site.resolver, draft_of(schema, site.draft)
        if isinstance(schema, dict):
            name = schema.get("id" if draft == 4 else "$id")
            if isinstance(name, str) and not (draft <= 7 and "$ref" in schema):
                resolver = resolver.in_subresource(self._resource(schema, draft))
        return self.site(schema, pointer, draft, resolver)

    def made(self, site: Site, schema: Any) -> Site:
        """A schema of our own, reported as standing at `site`."""
        return self.site(schema, site.pointer, site.draft, site.resolver)

    def follow(self, site: Site, ref: Any, keyword: str) -> Site:
        """The target of a reference."""
        if not isinstance(ref, str):
            raise SchemaError("a reference is a string", pointer=site.pointer, keyword=keyword)
        try:
            found = site.resolver.lookup(ref)
        except (referencing.exceptions.Unresolvable, ValueError, LookupError) as why:
            raise SchemaError(
                f"{keyword} {ref!r} does not resolve: {type(why).__name__}",
                pointer=site.pointer,
                keyword=keyword,
            ) from None
        draft = draft_of(found.contents, site.draft)
        pointer = self._pointers.get(id(found.contents), ref)
        return self.site(found.contents, pointer, draft, found.resolver)
