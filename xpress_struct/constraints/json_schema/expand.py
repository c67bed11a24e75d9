"""Schemas as unions of branches.

`Expander.conj` gives branches whose union holds every value of the conjunction. It holds more only where a
branch carries a note, which says what has to be checked afterwards. A branch that dies in an intersection
takes its notes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from xpress_struct.errors import CompileLimitError, SchemaError

from . import applicators, keywords, negate, unevaluated
from .ecma_nodes import PatternError
from .formats import UNWRITTEN, format_language
from .limits import COARSE_BRANCHES, MAX_BRANCHES, MAX_NAMES, BlowupError, Budget, CircularError
from .meet import meet
from .report import Checked
from .shapes import UNIVERSE, Arr, Branch, Num, Obj, Seen, Shape, Source, Str
from .sites import Conj, Places, Site, Term

__all__ = ["Expander", "Settings"]

_OBJECT_KEYWORDS = ("properties", "patternProperties", "additionalProperties")
_BASE = tuple(Branch(shape) for shape in UNIVERSE)


@dataclass(frozen=True)
class Settings:
    """What the caller chose; see `rewrite.rewrite`."""

    formats: Literal["known", "ignore"] = "known"
    openapi: bool = False
    coarse: bool = False  # fewer alternatives, more that is checked after

    @property
    def max_branches(self) -> int:
        return COARSE_BRANCHES if self.coarse else MAX_BRANCHES


class Expander:
    def __init__(self, places: Places, settings: Settings, work: int) -> None:
        self.places, self.settings = places, settings
        self.budget = Budget(work)
        self._terms: dict[tuple[Term, bool], tuple[Branch, ...]] = {}
        self._conjs: dict[tuple[Conj, bool], tuple[Branch, ...]] = {}
        self._active: set[tuple[Term, bool]] = set()
        self.keywords_seen: set[str] = set()
        self.alive: Callable[[Shape], bool] = lambda shape: True
        self.member_alive: Callable[[Conj], bool] = lambda terms: True

    # conjunctions ---------------------------------------------------------------------------------------

    def sub(self, site: Site, schema: Any, *path: str | int) -> Conj:
        """The conjunction that is the subschema at `path`."""
        if schema is True or (isinstance(schema, dict) and not schema.keys() & keywords.CONSTRAINTS):
            return ()
        return (Term(self.places.below(site, schema, *path)),)

    def sub_not(self, site: Site, schema: Any, *path: str | int) -> Conj:
        if schema is False:
            return ()
        return (Term(self.places.below(site, schema, *path), negative=True),)

    def made(self, site: Site, schema: Any) -> Conj:
        return () if schema is True else (Term(self.places.made(site, schema)),)

    def conj(self, terms: Conj, track: bool = False) -> tuple[Branch, ...]:
        """The branches of a conjunction; `track` fills in `Branch.seen`.

        Raises:
            BlowupError: the product of the terms has more than MAX_BRANCHES branches.
            CircularError: a term contains itself in place.
        """
        found = self._conjs.get((terms, track))
        if found is None:
            found = _BASE
            for term in terms:
                found = self.product(found, self.term(term, track))
            self._conjs[terms, track] = found
        return found

    def term(self, term: Term, track: bool = False) -> tuple[Branch, ...]:
        key = (term, track)
        found = self._terms.get(key)
        if found is not None:
            return found
        if key in self._active:
            raise CircularError(term.site.pointer)
        self._active.add(key)
        try:
            if term.negative:
                found = tuple(negate.branches(self, term.site))
            else:
                found = self._positive(term.site, track)
        finally:
            self._active.discard(key)
        self._terms[key] = found
        return found

    def product(self, a: Iterable[Branch], b: Iterable[Branch]) -> tuple[Branch, ...]:
        right = tuple(b)
        if right is _BASE or right == _BASE:
            return tuple(a)
        left = tuple(a)
        limit = max(self.settings.max_branches, len(left), len(right))
        out: dict[tuple[Shape, Seen], Branch] = {}
        for x in left:
            for y in right:
                if type(x.shape) is not type(y.shape):
                    continue
                self.budget.spend()
                shape = meet(x.shape, y.shape)
                if shape is not None:
                    self.put(out, Branch(shape, x.notes | y.notes, x.seen | y.seen))
                if len(out) > limit:
                    raise BlowupError
        return tuple(out.values())

    @staticmethod
    def put(out: dict[tuple[Shape, Seen], Branch], branch: Branch) -> None:
        """Add a branch; of two equal shapes the exact one, or else both notes, stay."""
        key = (branch.shape, branch.seen)
        old = out.get(key)
        if old is not None and old.notes and branch.notes:
            branch = replace(branch, notes=old.notes | branch.notes)
        if old is None or old.notes:
            out[key] = branch

    def union(self, *groups: Iterable[Branch]) -> tuple[Branch, ...]:
        out: dict[tuple[Shape, Seen], Branch] = {}
        for group in groups:
            for branch in group:
                self.put(out, branch)
        return tuple(out.values())

    def live(self, branches: Iterable[Branch]) -> tuple[Branch, ...]:
        return tuple(b for b in branches if self.alive(b.shape))

    @staticmethod
    def noted(branches: Iterable[Branch], note: Checked) -> tuple[Branch, ...]:
        return tuple(replace(b, notes=b.notes | {note}) for b in branches)

    # one schema -----------------------------------------------------------------------------------------

    def _positive(self, site: Site, track: bool) -> tuple[Branch, ...]:
        schema = site.schema
        if isinstance(schema, bool):
            return _BASE if schema else ()
        self.keywords_seen.update(schema)
        if site.draft <= 7 and "$ref" in schema:
            return self.conj((Term(self.places.follow(site, schema["$ref"], "$ref")),), track)
        wants = unevaluated.wanted(site)
        inner = track or wants
        acc = self._plain(site, inner)
        members = next((k for k in _OBJECT_KEYWORDS if k in schema), None)
        for keyword in schema:
            if keyword == members:
                acc = self.product(acc, self._members(site, inner))
            elif keyword in applicators.HANDLERS:
                since, handler = applicators.HANDLERS[keyword]
                if since[0] <= site.draft <= since[1]:
                    acc = self.guarded(acc, site, keyword, handler, inner)
        if wants:
            acc = unevaluated.apply(self, site, acc)
        if self.settings.openapi and schema.get("nullable") is True and "type" in schema:
            acc = self.union(acc, (Branch(UNIVERSE[0]),))
        if not track:
            acc = self.union(replace(b, seen=Seen()) for b in acc)
        return acc

    def guarded(
        self,
        acc: tuple[Branch, ...],
        site: Site,
        keyword: str,
        handler: applicators.Handler,
        track: bool,
    ) -> tuple[Branch, ...]:
        try:
            return handler(self, acc, site, track)
        except BlowupError:
            note = Checked(keyword, site.pointer, "too many combinations of alternatives")
            return self.noted(acc, note)

    def _plain(self, site: Site, track: bool) -> tuple[Branch, ...]:
        """Everything but members of objects and in-place applicators."""
        schema = site.schema
        shapes: list[Shape] = list(UNIVERSE)
        if "const" in schema and site.draft >= 6:
            shapes = self._constants(site, [schema["const"]])
        if "enum" in schema:
            if not isinstance(schema["enum"], list):
                raise SchemaError("enum must be a list", pointer=site.pointer, keyword="enum")
            shapes = self._meet_all(shapes, self._constants(site, schema["enum"]))
        if "type" in schema:
            allowed: list[Shape] = []
            names = keywords.types_of(site)
            for name in names:
                if name != "integer" or "number" not in names:
                    kind = keywords.TYPES[name]
                    allowed.append(Num(integer=True) if name == "integer" else kind())
            shapes = self._meet_all(shapes, allowed)
        kinds = {type(s) for s in shapes}
        notes: dict[type, set[Checked]] = {}
        limits: list[Shape] = [s for s in UNIVERSE if type(s) in kinds]
        for i, shape in enumerate(limits):
            if isinstance(shape, Num):
                limits[i : i + 1] = keywords.number_shape(site)
        for i, shape in enumerate(limits):
            if isinstance(shape, Str):
                limits[i] = self._string(site, notes)
            elif isinstance(shape, Arr):
                limits[i] = keywords.array_shape(site, lambda s, path: self.sub(site, s, *path))
            elif isinstance(shape, Obj):
                limits[i] = self._object(site)
        shapes = self._meet_all(shapes, limits)
        return tuple(
            Branch(
                s,
                frozenset(notes.get(type(s), ())),
                unevaluated.items_seen(site, s) if track else Seen(),
            )
            for s in shapes
        )

    def _meet_all(self, a: list[Shape], b: list[Shape]) -> list[Shape]:
        self.budget.spend(len(a))
        by_kind: dict[type, list[Shape]] = {}
        for y in b:
            by_kind.setdefault(type(y), []).append(y)
        met = (meet(x, y) for x in a for y in by_kind.get(type(x), ()))
        return list(dict.fromkeys(s for s in met if s is not None))

    def _constants(self, site: Site, values: list[Any]) -> list[Shape]:
        """Shapes of constants, strings and numbers gathered."""
        strings = tuple(dict.fromkeys(v for v in values if isinstance(v, str)))
        numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
        rest = [v for v in values if isinstance(v, bool) or not isinstance(v, (int, float, str))]
        shapes = [keywords.constant(site, v, lambda s: self.made(site, s)) for v in rest]
        if strings:
            shapes.append(Str(values=strings))
        if numbers:
            exact = (keywords.number(site, "enum", v) for v in numbers)
            shapes.append(Num(values=tuple(dict.fromkeys(exact))))
        return shapes

    def _string(self, site: Site, notes: dict[type, set[Checked]]) -> Str:
        schema = site.schema
        low = keywords.count(site, "minLength") or 0
        found = Str(low, keywords.count(site, "maxLength"))
        if "pattern" in schema:
            try:
                language = keywords.pattern_language(site, "pattern", schema["pattern"])
                found = replace(found, patterns=(language,))
            except PatternError as why:
                notes.setdefault(Str, set()).add(Checked("pattern", site.pointer, str(why)))
        if self.settings.formats == "known" and isinstance(schema.get("format"), str):
            known = format_language(schema["format"])
            if known is not None:
                found = replace(found, patterns=(*found.patterns, known))
            elif schema["format"] in UNWRITTEN:
                unwritten = f"texts of the format {schema['format']!r} are not a regular language"
                notes.setdefault(Str, set()).add(Checked("format", site.pointer, unwritten))
        return found

    def _object(self, site: Site) -> Obj:
        schema = site.schema
        required: tuple[str, ...] = ()
        if "required" in schema and not (site.draft == 4 and schema["required"] is True):
            required = keywords.string_list(site, "required", schema["required"])
        low = keywords.count(site, "minProperties") or 0
        keys: Conj = ()
        if "propertyNames" in schema and site.draft >= 6:
            keys = self.sub(site, schema["propertyNames"], "propertyNames")
        return Obj((), tuple(dict.fromkeys(required)), low, keywords.count(site, "maxProperties"), keys)

    def _members(self, site: Site, track: bool) -> tuple[Branch, ...]:
        """properties, patternProperties and additionalProperties."""
        schema = site.schema
        notes: set[Checked] = set()
        names = applicators.schemas(site, "properties")
        if len(names) > MAX_NAMES:
            raise CompileLimitError(
                f"an object declares more than {MAX_NAMES} properties (at {site.pointer or 'the root'})"
            )
        members = tuple((n, self.sub(site, s, "properties", n)) for n, s in names.items())
        rules = []
        rest = self.sub(site, schema.get("additionalProperties", True), "additionalProperties")
        for pattern, value in applicators.schemas(site, "patternProperties").items():
            try:
                keys = keywords.pattern_keys(site, pattern)
                rules.append((keys, self.sub(site, value, "patternProperties", pattern)))
            except PatternError as why:
                notes.add(Checked("patternProperties", site.pointer, str(why)))
                rest = ()
        source = Source(members, tuple(rules), rest)
        seen = Seen()
        if track:
            everything = "additionalProperties" in schema
            seen = Seen(frozenset(names), frozenset(p for p, _ in rules), everything)
        wide = tuple(b for b in _BASE if not isinstance(b.shape, Obj))
        return (*wide, Branch(Obj((source,)), frozenset(notes), seen))
