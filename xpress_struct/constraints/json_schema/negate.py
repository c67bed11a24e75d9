"""Complements of schemas.

A schema is the "and" of its keywords, so its complement is the union of the complements of its keywords.
Where one of those is no union of shapes, the branch is the whole type and carries a note.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import applicators, keywords
from . import regular as rx
from .ecma_nodes import PatternError
from .formats import FORMATS
from .limits import BlowupError
from .report import Checked
from .shapes import UNIVERSE, Arr, Bool, Branch, Null, Num, Obj, Shape, Some, Source, Str
from .sites import Conj, Site, Term
from .strings import string_language

if TYPE_CHECKING:
    from .expand import Expander

__all__ = ["branches"]

_REASON = "its complement cannot be written as a grammar here"


def branches(ex: Expander, site: Site) -> Iterator[Branch]:
    """Every value that `site` refuses (and, under a note, others)."""
    schema = site.schema
    if isinstance(schema, bool):
        if not schema:
            yield from (Branch(shape) for shape in UNIVERSE)
        return
    ex.keywords_seen.update(schema)
    if site.draft <= 7 and "$ref" in schema:
        yield from _not_ref(ex, site, "$ref")
        return
    kinds = _kinds(site)
    if ex.settings.openapi and schema.get("nullable") is True and "type" in schema:
        kinds.discard(Null)
    out: dict[Any, Branch] = {}
    for branch in _all(ex, site):
        ex.put(out, branch)
    for branch in out.values():
        # what the other keywords say about types that "type" refuses is in its own complement
        if type(branch.shape) in kinds or "type" not in schema or branch in _not_type(site):
            yield branch


def _kinds(site: Site) -> set[type]:
    if "type" not in site.schema:
        return {type(s) for s in UNIVERSE}
    return {keywords.TYPES[name] for name in keywords.types_of(site)}


def _check(site: Site, keyword: str) -> Checked:
    return Checked(keyword, site.pointer, _REASON)


def _noted(site: Site, keyword: str, shape: Shape) -> Branch:
    return Branch(shape, frozenset({_check(site, keyword)}))


def _all(ex: Expander, site: Site) -> Iterator[Branch]:
    schema = site.schema
    if "type" in schema:
        yield from _not_type(site)
    if "const" in schema and site.draft >= 6:
        yield from _not_values(site, "const", [schema["const"]])
    if "enum" in schema:
        yield from _not_values(site, "enum", schema["enum"])
    yield from _not_numbers(site)
    yield from _not_strings(ex, site)
    yield from _not_arrays(ex, site)
    yield from _not_objects(ex, site)
    yield from _not_applied(ex, site)


def _not_type(site: Site) -> list[Branch]:
    names = keywords.types_of(site)
    taken = {keywords.TYPES[name] for name in names}
    out = [Branch(shape) for shape in UNIVERSE if type(shape) not in taken]
    if "integer" in names and "number" not in names:
        out.append(Branch(Num(fraction=_check(site, "type"))))
    return out


def _not_values(site: Site, keyword: str, values: list[Any]) -> Iterator[Branch]:
    if not any(v is None for v in values):
        yield Branch(Null())
    left = tuple(b for b in (True, False) if not any(v is b for v in values))
    if left:
        yield Branch(Bool(left))
    plain = [v for v in values if not isinstance(v, bool)]
    numbers = [keywords.number(site, keyword, v) for v in plain if isinstance(v, (int, float))]
    yield Branch(Num(excluded=frozenset(numbers)))
    yield Branch(Str(excluded=frozenset(v for v in plain if isinstance(v, str))))
    arrays = [v for v in plain if isinstance(v, list)]
    low = 1 if [] in arrays else 0
    shape: Shape = Arr(low=low)
    yield _noted(site, keyword, shape) if any(arrays) else Branch(shape)
    objects = [v for v in plain if isinstance(v, dict)]
    shape = Obj(low=1 if {} in objects else 0)
    yield _noted(site, keyword, shape) if any(objects) else Branch(shape)


def _not_numbers(site: Site) -> Iterator[Branch]:
    for n in keywords.number_shape(site):
        if n.low is not None:
            yield Branch(Num(high=n.low, high_open=not n.low_open))
        if n.high is not None:
            yield Branch(Num(low=n.high, low_open=not n.high_open))
        if n.multiples:
            yield Branch(Num(no_multiples=((n.multiples[0], _check(site, "multipleOf")),)))
        return
    yield Branch(Num())  # the bounds exclude every number


def _not_strings(ex: Expander, site: Site) -> Iterator[Branch]:
    schema = site.schema
    low, high = keywords.count(site, "minLength"), keywords.count(site, "maxLength")
    if low:
        yield Branch(Str(high=low - 1))
    if high is not None:
        yield Branch(Str(low=high + 1))
    if "pattern" in schema:
        try:
            found = keywords.pattern_language(site, "pattern", schema["pattern"], either=True)
            yield Branch(Str(patterns=(rx.negate(found),)))
        except PatternError as why:
            yield Branch(Str(), frozenset({Checked("pattern", site.pointer, str(why))}))
    if ex.settings.formats == "known" and schema.get("format") in FORMATS:
        yield _noted(site, "format", Str())


def _not_arrays(ex: Expander, site: Site) -> Iterator[Branch]:
    schema = site.schema
    arr = keywords.array_shape(site, lambda s, path: ex.sub(site, s, *path))
    if arr.low:
        yield Branch(Arr(high=arr.low - 1))
    if arr.high is not None:
        yield Branch(Arr(low=arr.high + 1))
    for i, conj in enumerate(arr.prefix):
        for term in conj:
            yield Branch(Arr(prefix=((),) * i + ((_flip(term),),), low=i + 1))
    for term in arr.rest:
        if not arr.prefix:
            yield Branch(Arr(contains=(((_flip(term),), 1, None),), low=1))
        else:
            yield _noted(site, "items", Arr(low=len(arr.prefix) + 1))
    if arr.unique:
        yield _noted(site, "uniqueItems", Arr(low=2))
    for conj, least, most in arr.contains:
        if least:
            yield Branch(Arr(contains=((conj, 0, least - 1),)))
        if most is not None:
            yield Branch(Arr(contains=((conj, most + 1, None),), low=most + 1))
    if "unevaluatedItems" in schema and site.draft >= 2019:
        yield _noted(site, "unevaluatedItems", Arr(low=1))


def _flip(term: Term) -> Term:
    return Term(term.site, not term.negative)


def _not_objects(ex: Expander, site: Site) -> Iterator[Branch]:
    schema = site.schema
    nothing: Conj = ex.made(site, False)
    for name in schema.get("required", ()) if isinstance(schema.get("required"), list) else ():
        yield Branch(Obj((Source(((name, nothing),)),)))
    low, high = keywords.count(site, "minProperties"), keywords.count(site, "maxProperties")
    if low:
        yield Branch(Obj(high=low - 1))
    if high is not None:
        yield Branch(Obj(low=high + 1))
    names = applicators.schemas(site, "properties")
    for name, value in names.items():
        for term in ex.sub(site, value, "properties", name):
            yield Branch(Obj((Source(((name, (_flip(term),)),)),), (name,)))
    yield from _not_rules(ex, site, tuple(names))
    if "propertyNames" in schema and site.draft >= 6:
        yield from _not_names(ex, site)
    if "unevaluatedProperties" in schema and site.draft >= 2019:
        yield _noted(site, "unevaluatedProperties", Obj(low=1))


def _not_rules(ex: Expander, site: Site, names: tuple[str, ...]) -> Iterator[Branch]:
    """Objects with a member that patternProperties or additionalProperties refuses."""
    schema = site.schema
    matched: list[rx.Regex] = [rx.literal(name) for name in names]
    for pattern, value in applicators.schemas(site, "patternProperties").items():
        try:
            keys = keywords.pattern_keys(site, pattern)
        except PatternError:
            yield _noted(site, "patternProperties", Obj(low=1))
            matched.append(rx.ALL)
            continue
        matched.append(keys.either)
        for term in ex.sub(site, value, "patternProperties", pattern):
            some = Some(keys.both, (_flip(term),), _check(site, "patternProperties"))
            yield Branch(Obj(some=(some,)))
    others = rx.negate(rx.alt(*matched))
    for term in ex.sub(site, schema.get("additionalProperties", True), "additionalProperties"):
        some = Some(others, (_flip(term),), _check(site, "additionalProperties"))
        yield Branch(Obj(some=(some,)))


def _not_names(ex: Expander, site: Site) -> Iterator[Branch]:
    """Objects with a key that propertyNames refuses."""
    for term in ex.sub(site, site.schema["propertyNames"], "propertyNames"):
        for b in ex.term(_flip(term)):
            if isinstance(b.shape, Str):
                some = Some(string_language(b.shape), (), _check(site, "propertyNames"))
                yield Branch(Obj(some=(some,)), b.notes)


def _not_ref(ex: Expander, site: Site, keyword: str) -> tuple[Branch, ...]:
    target = ex.places.follow(site, site.schema[keyword], keyword)
    return ex.term(Term(target, negative=True))


def _not_applied(ex: Expander, site: Site) -> Iterator[Branch]:
    schema = site.schema
    if "$ref" in schema:
        yield from _not_ref(ex, site, "$ref")
    for keyword in ("$dynamicRef", "$recursiveRef"):
        if keyword in schema and site.draft >= 2019:
            yield from (_noted(site, keyword, shape) for shape in UNIVERSE)
    for i, option in enumerate(schema.get("allOf", ())):
        yield from _complement(ex, ex.sub(site, option, "allOf", i))
    if "anyOf" in schema:
        yield from _none_of(ex, site, "anyOf")
    if "oneOf" in schema:
        yield from _not_one_of(ex, site)
    if "not" in schema:
        yield from ex.conj(ex.sub(site, schema["not"], "not"))
    if "if" in schema and site.draft >= 7:
        yield from _not_if(ex, site)
    for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
        yield from _not_dependent(ex, site, keyword)


def _complement(ex: Expander, conj: Conj) -> Iterator[Branch]:
    for term in conj:
        yield from ex.term(_flip(term))


def _guarded(site: Site, keyword: str) -> Iterator[Branch]:
    return (_noted(site, keyword, shape) for shape in UNIVERSE)


def _none_of(ex: Expander, site: Site, keyword: str) -> Iterator[Branch]:
    options = [ex.sub(site, s, keyword, i) for i, s in enumerate(site.schema[keyword])]
    if not all(options):
        return  # one alternative takes every value
    try:
        yield from ex.conj(tuple(_flip(t) for option in options for t in option))
    except BlowupError:
        yield from _guarded(site, keyword)


def _not_one_of(ex: Expander, site: Site) -> Iterator[Branch]:
    yield from _none_of(ex, site, "oneOf")
    options = [ex.sub(site, s, "oneOf", i) for i, s in enumerate(site.schema["oneOf"])]
    try:
        if len(options) > 12:
            raise BlowupError
        for i, first in enumerate(options):
            for second in options[i + 1 :]:
                yield from ex.product(ex.conj(first), ex.conj(second))
    except BlowupError:
        yield from _guarded(site, "oneOf")


def _not_if(ex: Expander, site: Site) -> Iterator[Branch]:
    schema = site.schema
    test = ex.sub(site, schema["if"], "if")
    then = ex.sub(site, schema.get("then", True), "then")
    other = ex.sub(site, schema.get("else", True), "else")
    try:
        yield from ex.product(ex.conj(test), tuple(_complement(ex, then)))
        yield from ex.product(tuple(_complement(ex, test)), tuple(_complement(ex, other)))
    except BlowupError:
        yield from _guarded(site, "if")


def _not_dependent(ex: Expander, site: Site, keyword: str) -> Iterator[Branch]:
    if keyword != "dependencies" and site.draft < 2019:
        return
    nothing: Conj = ex.made(site, False)
    for name, value in applicators.schemas(site, keyword).items():
        if isinstance(value, list):
            for other in value:
                yield Branch(Obj((Source(((other, nothing),)),), (name,)))
        else:
            outside = tuple(_complement(ex, ex.sub(site, value, keyword, name)))
            yield from ex.product((Branch(Obj(required=(name,))),), outside)
