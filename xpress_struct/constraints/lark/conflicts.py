"""Conflicts of an LALR grammar, where lark's parser takes fewer texts than the rules derive."""

from __future__ import annotations

from typing import Any

import lark as lark_library
from lark.parsers.lalr_analysis import LALR_Analyzer

__all__ = ["conflicts"]


def conflicts(parser: lark_library.Lark) -> list[str]:
    """What lark decided without being asked: shift over reduce, one rule's priority over another's.

    Args:
        parser: loaded with parser="lalr".
    """
    analysis: Any = LALR_Analyzer(parser.parser.parser_conf, debug=False)
    analysis.compute_lr0_states()
    analysis.compute_reads_relations()
    analysis.compute_includes_lookback()
    analysis.compute_lookaheads()
    found: dict[str, None] = {}
    for state in analysis.lr0_itemsets:
        for symbol, rules in state.lookaheads.items():
            origins = ", ".join(sorted({rule.origin.name for rule in rules}))
            if symbol in state.transitions:
                found[f"before {symbol.name} lark's parser shifts where it could also complete {origins}"] = (
                    None
                )
            elif len(rules) > 1:
                found[f"before {symbol.name} lark's parser completes one of {origins} by priority"] = None
    return sorted(found)
