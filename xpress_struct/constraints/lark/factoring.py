"""Left factoring: alternatives that begin alike become one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

__all__ = ["factored"]

Expansion = tuple[str, ...]


def factored(rules: Mapping[str, Iterable[Expansion]]) -> dict[str, list[Expansion]]:
    """The same language, with rules f0, f1, ... for what differs behind a common beginning.

    lark writes a rule with n optional parts as 2^n alternatives. The engine's parser (Earley) has an item
    for each of them wherever the rule may begin, so the cost of a mask grows with their number.
    """
    names: dict[frozenset[Expansion], str] = {}
    made: dict[str, list[Expansion]] = {}

    def merged(expansions: Iterable[Expansion]) -> list[Expansion]:
        behind: dict[Expansion, dict[Expansion, None]] = {}
        for expansion in expansions:
            behind.setdefault(expansion[:1], {})[expansion[1:]] = None
        return [first + joined(list(rests)) for first, rests in behind.items()]

    def joined(rests: Sequence[Expansion]) -> Expansion:
        if len(rests) == 1:
            return rests[0]
        alike = takewhile(lambda symbols: len(set(symbols)) == 1, zip(*rests, strict=False))
        length = sum(1 for _ in alike)
        return (*rests[0][:length], named([rest[length:] for rest in rests]))

    def named(expansions: Sequence[Expansion]) -> str:
        key = frozenset(expansions)
        if key not in names:
            names[key] = name = f"f{len(names)}"
            made[name] = merged(expansions)
        return names[key]

    return {**{name: merged(expansions) for name, expansions in rules.items()}, **made}
