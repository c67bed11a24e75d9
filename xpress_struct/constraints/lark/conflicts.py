"""Conflicts of an LALR grammar, where lark's parser takes fewer texts than the rules derive."""

from __future__ import annotations

from typing import Any

import lark as lark_library
from lark.parsers.lalr_analysis import LALR_Analyzer
from lark.parsers.lalr_parser import LALR_Parser, _Parser

__all__ = ["AnalysedParser", "conflicts"]


class AnalysedParser(LALR_Parser):
    """lark's own parser, with what its analysis found: to do that again takes as long as all of loading."""

    def __init__(self, parser_conf: Any, debug: bool = False, strict: bool = False) -> None:
        analysis: Any = LALR_Analyzer(parser_conf, debug, strict)
        analysis.compute_lalr()
        self._parse_table, self.parser_conf = analysis.parse_table, parser_conf
        self.parser = _Parser(analysis.parse_table, parser_conf.callbacks, debug)
        self.conflicts = _read(analysis)


def conflicts(parser: lark_library.Lark) -> list[str]:
    """What lark decided without being asked: shift over reduce, one rule's priority over another's.

    Args:
        parser: loaded with parser="lalr".
    """
    frontend: Any = parser.parser
    if isinstance(frontend.parser, AnalysedParser):
        return frontend.parser.conflicts
    analysis: Any = LALR_Analyzer(frontend.parser_conf, debug=False)
    analysis.compute_lr0_states()
    analysis.compute_reads_relations()
    analysis.compute_includes_lookback()
    analysis.compute_lookaheads()
    return _read(analysis)


def _read(analysis: Any) -> list[str]:
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
