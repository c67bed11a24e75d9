"""From branches to the engine's schema: one definition for every conjunction that holds arrays or objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from .alive import Alive
from .arrays import ArrayWriter
from .expand import Expander
from .limits import BlowupError
from .numbers import TooLargeError, emit_number, number_notes
from .objects import ObjectWriter
from .report import Checked
from .shapes import Arr, Bool, Branch, Null, Num, Obj, Str
from .sites import Conj
from .strings import emit_string, joined

__all__ = ["Definition", "Emitter"]

_ANYTHING = "any"


class Definition:
    """The alternatives of one conjunction, and what they leave to check."""

    def __init__(self, name: str, terms: Conj) -> None:
        self.name, self.terms = name, terms
        self.alternatives: list[Any] = []
        self.notes: set[Checked] = set()
        self.open_keys = False


class Emitter:
    def __init__(self, ex: Expander, alive: Alive, order: Literal["declared", "any"], bounded: bool) -> None:
        self.ex, self.alive, self.bounded = ex, alive, bounded
        self.objects, self.arrays = ObjectWriter(self, order), ArrayWriter(self)
        self.definitions: dict[str, Definition] = {}
        self._names: dict[Conj, str] = {}
        self._leaves: dict[Conj, tuple[Any, frozenset[Checked]]] = {}
        self._queue: list[Definition] = []
        self._now = Definition("", ())

    # what the writers use -------------------------------------------------------------------------------

    @property
    def pointer(self) -> str:
        """Where the schema stands that is being written."""
        return self._now.terms[0].site.pointer if self._now.terms else ""

    @property
    def open_keys(self) -> bool:
        return self._now.open_keys

    @open_keys.setter
    def open_keys(self, value: bool) -> None:
        self._now.open_keys = value

    def note(self, keyword: str, reason: str) -> None:
        pointer = self.pointer
        for term in self._now.terms:
            if isinstance(term.site.schema, dict) and keyword in term.site.schema:
                pointer = term.site.pointer
        self._now.notes.add(Checked(keyword, pointer, reason))

    def take(self, notes: Iterable[Checked]) -> None:
        self._now.notes.update(notes)

    def value(self, terms: Conj) -> Any:
        """A schema for the engine: a reference, an inline schema without members, or False."""
        if not terms:
            return self._reference(terms)
        leaf = self._leaves.get(terms)
        if leaf is not None:
            self.take(leaf[1])
            return leaf[0]
        if terms in self._names:
            return self._reference(terms)
        branches = self.branches(terms)
        if any(isinstance(b.shape, (Arr, Obj)) for b in branches):
            return self._reference(terms)
        outer, self._now = self._now, Definition("", terms)
        try:
            alternatives = [s for b in branches for s in self.alternatives(b)]
            inner = self._now
        finally:
            self._now = outer
        schema = joined(alternatives)
        self._leaves[terms] = (schema, frozenset(inner.notes))
        self.take(inner.notes)
        return schema

    def any_object(self) -> dict[str, Any]:
        self.open_keys = True
        return {
            "type": "object",
            "patternProperties": {"^(?s:.)+$": self._reference(())},
            "additionalProperties": False,
        }

    # definitions ----------------------------------------------------------------------------------------

    def _reference(self, terms: Conj) -> dict[str, str]:
        name = self._names.get(terms)
        if name is None:
            name = f"d{len(self._names)}" if terms else _ANYTHING
            self._names[terms] = name
            made = self.definitions[name] = Definition(name, terms)
            self._queue.append(made)
        return {"$ref": f"#/$defs/{name}"}

    def branches(self, terms: Conj) -> tuple[Branch, ...]:
        try:
            return self.ex.live(self.ex.conj(terms))
        except BlowupError:
            return self._without_some(terms)

    def _without_some(self, terms: Conj) -> tuple[Branch, ...]:
        """The product of as many terms as fit; the others are noted."""
        found = self.ex.conj(())
        for term in terms:
            try:
                found = self.ex.product(found, self.ex.term(term))
            except BlowupError:
                keyword = "not" if term.negative else "allOf"
                why = "too many combinations of alternatives"
                found = self.ex.noted(found, Checked(keyword, term.site.pointer, why))
        return self.ex.live(found)

    def run(self, root: Conj) -> Any:
        """Write everything reachable from `root`; its schema, without the definitions."""
        start = self._reference(root)
        while self._queue:
            self._now = self._queue.pop(0)
            for branch in self.branches(self._now.terms):
                self._now.alternatives += self.alternatives(branch)
        return start

    def alternatives(self, branch: Branch) -> list[Any]:
        shape = branch.shape
        self.take(branch.notes)
        if isinstance(shape, Null):
            return [{"type": "null"}]
        if isinstance(shape, Bool):
            return [{"type": "boolean"} if len(shape.values) > 1 else {"const": shape.values[0]}]
        if isinstance(shape, Num):
            return self._number(shape)
        if isinstance(shape, Str):
            written, dropped = emit_string(shape)
            if dropped:
                self.note("pattern", dropped)
            return list(written)
        if isinstance(shape, Arr):
            return list(self.arrays.write(shape))
        return list(self.objects.write(shape))

    def _number(self, shape: Num) -> list[Any]:
        self.take(number_notes(shape))
        try:
            return list(emit_number(shape, self.bounded))
        except TooLargeError as why:
            for keyword in ("multipleOf", "minimum", "maximum", "const", "enum", "not"):
                if any(isinstance(t.site.schema, dict) and keyword in t.site.schema for t in self._now.terms):
                    break
            self.note(keyword, str(why))
            return list(emit_number(Num(shape.integer), False))
