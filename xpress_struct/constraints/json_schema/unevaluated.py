"""unevaluatedProperties and unevaluatedItems, where what has been evaluated is known branch by branch.

While a schema that has one of them is expanded, every branch records the members that its keywords have
evaluated (`Seen`); anyOf then also expands every set of alternatives that hold together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .meet import meet
from .report import Checked
from .shapes import Arr, Branch, Obj, Seen, Shape, Source
from .sites import Conj, Site

if TYPE_CHECKING:
    from .expand import Expander

__all__ = ["apply", "items_seen", "wanted"]

_ANYTHING: Conj = ()


def wanted(site: Site) -> bool:
    """Whether the schema has an unevaluated* keyword that its draft knows."""
    return site.draft >= 2019 and (
        "unevaluatedProperties" in site.schema or "unevaluatedItems" in site.schema
    )


def items_seen(site: Site, shape: Shape) -> Seen:
    """What the array keywords of `site` itself evaluate."""
    if not isinstance(shape, Arr):
        return Seen()
    schema = site.schema
    if isinstance(schema.get("items"), list) and site.draft < 2020:
        return Seen(items=len(schema["items"]), all_items="additionalItems" in schema)
    prefix = schema.get("prefixItems", []) if site.draft >= 2020 else []
    return Seen(items=len(prefix), all_items="items" in schema)


def _has_contains(shape: Arr, site: Site) -> bool:
    return site.draft >= 2020 and bool(shape.contains)


def apply(ex: Expander, site: Site, acc: tuple[Branch, ...]) -> tuple[Branch, ...]:
    """`acc`, whose `seen` is filled in, with the unevaluated* keywords of `site` applied."""
    schema = site.schema
    out: dict[tuple[Shape, Seen], Branch] = {}
    for branch in acc:
        made: Branch | None = branch
        if isinstance(branch.shape, Obj) and "unevaluatedProperties" in schema:
            rest = ex.sub(site, schema["unevaluatedProperties"], "unevaluatedProperties")
            made = _properties(branch, rest)
        elif isinstance(branch.shape, Arr) and "unevaluatedItems" in schema:
            rest = ex.sub(site, schema["unevaluatedItems"], "unevaluatedItems")
            made = _items(branch, site, rest)
        if made is not None:
            ex.put(out, made)
    return tuple(out.values())


def _properties(branch: Branch, rest: Conj) -> Branch | None:
    seen = branch.seen
    after = seen | Seen(all_names=True)
    if seen.all_names:
        return branch
    names = tuple((n, _ANYTHING) for n in sorted(seen.names))
    patterns = tuple((p, _ANYTHING) for p in sorted(seen.patterns, key=lambda p: p.both.serial))
    shape = meet(branch.shape, Obj((Source(names, patterns, rest),)))
    return None if shape is None else Branch(shape, branch.notes, after)


def _items(branch: Branch, site: Site, rest: Conj) -> Branch | None:
    seen = branch.seen
    after = seen | Seen(all_items=True)
    if seen.all_items:
        return branch
    assert isinstance(branch.shape, Arr)
    notes = branch.notes
    if _has_contains(branch.shape, site):
        why = "which items `contains` has evaluated is not known in advance"
        note = Checked("unevaluatedItems", site.pointer, why)
        return Branch(branch.shape, notes | {note}, after)
    shape = meet(branch.shape, Arr(prefix=((),) * seen.items, rest=rest))
    return None if shape is None else Branch(shape, notes, after)
