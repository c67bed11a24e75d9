"""The product of a grammar with a finite automaton over its terminals (Bar-Hillel, Perles, Shamir 1961)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xpress_struct.constraints.lark.rules import Rule, Rules, Symbol, merged, reached_from

__all__ = ["Step", "product"]

State = tuple[str, ...]
Step = Callable[[State, str], Iterable[tuple[State, tuple[Symbol, ...]]]]

_MOST_RULES = 60_000
_START = "$start"


def product(
    rules: Rules,
    step: Step,
    ends: Callable[[State], bool],
    *,
    initial: State = (),
    keeps: frozenset[str] = frozenset(),
    settled: Callable[[State], State | None] = lambda state: state,
) -> Rules | None:
    """The texts of `rules` whose terminals lead the automaton from `initial` to a state that `ends`.

    Args:
        step: from a state and a terminal to the states behind it, each with the symbols that stand for the
            terminal on that way.
        keeps: nonterminals that are not copied.
        settled: the state behind those; None where they must not stand (but empty).

    Returns:
        The rules, or None when there would be too many on the way.
    """
    found = _Product(rules, step, keeps, settled)
    made = found.rules(initial)
    if made is None:
        return None
    starts = [after for after in found.reach(initial, rules.start) if ends(after)]
    made += [(_START, (Symbol(_name(initial, rules.start, after), False),)) for after in starts]
    return merged(Rules(made, _START))


def _name(before: State, origin: str, after: State) -> str:
    return origin if not before and not after else f"{'+'.join(before)}>{origin}>{'+'.join(after)}"


class _Product:
    def __init__(
        self, rules: Rules, step: Step, keeps: frozenset[str], settled: Callable[[State], State | None]
    ) -> None:
        self.grammar, self.step, self.keeps, self.settled = rules, step, keeps, settled
        # Per (state, nonterminal), the states behind its texts; and who must be looked at again for more.
        self.behind: dict[tuple[State, str], set[State]] = {}
        self.users: dict[tuple[State, str], set[tuple[State, str]]] = {}
        self.queue: list[tuple[State, str]] = []

    def rules(self, initial: State) -> list[Rule] | None:
        self.reach(initial, self.grammar.start)
        while self.queue:
            key = self.queue.pop()
            state, origin = key
            found = {after for e in self.grammar.of.get(origin, ()) for after, _ in self.paths(state, e, key)}
            if not found <= self.behind[key]:
                self.behind[key] |= found
                self.queue += self.users[key]
        kept = reached_from(self.keeps, self.grammar.of)
        made = [rule for rule in self.grammar.all if rule[0] in kept]
        for state, origin in list(self.behind):
            for expansion in self.grammar.of.get(origin, ()):
                for after, written in self.paths(state, expansion, None):
                    made.append((_name(state, origin, after), written))
            if len(made) > _MOST_RULES:
                return None
        return made

    def paths(
        self, state: State, expansion: tuple[Symbol, ...], user: tuple[State, str] | None
    ) -> list[tuple[State, tuple[Symbol, ...]]]:
        found: list[tuple[State, tuple[Symbol, ...]]] = [(state, ())]
        for symbol in expansion:
            more = []
            for at, written in found:
                if symbol.terminal:
                    more += [(after, written + places) for after, places in self.step(at, symbol.name)]
                    continue
                if symbol.name in self.keeps:
                    to = self.settled(at)
                    if to is not None:
                        more.append((to, (*written, symbol)))
                    elif symbol.name in self.grammar.nullable:
                        more.append((at, written))
                    continue
                for after in self.reach(at, symbol.name, user):
                    more.append((after, (*written, Symbol(_name(at, symbol.name, after), False))))
            found = more
        return found

    def reach(self, state: State, origin: str, user: tuple[State, str] | None = None) -> list[State]:
        key = (state, origin)
        if key not in self.behind:
            self.behind[key], self.users[key] = set(), set()
            self.queue.append(key)
        if user is not None:
            self.users[key].add(user)
        return sorted(self.behind[key])
