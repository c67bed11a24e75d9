"""Objects in the engine's schema language.

Members stand in declared order: names as the keywords of the schema mention them first, then names that are
only required, then all other keys. Keys that are not declared are never empty, never a declared name in
another spelling, and never a declared name followed (perhaps after blanks) by a quote, a colon or a
bracket. Where the keys of several schemas have to be told apart, a pattern like `^[a-z]{1,255}$` is cut to
100 characters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from math import comb
from typing import TYPE_CHECKING, Any, Literal

from xpress_struct.errors import CompileLimitError, UnsupportedFeatureError

from . import engine
from . import regular as rx
from .alive import key_fits
from .limits import BlowupError, CircularError
from .regex_text import written
from .shapes import Keys, Obj, Source, Str, join
from .sites import Conj
from .strings import joined, outside, string_language

if TYPE_CHECKING:
    from .emit import Emitter

__all__ = ["MAX_ANY_ORDER", "ObjectWriter"]

MAX_ANY_ORDER = 5
"""Most declared properties of one object whose order may be free (n! orders are compiled)."""
_MAX_SUBSETS = 120  # alternatives for minProperties and maxProperties
_MAX_REGIONS = 16  # classes of keys that overlapping patterns may make


@dataclass(frozen=True)
class _Region:
    """Keys that are not declared and whose values satisfy the same schema."""

    language: rx.Regex
    conj: Conj
    open: bool  # some keyword's "everything else", not a pattern of the user's


class ObjectWriter:
    def __init__(self, emitter: Emitter, order: Literal["declared", "any"]) -> None:
        self.emitter, self.ex, self.order = emitter, emitter.ex, order

    def write(self, obj: Obj) -> list[dict[str, Any]]:
        """Alternatives for the engine; notes go to the emitter."""
        if obj == Obj():
            return [self.emitter.any_object()]
        names: dict[str, Conj] = {}
        barred: list[str] = []
        for name in obj.names():
            conj = obj.value(name)
            fits = key_fits(self.ex, obj.keys, name) if obj.keys else True
            if fits is None:
                self.emitter.note("propertyNames", "a name could not be compared with it")
            if fits is False or not self.ex.member_alive(conj):
                if name in obj.required:
                    return []
                barred.append(name)
            else:
                names[name] = conj
        regions = self._regions(obj)
        if obj.some:
            return self._with_some(obj, names, regions)
        out = []
        declared = [*names, *barred]
        for chosen, absent, low, high in self._counts(obj, list(names), bool(regions)):
            kept = {n: c for n, c in names.items() if n not in absent}
            out += self._body(kept, chosen, regions, declared, low, high)
        return out

    def _with_some(self, obj: Obj, names: dict[str, Conj], regions: list[_Region]) -> list[dict[str, Any]]:
        """`obj` without its first demand for some key, split by the declared names that can meet it."""
        first, *others = obj.some
        obj = replace(obj, some=tuple(others))
        met = {
            n: first.conj
            for n, c in names.items()
            if rx.matches(first.language, n) and self.ex.member_alive(join(c, first.conj))
        }
        open_to = [
            r
            for r in regions
            if self._possible(rx.both(r.language, first.language))
            and self.ex.member_alive(join(r.conj, first.conj))
        ]
        if open_to:
            if (
                names
                or first.conj
                or any(self._possible(rx.both(r.language, rx.negate(first.language))) for r in regions)
            ):
                self.emitter.take((first.note,))
            return self.write(replace(obj, low=max(obj.low, 1)))
        out = []
        for name, conj in met.items():
            source = Source(((name, conj),))
            required = tuple(dict.fromkeys((*obj.required, name)))
            out += self.write(replace(obj, sources=(*obj.sources, source), required=required))
        return out

    # keys that are not declared -------------------------------------------------------------------------

    def _regions(self, obj: Obj) -> list[_Region]:
        """Classes of undeclared keys with a possible value."""
        patterns: list[Keys] = []
        for source in obj.sources:
            for pattern, _ in source.patterns:
                if pattern not in patterns:
                    patterns.append(pattern)
        parts: list[tuple[rx.Regex, frozenset[Keys]]] = [(rx.ALL, frozenset())]
        for pattern in patterns:
            split = []
            for language, matched in parts:
                split.append((rx.both(language, pattern.both), matched | {pattern}))
                split.append((rx.both(language, rx.negate(pattern.either)), matched))
            parts = [p for p in split if self._possible(p[0])]
            if len(parts) > _MAX_REGIONS:
                self.emitter.note("patternProperties", "too many patterns overlap")
                return [_Region(rx.ALL, (), True)]
        merged: dict[Conj, tuple[rx.Regex, bool]] = {}
        total = True
        for language, matched in parts:
            conj: Conj = ()
            for source in obj.sources:
                found = [c for p, c in source.patterns if p in matched]
                for one in found or [source.rest]:
                    conj = join(conj, one)
            if self.ex.member_alive(conj):
                before, was_open = merged.get(conj, (rx.NOTHING, False))
                merged[conj] = (rx.alt(before, language), was_open or not matched)
            else:
                total = False
        if total and len(merged) == 1:
            merged = dict.fromkeys(merged, (rx.ALL, True))
        out = [_Region(language, conj, free) for conj, (language, free) in merged.items()]
        if obj.keys:
            out = self._named(obj.keys, out)
        return out

    def _possible(self, language: rx.Regex) -> bool:
        return self.emitter.alive(Str(1, None, (language,)))

    def _named(self, keys: Conj, regions: list[_Region]) -> list[_Region]:
        """The regions cut down to propertyNames."""
        try:
            branches = [b for b in self.ex.conj(keys) if isinstance(b.shape, Str)]
        except (BlowupError, CircularError):
            self.emitter.note("propertyNames", "too many alternatives")
            return regions
        languages: list[rx.Regex] = []
        for b in branches:
            self.emitter.take(b.notes)
            shape = b.shape
            assert isinstance(shape, Str)
            languages.append(string_language(shape))
        allowed = rx.alt(*languages)
        cut = (replace(r, language=rx.both(r.language, allowed)) for r in regions)
        return [r for r in cut if self._possible(r.language)]

    def _patterns(self, regions: list[_Region], declared: list[str]) -> dict[str, Any]:
        """patternProperties for the engine: disjoint, and clear of `declared`."""
        for long in (True, False):
            try:
                texts = [written(self._clear(r, declared), long=long) for r in regions]
            except (rx.TooComplexError, RecursionError):
                continue
            probe = {"type": "object", "patternProperties": dict.fromkeys(filter(None, texts), True)}
            if len(regions) < 2 or not engine.refusal(probe):
                pairs = zip(texts, regions, strict=True)
                return {text: self.emitter.value(r.conj) for text, r in pairs if text is not None}
        return self._loose(regions, declared)

    @staticmethod
    def _clear(region: _Region, declared: list[str]) -> rx.Regex:
        """The region without declared names: where both matched, the engine would meet both schemas."""
        if region.open:
            clear = outside(declared, as_keys=True) if declared else rx.NON_EMPTY
        else:
            hit = [n for n in declared if rx.matches(region.language, n)]
            clear = outside(hit, as_keys=False) if hit else rx.ALL
        return rx.both(region.language, clear)

    def _loose(self, regions: list[_Region], declared: list[str]) -> dict[str, Any]:
        """One pattern for all keys that are not declared: more than the regions take."""
        self.emitter.note("patternProperties", "its patterns are too complex together")
        values = [self.emitter.value(r.conj) for r in regions]
        clear = outside(declared, as_keys=True) if declared else rx.NON_EMPTY
        try:
            return {str(written(clear)): joined(values)}
        except (rx.TooComplexError, RecursionError):
            raise CompileLimitError(
                f"an object declares too many properties ({len(declared)}) and takes others too"
            ) from None

    # numbers of members ---------------------------------------------------------------------------------

    def _counts(
        self, obj: Obj, names: list[str], more: bool
    ) -> Iterator[tuple[list[str], set[str], int, int | None]]:
        """(required, absent, minProperties, maxProperties) of alternatives that the engine takes."""
        required = [n for n in names if n in obj.required]
        optional = [n for n in names if n not in obj.required]
        low = obj.low if obj.low > len(required) else 0
        high = obj.high
        if high is not None and not more and high >= len(names):
            high = None
        if not low and high is None:
            yield required, set(), 0, None
            return
        if not optional:
            yield required, set(), low, high
            return
        missing = max(low - len(required), 0)
        if high is None and comb(len(optional), missing) + missing <= _MAX_SUBSETS:
            yield from self._at_least(required, optional, missing, more)
            return
        room = len(optional) if high is None else min(high - len(required), len(optional))
        total = sum(comb(len(optional), k) for k in range(room + 1))
        if total <= _MAX_SUBSETS:
            for k in range(room + 1):
                for some in combinations(optional, k):
                    chosen = [n for n in names if n in required or n in some]
                    if more or len(chosen) >= low:
                        absent = set(optional) - set(some)
                        yield chosen, absent, low if low > len(chosen) else 0, high if more else None
            return
        keyword = "maxProperties" if high is not None else "minProperties"
        self.emitter.note(keyword, "there are too many sets of optional properties")
        yield required, set(), 0, None

    @staticmethod
    def _at_least(
        required: list[str], optional: list[str], missing: int, more: bool
    ) -> Iterator[tuple[list[str], set[str], int, int | None]]:
        """Split by which optional properties are the first `missing` ones."""
        for taken in range(missing + 1):
            if taken < missing and not more:
                continue
            for some in combinations(range(len(optional)), taken):
                last = some[-1] if some and taken == missing else len(optional)
                absent = {n for i, n in enumerate(optional[:last]) if i not in some}
                chosen = required + [optional[i] for i in some]
                low = len(required) + missing if taken < missing else 0
                yield chosen, absent, low, None

    # one alternative ------------------------------------------------------------------------------------

    def _body(
        self,
        names: dict[str, Conj],
        required: list[str],
        regions: list[_Region],
        declared: list[str],
        low: int,
        high: int | None,
    ) -> list[dict[str, Any]]:
        members = {n: self.emitter.value(c) for n, c in names.items()}
        dead = [n for n, s in members.items() if s is False]
        if any(n in required for n in dead):
            return []
        for n in dead:
            del members[n]
        body: dict[str, Any] = {"type": "object"}
        patterns = self._patterns(regions, declared)
        patterns = {p: s for p, s in patterns.items() if s is not False}
        self.emitter.open_keys |= bool(patterns)
        if patterns:
            body["patternProperties"] = patterns
        body["additionalProperties"] = False
        if required:
            body["required"] = required
        if low:
            body["minProperties"] = low
        if high is not None:
            body["maxProperties"] = high
        orders = [list(members)]
        if self.order == "any" and len(members) > 1:
            if len(members) > MAX_ANY_ORDER:
                raise UnsupportedFeatureError(
                    f'key_order="any" is for objects of at most {MAX_ANY_ORDER} properties, '
                    f"this one has {len(members)}",
                    feature="key_order",
                    pointer=self.emitter.pointer,
                )
            orders = [list(p) for p in permutations(members)]
        if not members:
            return [body]
        return [{**body, "properties": {n: members[n] for n in order}} for order in orders]
