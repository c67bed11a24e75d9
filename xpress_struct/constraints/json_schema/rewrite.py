"""The schema rewriter: any JSON Schema in, a schema that the engine compiles exactly out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from xpress_struct.errors import ArgumentError, CompileLimitError, SchemaError

from . import engine
from . import regular as rx
from .alive import Alive
from .emit import Emitter
from .expand import Expander, Settings
from .keywords import CONSTRAINTS
from .limits import (
    ASK_ENGINE,
    MAX_COARSE_OUTPUT,
    MAX_OUTPUT,
    MAX_WORK,
    WORK_PER_VALUE,
    CircularError,
    measure,
)
from .prune import prune
from .report import Rewritten
from .sites import Places, Term

__all__ = ["rewrite"]


def rewrite(
    schema: Any,
    *,
    registry: Mapping[str, Any] | None = None,
    formats: Literal["known", "ignore"] = "known",
    key_order: Literal["declared", "any"] = "declared",
    bounded_numbers: bool = True,
    openapi: bool = False,
) -> Rewritten:
    """Rewrite `schema` (drafts 4, 6, 7, 2019-09, 2020-12; without `$schema`: 2020-12).

    Args:
        registry: documents that `$ref` may name, by URI. The metaschemas of the drafts are known.
        formats: "known" writes strings of the formats in `formats.FORMATS` in that format and takes other
            formats as annotations; "ignore" takes all as annotations, as the standard does by default.
        key_order: "declared" writes members in declared order; "any" takes every order of the declared
            members of objects with at most `objects.MAX_ANY_ORDER` of them.
        bounded_numbers: keep digits within the limits of `numbers.py`; False lets numbers without bounds have
            any number of digits and an exponent.
        openapi: `nullable: true` beside `type` also takes null.

    Raises:
        SchemaError: the schema is malformed, refers to nothing or to itself, or no value satisfies it.
        CompileLimitError: it is larger than `limits.py` allows.
        UnsupportedFeatureError: key_order="any" on an object with too many properties.
        ArgumentError: an option has a value that is not listed.
    """
    for name, value, known in (
        ("formats", formats, ("known", "ignore")),
        ("key_order", key_order, ("declared", "any")),
    ):
        if value not in known:
            raise ArgumentError(f"{name} must be one of {', '.join(known)}, not {value!r}")
    work = MAX_WORK + WORK_PER_VALUE * measure(schema)
    rx.trim_cache()
    options = (work, registry or {}, key_order, bounded_numbers)
    try:
        found = _rewrite(schema, Settings(formats, openapi), *options)
        size = len(json.dumps(found.schema))
        if size < ASK_ENGINE or (size < MAX_OUTPUT and not engine.refusal(found.schema)):
            return found
    except CompileLimitError:
        pass
    found = _rewrite(schema, Settings(formats, openapi, coarse=True), *options)
    if len(json.dumps(found.schema)) > MAX_COARSE_OUTPUT:
        raise CompileLimitError(f"the rewritten schema is longer than {MAX_COARSE_OUTPUT} characters")
    return found


def _rewrite(
    schema: Any,
    settings: Settings,
    work: int,
    registry: Mapping[str, Any],
    key_order: Literal["declared", "any"],
    bounded_numbers: bool,
) -> Rewritten:
    places = Places(schema, registry)
    ex = Expander(places, settings, work)
    alive = Alive(ex)
    ex.alive, ex.member_alive = alive, alive.conj
    emitter = Emitter(ex, alive, key_order, bounded_numbers)
    root = () if schema is True else (Term(places.root),)
    try:
        start = emitter.run(root)
    except CircularError as where:
        raise SchemaError(
            "the schema refers to itself without consuming anything", pointer=where.pointer
        ) from None
    found, used = prune(start, emitter.definitions)
    if found is False:
        raise SchemaError("no value satisfies the schema")
    notes = sorted({note for made in used for note in made.notes})
    checked = {note.keyword for note in notes}
    # a complement that is not written leaves the keyword open that asked for it
    checked |= {part for note in notes for part in note.pointer.split("/")} & {"not", "oneOf", "if"}
    return Rewritten(
        schema=found,
        enforced=tuple(sorted((ex.keywords_seen & CONSTRAINTS) - checked)),
        checked_after=tuple(notes),
        open_keys=any(made.open_keys for made in used),
    )
