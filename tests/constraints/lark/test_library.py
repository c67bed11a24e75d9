"""lark's own grammars, and grammars like its examples."""

from __future__ import annotations

from pathlib import Path

import lark
import pytest
from lark.indenter import Indenter, PythonIndenter

import xpress_struct as xs

LIBRARY = Path(lark.__file__).parent / "grammars"


@pytest.mark.parametrize("parser", ["earley", "lalr"])
@pytest.mark.parametrize(
    "text",
    [
        'start: "a" b?\nb: /x/i -> foo\n%import common.WS\n',
        'a: (b | "c")~2..3 // end\n\n',
        "%ignore A\n%declare B C",
        "start: a b:",
        "1: a",
    ],
)
def test_the_grammar_of_lark_grammars(parser: str, text: str) -> None:
    """lark.lark compiles; what it takes is what lark takes."""
    loaded = lark.Lark((LIBRARY / "lark.lark").read_text(encoding="utf-8"), parser=parser)
    assert xs.lark(loaded).accepts(text) == _parses(loaded, text)


@pytest.mark.parametrize("name", ["common", "unicode"])
def test_every_terminal_of_the_library(name: str) -> None:
    """Each terminal that lark's library offers compiles, under both parsers."""
    text = (LIBRARY / f"{name}.lark").read_text(encoding="utf-8")
    names = [line.split(":")[0].strip() for line in text.splitlines() if ":" in line and line[0].isalpha()]
    for terminal in names:
        for parser in ("earley", "lalr"):
            grammar = f'%import {name}.{terminal}\nstart: "=" {terminal}\n'
            assert not xs.lark(grammar, parser=parser).checked_after, terminal
    assert len(names) > 1


@pytest.fixture(scope="module")
def python() -> tuple[lark.Lark, xs.Constraint]:
    """python.lark of lark's library, and its constraint."""
    loaded = lark.Lark.open_from_package(
        "lark", "python.lark", ["grammars"], parser="lalr", postlex=PythonIndenter(), start="file_input"
    )
    return loaded, xs.lark(loaded, max_depth=4)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n",
        "def f(x):\n    return x + 1\n",
        "if a:\n    b\nelif c: d\nelse:\n    e\n",
        "elsex = 1\n",
        "x = (1,\n   2,  # c\n\n 3)\n",
        "# c\nx = 1  # d\n# e\n\ny = 2\n",
        'class A(B):\n    """doc"""\n\n    def f(self, *a) -> int:\n        return [x for x in a if x]\n',
        "match x:\n    case [1, _]:\n        pass\n",
        'x = "a""b" r"c"\n',
        "x = 1",
        "def f():\nreturn\n",
        "if x:\n    y\n        z\n",
        "x = 0777\n",
        "for x y:\n    pass\n",
        "x = (1\n",
        "  x\n",
        "x = 1 # c",
    ],
)
def test_python(python: tuple[lark.Lark, xs.Constraint], text: str) -> None:
    """python.lark compiles; its masks take what lark takes, indentation and brackets included."""
    loaded, constraint = python
    assert constraint.accepts(text) == _parses(loaded, text)


class _TreeIndenter(Indenter):
    NL_type, INDENT_type, DEDENT_type = "_NL", "_INDENT", "_DEDENT"
    OPEN_PAREN_types, CLOSE_PAREN_types = [], []
    tab_len = 8


EXAMPLES = {
    "calculator": (
        '?start: sum | NAME "=" sum -> assign\n?sum: product | sum "+" product | sum "-" product\n'
        '?product: atom | product "*" atom | product "/" atom\n'
        '?atom: NUMBER | "-" atom | NAME | "(" sum ")"\n'
        "%import common.CNAME -> NAME\n%import common.NUMBER\n%import common.WS_INLINE\n%ignore WS_INLINE\n",
        {},
        ["a = 1 + 2 * -(b-3)", "1.5e3"],
        ["a = = 1", "(1", "1 2"],
    ),
    "json": (
        '?start: value\n?value: object | array | ESCAPED_STRING | SIGNED_NUMBER | "true" | "false" | "null"\n'
        'array: "[" [value ("," value)*] "]"\nobject: "{" [pair ("," pair)*] "}"\n'
        'pair: ESCAPED_STRING ":" value\n%import common.ESCAPED_STRING\n%import common.SIGNED_NUMBER\n'
        "%import common.WS\n%ignore WS\n",
        {},
        ['{"a": [1, -2.5, "x\\"y"], "b": null}', " [ ] "],
        ["[1,]", '{"a" 1}', '"a'],
    ),
    "configuration": (
        'start: _NL? section+\nsection: "[" NAME "]" _NL item+\nitem: NAME "=" VALUE? _NL\nVALUE: /./+\n'
        "%import common.CNAME -> NAME\n%import common.NEWLINE -> _NL\n%import common.WS_INLINE\n"
        "%ignore WS_INLINE\n",
        {"parser": "lalr"},
        ["[a]\nb = c d\n", "\n[a]\nb=\nc=1\n[d]\ne=f\n"],
        ["[a]\n", "b=c\n"],
    ),
    "indented tree": (
        "?start: _NL* tree\ntree: NAME _NL [_INDENT tree+ _DEDENT]\n%import common.CNAME -> NAME\n"
        "%import common.WS_INLINE\n%declare _INDENT _DEDENT\n%ignore WS_INLINE\n_NL: /(\\r?\\n[\\t ]*)+/\n",
        {"parser": "lalr", "postlex": _TreeIndenter()},
        ["a\n    b\n    c\n        d\n    e\n", "a\n"],
        ["a\n    b\n  c\n", "a\nb\n", "a"],
    ),
    "turtle": (
        'start: instruction+\ninstruction: MOVEMENT NUMBER -> movement | "c" COLOR [COLOR] -> color\n'
        '  | "fill" block -> fill | "repeat" NUMBER block -> repeat\nblock: "{" instruction+ "}"\n'
        'MOVEMENT: "f"|"b"|"l"|"r"\nCOLOR: LETTER+\n%import common.LETTER\n%import common.INT -> NUMBER\n'
        "%import common.WS\n%ignore WS\n",
        {},
        ["c red yellow\nfill { repeat 36 {\nf200 l170\n} }", "f1"],
        ["fill", "f", "repeat { f1 }"],
    ),
    "templates": (
        'start: list | dict\nlist: "[" _seperated{atom, ","} "]"\ndict: "{" _seperated{entry, ","} "}"\n'
        'entry: atom ":" atom\n_seperated{x, sep}: x (sep x)*\natom: NUMBER | ESCAPED_STRING\n'
        "%import common (NUMBER, ESCAPED_STRING, WS)\n%ignore WS\n",
        {},
        ['[1, "a", 2]', '{1: 2, "b": 3}'],
        ["[]", "[1,]", "{1}"],
    ),
    "ambiguous words": (
        'start: noun verb noun | noun verb "like" noun\nnoun: adj? NOUN\nverb: VERB\nadj: ADJ\n'
        'NOUN: "flies" | "bananas" | "fruit"\nVERB: "like" | "flies"\nADJ: "fruit"\n'
        "%import common.WS\n%ignore WS\n",
        {},
        ["fruit flies like bananas"],
        ["flies", "fruit like like"],
    ),
    "priorities": (
        'start: (word | keyword)+\nword: WORD\nkeyword: KEY\nKEY.2: "let" | "in"\nWORD: /[a-z]+/\n'
        '%ignore " "\n',
        {"parser": "lalr"},
        ["let x in y", "letx"],
        ["", "1"],
    ),
    "comments": (
        'start: (NAME ";")*\nCOMMENT: "/*" /(.|\\n)*?/ "*/" | "//" /[^\\n]*/\n%import common.CNAME -> NAME\n'
        "%import common.WS\n%ignore WS\n%ignore COMMENT\n",
        {"parser": "lalr"},
        ["a; /* x * / y */ b; // c", ""],
        ["a /* b;", "a b;"],
    ),
    "dynamic_complete": (
        'start: A+ "a"\nA: /a+/ | "b"\n',
        {"lexer": "dynamic_complete"},
        ["aaa", "ba", "aba"],
        ["a", "ab"],
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_grammar_like_larks_examples(name: str) -> None:
    """It compiles, takes its good texts and refuses the bad ones, and lark agrees on each."""
    grammar, options, good, bad = EXAMPLES[name]
    constraint, loaded = xs.lark(grammar, **options), lark.Lark(grammar, **options)
    for text in (*good, *bad):
        assert constraint.accepts(text) == (text in good), text
        assert _parses(loaded, text) == (text in good), text


def _parses(loaded: lark.Lark, text: str) -> bool:
    try:
        loaded.parse(text)
    except (lark.exceptions.LarkError, IndexError):
        return False
    return True
