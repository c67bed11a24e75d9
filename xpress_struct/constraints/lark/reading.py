"""A Lark grammar as users pass it -> a loaded `lark.Lark`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lark as lark_library

from xpress_struct.constraints.lark.conflicts import AnalysedParser
from xpress_struct.constraints.lark.faults import explained
from xpress_struct.constraints.lark.shipped import shipped_grammars
from xpress_struct.errors import GrammarError, UnsupportedFeatureError

__all__ = ["check_options", "load", "read_text"]


def read_text(grammar: str | Path) -> tuple[str, Path | None]:
    """The text of a grammar, and the file it was read from.

    Raises:
        GrammarError: there is no such file, and the text has no rule.
    """
    if isinstance(grammar, str) and ("\n" in grammar or ":" in grammar):
        return grammar, None
    shipped = shipped_grammars()
    path = shipped.get(str(grammar), Path(grammar))
    try:
        return path.read_text(encoding="utf-8"), path
    except OSError as error:
        raise GrammarError(
            f"{str(grammar)!r} is neither the text of a Lark grammar (no rule in it), nor a file that "
            f"can be read ({error.strerror or error}), nor one of the grammars that come with the "
            f"package: {', '.join(sorted(shipped))}."
        ) from None


def load(
    text: str,
    path: Path | None,
    *,
    start: str,
    parser: str,
    lexer: str,
    import_paths: Sequence[str | Path],
    postlex: Any,
    g_regex_flags: int,
) -> lark_library.Lark:
    """lark's own reading of a grammar.

    Raises:
        GrammarError: lark refuses it; with line and column where lark tells.
        UnsupportedFeatureError: it needs what this lark lacks.
    """
    try:
        return lark_library.Lark(
            text,
            start=start,
            parser=parser,
            lexer=lexer,
            import_paths=[str(p) for p in import_paths],
            postlex=postlex,
            g_regex_flags=g_regex_flags,
            # What a file imports relatively lies beside it.
            source_path=str(path) if path else None,
            _plugins={"LALR_Parser": AnalysedParser},
        )
    except Exception as error:  # lark's errors, those of `re` and `regex`, of files, and failed assertions
        raise explained(text, start, error) from None


def check_options(parser: lark_library.Lark) -> None:
    """Refuses options of a loaded grammar that change what is parsed in ways not known here.

    Raises:
        UnsupportedFeatureError: with the option's name.
    """
    options = parser.options
    refused = {
        "regex": (options.regex, "patterns of the module `regex`"),
        "use_bytes": (options.use_bytes, "texts of bytes"),
        "lexer_callbacks": (options.lexer_callbacks, "callbacks that may change tokens"),
        "lexer": (not isinstance(options.lexer, str), "a lexer of one's own"),
        "parser": (options.parser not in ("lalr", "earley", "cyk"), "no parser"),
    }
    for name, (used, what) in refused.items():
        if used:
            raise UnsupportedFeatureError(
                f"The Lark object was made with {name}= ({what}); its texts cannot be enforced.",
                feature=name,
            )
