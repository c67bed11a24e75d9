"""lark's LALR table: which terminals come where for certain.

The table's lookaheads are joined over all contexts of a state, so that a terminal for which a state reduces
may turn out not to be allowed behind that. Here it is proved, where it is so, that it is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import lark as lark_library

__all__ = ["Table"]

_Action = tuple[bool, Any]  # (True, state to shift to) or (False, rule to reduce by)


class Table:
    """The parse table of a grammar loaded with parser="lalr"."""

    def __init__(self, parser: lark_library.Lark) -> None:
        table: Any = parser.parser.parser._parse_table  # lark has no public way to it
        self.rows: dict[int, dict[str, _Action]] = {
            state: {name: (str(action) == "Shift", to) for name, (action, to) in row.items()}
            for state, row in table.states.items()
        }
        self._back: dict[tuple[int, int], frozenset[int]] = {}
        self._sure: dict[str, frozenset[int]] = {}
        self._implied: dict[tuple[str, str], frozenset[int]] = {}

    @cached_property
    def _before(self) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {state: set() for state in self.rows}
        for state, row in self.rows.items():
            for shift, to in row.values():
                if shift:
                    found[to].add(state)
        return found

    def _behind(self, state: int, rule: Any) -> Iterable[int | None]:
        """The states that reducing by a rule can lead to; None for one that is not there."""
        count = len(rule.expansion)
        key = (state, count)
        if key not in self._back:
            states = {state}
            for _ in range(count):
                states = {before for s in states for before in self._before[s]}
            self._back[key] = frozenset(states)
        for before in self._back[key]:
            shift, to = self.rows[before].get(rule.origin.name, (False, None))
            yield to if shift else None

    def sure(self, name: str) -> frozenset[int]:
        """The states in which a terminal is allowed, whatever stands before them."""
        if name not in self._sure:
            self._sure[name] = self._greatest(lambda state, held: self._leads(state, name, held))
        return self._sure[name]

    def _leads(self, state: int, name: str, held: set[int]) -> bool:
        action = self.rows[state].get(name)
        if action is None:
            return False
        return action[0] or all(to in held for to in self._behind(state, action[1]))

    def implied(self, name: str, other: str) -> frozenset[int]:
        """The states in which `other` is allowed whenever `name` is."""
        key = (name, other)
        if key not in self._implied:
            sure = self.sure(other)

            def holds(state: int, held: set[int]) -> bool:
                ours, theirs = self.rows[state].get(name), self.rows[state].get(other)
                if ours is None or state in sure:
                    return True
                if theirs is None or ours[0] or theirs[0] or ours[1] is not theirs[1]:
                    return False
                # Where the reduced rule does not belong, nothing is allowed.
                return all(to is None or to in held for to in self._behind(state, ours[1]))

            self._implied[key] = self._greatest(holds)
        return self._implied[key]

    def _greatest(self, holds: Any) -> frozenset[int]:
        held = set(self.rows)
        while True:
            kept = {state for state in held if holds(state, held)}
            if kept == held:
                return frozenset(kept)
            held = kept
