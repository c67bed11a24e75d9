"""Files of the standard library and of site-packages under the shipped grammar "python"."""

from __future__ import annotations

import ast
import random
import sys
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import lark
from llguidance import LLMatcher, LLTokenizer
from tqdm import tqdm

import xpress_struct as xs
from benchmarks.python_bounds import outside
from xpress_struct.constraints.compiled import limits
from xpress_struct.constraints.lark.shipped import post_lexer, shipped_grammars

__all__ = ["python_files"]

LARGEST_FILE = 60_000


def python_files(count: int, seed: int) -> dict[str, Any]:
    """Shares of files that the grammar takes, in lark and through the mask.

    Those of the mask are given of the files within the bounds too. A missing last line feed is added. Files
    that `ast.parse` refuses, or of more than `LARGEST_FILE` characters, are not drawn.
    """
    loaded = lark.Lark(
        shipped_grammars()["python"].read_text(encoding="utf-8"),
        parser="lalr",
        postlex=post_lexer("python"),
        maybe_placeholders=False,
    )
    tokenizer = LLTokenizer("byte")
    start = LLMatcher(tokenizer, xs.code("python").grammar, limits=limits())
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    files = islice(_files(seed), count)
    for path, source in tqdm(files, total=count, desc="python files", file=sys.stderr):
        beyond = outside(source)
        data = source.encode()
        fits = _fits(start.deep_copy(), data, tokenizer.eos_token)
        counts.update(files=1, lark=_parses(loaded, source), mask=fits is None)
        if not beyond:
            counts.update(within=1, within_mask=fits is None)
        if fits is not None:
            reasons.update(beyond or {"within the bounds"})
            if not beyond:
                context = data[max(0, fits - 60) : fits].decode(errors="replace")
                following = data[fits : fits + 20].decode(errors="replace")
                tqdm.write(f"{path}: {context!r} fits, {following!r} does not", file=sys.stderr)
    return {
        "files": counts["files"],
        "lark_share": _share(counts, "lark", "files"),
        "mask_share": _share(counts, "mask", "files"),
        "within_bounds_share": _share(counts, "within", "files"),
        "mask_share_within_bounds": _share(counts, "within_mask", "within"),
        "refused_because": dict(reasons.most_common(10)),
    }


def _fits(engine: LLMatcher, data: bytes, end: int) -> int | None:
    """None when the mask takes all bytes and then the end, else how many bytes it takes."""
    taken = engine.validate_tokens([*data, end])
    return None if taken == len(data) + 1 else int(taken)


def _share(counts: Counter[str], name: str, of: str) -> float:
    return round(counts[name] / counts[of], 4)


def _parses(loaded: lark.Lark, source: str) -> bool:
    try:
        loaded.parse(source)
    except lark.exceptions.LarkError:
        return False
    return True


def _files(seed: int) -> Iterator[tuple[Path, str]]:
    paths = sysconfig.get_paths()
    files = sorted({*Path(paths["stdlib"]).rglob("*.py"), *Path(paths["purelib"]).rglob("*.py")})
    random.Random(seed).shuffle(files)
    for path in files:
        try:
            source = path.read_text(encoding="utf-8")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse(source)
        except (OSError, UnicodeDecodeError, SyntaxError, ValueError, RecursionError):
            continue
        if source.strip() and len(source) <= LARGEST_FILE:
            yield path, source if source.endswith("\n") else source + "\n"
