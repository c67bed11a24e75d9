"""What of Python the shipped grammar "python" leaves out, decided by `tokenize` and `ast` alone.

The list is that of docs/lark.md. Nothing here knows the grammar, so that its share of the files within the
bounds says something about it.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from itertools import pairwise

__all__ = ["outside"]

DEPTH, WIDTH, LINES, BLANKS = 10, 4, 160, 80

_LAYOUT = {tokenize.NL, tokenize.COMMENT, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
# Words that need a blank behind them: everywhere, and where no line begins with them.
_ALWAYS, _IN_LINE = {"and", "or", "in", "is", "import", "except"}, {"if", "else", "for"}
_NAMED_CHARACTER = re.compile(r"[uUfF]?['\"](?:[^\\]|\\[^N])*\\N", re.DOTALL)
_OPERATIONS = (
    *(ast.BinOp, ast.BoolOp, ast.Compare, ast.UnaryOp),
    *(ast.IfExp, ast.Lambda, ast.Await),
)
_SUBJECTS = (ast.Name, ast.Constant, ast.JoinedStr, ast.Attribute, ast.Call, ast.Subscript)
_DISPLAYS = (
    *(ast.List, ast.Set, ast.Tuple, ast.Dict, ast.Subscript, ast.Slice),
    *(ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.comprehension),
)
_NOT_IN_HOLES = (
    *(ast.Lambda, ast.Dict, ast.DictComp, ast.Set, ast.SetComp, ast.JoinedStr),
    *(ast.NamedExpr, ast.Yield, ast.YieldFrom),
)


def outside(source: str) -> set[str]:
    """The bounds that a text is beyond, which `ast.parse` takes; none when the grammar should take it."""
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    return {*_layout(tokens), *_words(tokens), *_syntax(source, tokens)}


def _layout(tokens: list[tokenize.TokenInfo]) -> Iterator[str]:
    levels, run = [0], 0
    for token in tokens:
        if token.type == tokenize.INDENT:
            if token.string.strip(" "):
                yield "tabs"
            elif len(token.string) != levels[-1] + WIDTH:
                yield "width of indentation"
            levels.append(len(token.string))
            if len(levels) - 1 > DEPTH:
                yield "depth"
        elif token.type == tokenize.DEDENT:
            levels.pop()
        empty = token.type == tokenize.NL and not token.line.strip()
        run = run + (empty or token.type == tokenize.COMMENT) if token.type in _LAYOUT else 0
        blanks = len(token.line) - len(token.line.lstrip(" \t\f"))
        if run > LINES or (run and blanks > BLANKS):
            yield "lines between statements"


def _words(tokens: list[tokenize.TokenInfo]) -> Iterator[str]:
    begins = True
    for token, after in pairwise(tokens):
        joined = token.end == after.start and after.type == tokenize.OP
        if token.type == tokenize.NAME:
            if not token.string.isascii():
                yield "names"
            needs = token.string in _ALWAYS or (token.string in _IN_LINE and not begins)
            if needs and joined and after.string != ":":
                yield "a word without a blank"
        elif token.type == tokenize.NUMBER and after.string in (".", "as", "async"):
            yield "what stands behind a number"
        elif token.string == "." and after.string == "." and not joined:
            yield "dots of an import"
        elif token.type == tokenize.STRING and _NAMED_CHARACTER.match(token.string):
            yield "\\N{...}"
        begins = token.type in _LAYOUT or (begins and token.string == "async")


def _syntax(source: str, tokens: list[tokenize.TokenInfo]) -> Iterator[str]:
    try:
        tree = ast.parse(source, feature_version=(3, 10))
    except SyntaxError:
        yield "newer than Python 3.10"
        return
    lines, parents, cases = source.split("\n"), _parents(tree), 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Match):
            cases += len(node.cases)
            subjects = node.subject.elts if isinstance(node.subject, ast.Tuple) else [node.subject]
            text = ast.get_source_segment(source, node.subject) or ""
            if not all(isinstance(one, _SUBJECTS) for one in subjects) or not re.match(r"[\w'\"]", text):
                yield "subject of match"
        elif isinstance(node, ast.MatchValue) and isinstance(node.value, ast.BinOp):
            yield "complex numbers in patterns"
        elif isinstance(node, ast.NamedExpr) and isinstance(parents[node], _DISPLAYS):
            if not _in_brackets(lines, node):
                yield "walrus in displays and slices"
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
            if any(isinstance(one, ast.Starred) for one in node.slice.elts):
                yield "newer than Python 3.10"
        elif isinstance(node, ast.Delete):
            if any(isinstance(t, (ast.Tuple, ast.List)) or _in_brackets(lines, t) for t in node.targets):
                yield "del of brackets"
        elif isinstance(node, ast.AnnAssign) and not node.simple and isinstance(node.target, ast.Name):
            yield "an annotated name in brackets"
        elif isinstance(behind := _before_as_or_from(node), _OPERATIONS) and not _in_brackets(lines, behind):
            yield "operators before as or from"
        elif isinstance(node, ast.JoinedStr):
            if re.search(r"\\N?[{}]", ast.get_source_segment(source, node) or ""):
                yield "a backslash before a brace"
        elif isinstance(node, ast.FormattedValue) and not _plain(node):
            yield "holes of f-strings"
    if sum(token.type == tokenize.NAME and token.string == "case" for token in tokens) > cases:
        yield "case as a name"


def _parents(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def _before_as_or_from(node: ast.AST) -> ast.expr | None:
    """What stands before `as` or `from`, if they are there."""
    if isinstance(node, ast.withitem):
        return node.context_expr if node.optional_vars else None
    if isinstance(node, ast.ExceptHandler):
        return node.type if node.name else None
    return node.exc if isinstance(node, ast.Raise) and node.cause else None


def _in_brackets(lines: list[str], node: ast.expr) -> bool:
    """True where round brackets of its own stand around an expression."""
    assert node.end_lineno is not None
    before = lines[node.lineno - 1].encode()[: node.col_offset].rstrip()
    after = lines[node.end_lineno - 1].encode()[node.end_col_offset :].lstrip()
    return before.endswith(b"(") and after.startswith(b")")


def _plain(hole: ast.FormattedValue) -> bool:
    """True for what holes of f-strings may hold."""
    for node in ast.walk(hole.value):
        if isinstance(node, _NOT_IN_HOLES) or (isinstance(node, ast.keyword) and node.arg is None):
            return False
        if isinstance(node, (ast.List, ast.Tuple)) and any(isinstance(e, ast.Starred) for e in node.elts):
            return False
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and not _is_short(node.generators):
            return False
        if isinstance(node, ast.Constant) and not _is_short_constant(node.value):
            return False
    parts = hole.format_spec.values if isinstance(hole.format_spec, ast.JoinedStr) else []
    for place, part in enumerate(parts):
        if isinstance(part, ast.FormattedValue):
            if part.conversion != -1 or part.format_spec is not None or not _plain(part):
                return False
        elif isinstance(part, ast.Constant) and (
            re.search(r"['\"\\]", part.value) or (not place and part.value[0] == "=")
        ):
            return False
    return True


def _is_short(generators: list[ast.comprehension]) -> bool:
    (first, *more) = generators
    return not more and not first.is_async and isinstance(first.target, (ast.Name, ast.Tuple))


def _is_short_constant(value: object) -> bool:
    return not isinstance(value, bytes) and value is not ... and not re.search(r"['\"\\\n]", str(value))
