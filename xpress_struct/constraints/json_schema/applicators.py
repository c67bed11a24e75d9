"""The keywords that apply schemas to the same value: allOf, anyOf, oneOf, not, if, $ref, dependent*."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

from xpress_struct.errors import SchemaError

from . import keywords
from .limits import MAX_BRANCHES, BlowupError
from .report import Checked
from .shapes import Branch, Obj, notes_of, renoted
from .sites import Conj, Site, Term

if TYPE_CHECKING:
    from .expand import Expander

__all__ = ["HANDLERS", "Handler", "schemas"]

Branches = tuple[Branch, ...]
Handler = Callable[["Expander", Branches, Site, bool], Branches]

_MAX_RIVALS = 40
"""Overlapping alternatives that one alternative of oneOf is cut by before giving up."""
_MAX_PAIRS = 20_000
"""Pairs of oneOf alternatives that are compared before giving up."""


def schemas(site: Site, keyword: str) -> Mapping[str, Any]:
    value = site.schema.get(keyword, {})
    if not isinstance(value, dict):
        raise SchemaError(f"{keyword} must be an object", pointer=site.pointer, keyword=keyword)
    return value


def _options(ex: Expander, site: Site, keyword: str) -> list[Conj]:
    value = site.schema[keyword]
    if not isinstance(value, list) or not value:
        raise SchemaError(
            f"{keyword} must be a list of schemas, not empty", pointer=site.pointer, keyword=keyword
        )
    return [ex.sub(site, s, keyword, i) for i, s in enumerate(value)]


def _check_size(branches: int) -> None:
    if branches > MAX_BRANCHES * 10:
        raise BlowupError


def _ref(ex: Expander, acc: Branches, site: Site, track: bool) -> Branches:
    target = ex.places.follow(site, site.schema["$ref"], "$ref")
    return ex.product(acc, ex.conj((Term(target),), track))


def _dynamic_ref(ex: Expander, acc: Branches, site: Site, track: bool) -> Branches:
    target = ex.places.follow(site, site.schema["$dynamicRef"], "$dynamicRef")
    name = target.schema.get("$dynamicAnchor") if isinstance(target.schema, dict) else None
    if name is not None and ex.places.dynamic_anchors.get(name, 0) > 1:
        why = "the target depends on the path by which the schema is reached"
        return ex.noted(acc, Checked("$dynamicRef", site.pointer, why))
    return ex.product(acc, ex.conj((Term(target),), track))


def _recursive_ref(ex: Expander, acc: Branches, site: Site, track: bool) -> Branches:
    target = ex.places.follow(site, site.schema["$recursiveRef"], "$recursiveRef")
    dynamic = isinstance(target.schema, dict) and target.schema.get("$recursiveAnchor") is True
    if dynamic and ex.places.recursive_anchors > 1:
        why = "the target depends on the path by which the schema is reached"
        return ex.noted(acc, Checked("$recursiveRef", site.pointer, why))
    return ex.product(acc, ex.conj((Term(target),), track))


def _all_of(ex: Expander, acc: Branches, site: Site, track: bool) -> Branches:
    for i, option in enumerate(_options(ex, site, "allOf")):
        try:
            acc = ex.product(acc, ex.conj(option, track))
        except BlowupError:
            why = f"too many combinations of alternatives in member {i}"
            acc = ex.noted(acc, Checked("allOf", site.pointer, why))
    return acc


def _any_of(ex: Expander, acc: Branches, site: Site, track: bool) -> Branches:
    options = _options(ex, site, "anyOf")
    groups = [ex.product(acc, ex.conj(option, track)) for option in options]
    if track:
        if len(options) > 6:
            raise BlowupError
        for size in range(2, len(options) + 1):
            for some in combinations(options, size):
                both = acc
                for option in some:
                    both = ex.product(both, ex.conj(option, track))
                groups.append(both)
    _check_size(sum(map(len, groups)))
    return ex.union(*groups)


def _one_of(ex: Expander, acc: Branches, site: Site, track: bool) -> Branches:
    options = _options(ex, site, "oneOf")
    groups = [ex.live(ex.product(acc, ex.conj(option, track))) for option in options]
    _check_size(sum(map(len, groups)))
    rivals: list[list[int]] = [[] for _ in options]
    pairs = 0
    for i, j in combinations([i for i, group in enumerate(groups) if group], 2):
        pairs += len(groups[i]) * len(groups[j])
        if pairs > _MAX_PAIRS or _overlap(ex, groups[i], groups[j]):
            rivals[i].append(j)
            rivals[j].append(i)
    note = Checked("oneOf", site.pointer, "its alternatives overlap")
    out: list[Branches] = []
    for i, group in enumerate(groups):
        alone = group
        try:
            if len(rivals[i]) > (0 if ex.settings.coarse else _MAX_RIVALS):
                raise BlowupError
            for j in rivals[i]:
                others = (Term(t.site, not t.negative) for t in options[j])
                outside = [ex.term(t, False) for t in others]
                alone = ex.live(_renote(group, ex.product(alone, outside[0] if outside else ()), note))
        except BlowupError:
            alone = ex.noted(group, note)
        out.append(alone)
    return ex.union(*out)


def _renote(before: Branches, after: Branches, note: Checked) -> Branches:
    """`after` with the notes that are new in it replaced by `note`, which says it for the whole keyword."""
    old = frozenset[Checked]().union(*(notes_of(b) for b in before)) | {note}
    return tuple(b if notes_of(b) <= old else renoted(b, old, note) for b in after)


def _overlap(ex: Expander, a: Branches, b: Branches) -> bool:
    for x in a:
        for y in b:
            if type(x.shape) is type(y.shape) and ex.live(ex.product((x,), (y,))):
                return True
    return False


def _not(ex: Expander, acc: Branches, site: Site, track: bool) -> Branches:
    terms = ex.sub_not(site, site.schema["not"], "not")
    if not terms:
        return acc
    note = Checked("not", site.pointer, "its complement cannot be written as a grammar here")
    return _renote(acc, ex.product(acc, ex.term(terms[0])), note)


def _if(ex: Expander, acc: Branches, site: Site, track: bool) -> Branches:
    schema = site.schema
    if "then" not in schema and "else" not in schema and not track:
        return acc
    test = ex.sub(site, schema["if"], "if")
    then = ex.sub(site, schema.get("then", True), "then")
    other = ex.sub(site, schema.get("else", True), "else")
    note = Checked("if", site.pointer, "the complement of its test cannot be written as a grammar here")
    yes = ex.product(ex.product(acc, ex.conj(test, track)), ex.conj(then, track))
    no: Branches = ()
    if test:
        no = _renote(acc, ex.product(acc, ex.term(Term(test[0].site, not test[0].negative))), note)
    no = ex.product(no, ex.conj(other, track))
    return ex.union(yes, no)


def _absent(ex: Expander, acc: Branches, site: Site, name: str) -> Branches:
    return ex.product(acc, ex.conj(ex.made(site, {"properties": {name: False}})))


def _when_present(ex: Expander, acc: Branches, site: Site, name: str, then: Conj, track: bool) -> Branches:
    """Values without `name`, and objects with it that also satisfy `then`."""
    has = ex.made(site, {"type": "object", "required": [name]})
    present = ex.product(ex.product(acc, ex.conj(has)), ex.conj(then, track))
    missing = tuple(
        b
        for b in _absent(ex, acc, site, name)
        if not (isinstance(b.shape, Obj) and name in b.shape.required)  # an early death
    )
    out = ex.union(present, missing)
    if len(out) > max(ex.settings.max_branches, len(acc)):
        raise BlowupError
    return out


def _dependent(keyword: str) -> Handler:
    def handle(ex: Expander, acc: Branches, site: Site, track: bool) -> Branches:
        for name, value in schemas(site, keyword).items():
            if isinstance(value, list) and keyword != "dependentSchemas":
                wanted = keywords.string_list(site, keyword, value)
                then = ex.made(site, {"required": list(wanted)}) if wanted else ()
            else:
                then = ex.sub(site, value, keyword, name)
            if not then:
                continue
            try:
                acc = _when_present(ex, acc, site, name, then, track)
            except BlowupError:
                why = f"too many combinations of alternatives for {name!r}"
                acc = ex.noted(acc, Checked(keyword, site.pointer, why))
        return acc

    return handle


_ALWAYS = (4, 2020)
HANDLERS: Mapping[str, tuple[tuple[int, int], Handler]] = {
    "$ref": (_ALWAYS, _ref),
    "$dynamicRef": ((2020, 2020), _dynamic_ref),
    "$recursiveRef": ((2019, 2019), _recursive_ref),
    "allOf": (_ALWAYS, _all_of),
    "anyOf": (_ALWAYS, _any_of),
    "oneOf": (_ALWAYS, _one_of),
    "not": (_ALWAYS, _not),
    "if": ((7, 2020), _if),
    "dependencies": (_ALWAYS, _dependent("dependencies")),
    "dependentRequired": ((2019, 2020), _dependent("dependentRequired")),
    "dependentSchemas": ((2019, 2020), _dependent("dependentSchemas")),
}
"""Keyword -> (first and last draft that has it, handler).

`dependencies` is applied in every draft: 2019-09 and later call it deprecated, not gone.
"""
