"""Small Lark grammars, one for each feature and each kind of clash between terminals.

Their whole language up to a length is compared with lark's by `benchmarks.lark_equivalence` and by the tests.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lark.indenter import Indenter

__all__ = ["BLOCKS", "GRAMMARS", "Small"]


class Small(NamedTuple):
    """A grammar and the texts to try.

    Attributes:
        name: what it is about.
        text: the grammar.
        alphabet: characters of the texts.
        length: the longest texts.
        parsers: (parser, lexer) pairs of lark that load it.
        options: more options of lark.
        bounds: options of ours.
    """

    name: str
    text: str
    alphabet: str
    length: int
    parsers: tuple[tuple[str, str], ...] = (("lalr", "contextual"), ("earley", "dynamic"))
    options: dict[str, Any] = {}  # noqa: RUF012
    bounds: dict[str, Any] = {}  # noqa: RUF012


class _Blocks(Indenter):
    """Blocks behind `_NL`, hidden by round brackets."""

    NL_type, INDENT_type, DEDENT_type = "_NL", "_IN", "_OUT"
    OPEN_PAREN_types, CLOSE_PAREN_types = ["LPAR"], ["RPAR"]
    tab_len = 8


class _Open(_Blocks):
    """Blocks behind `_NL`, which no brackets hide."""

    OPEN_PAREN_types, CLOSE_PAREN_types = [], []


_LALR = (("lalr", "contextual"),)
_EARLEY = (("earley", "dynamic"),)
_BASIC = (("lalr", "contextual"), ("lalr", "basic"), ("earley", "dynamic"), ("earley", "basic"))

GRAMMARS = [
    # Features.
    Small("literal and optional", 'start: "a" ["b"] "c"?', "abc", 5),
    Small("repeats", 'start: "a"~2 "b"~1..3 "c"*', "abc", 7),
    Small("alternatives and groups", 'start: ("a" | "b" "c")+', "abc", 6),
    Small("alias and inline rules", 'start: x+\n?x: y | "b" -> z\n_y: "a"\ny: _y "c"', "abc", 6),
    Small("template", 'start: _sep{item, ","}\n_sep{x, s}: x (s x)*\nitem: "a" | "b"', "ab,", 6),
    Small("empty rule", 'start: "a" e "b"\ne: | "c"', "abc", 5),
    Small("nullable start", 'start: "a"*\n%ignore " "', "a b", 6),
    Small("left recursion", 'start: start "+" n | n\nn: "1"', "1+ ", 6),
    Small("right recursion", 'start: n "+" start | n\nn: "1"\n%ignore " "', "1+ ", 6),
    Small("nested brackets", 'start: "(" start ")" start | \n', "()", 9),
    Small("other start symbol", 'x: "a" y\ny: "b" | x', "ab", 7, options={"start": "x"}),
    Small("keep all, filtered", '!start: "a" _B\n_B: "b"+', "ab", 7),
    Small("ranges", 'start: D+\nD: "0".."2"', "0123", 5),
    Small("import from common", '%import common.INT\nstart: INT ("," INT)*', "01,", 6),
    Small("import under a name", '%import common.CNAME -> N\nstart: N "=" N\n%ignore " "', "a1= ", 6),
    Small("extend", '%import common.DIGIT\nstart: DIGIT+\n%extend DIGIT: "a"', "0a1", 6),
    Small("override", '%import common.DIGIT\nstart: DIGIT+\n%override DIGIT: "a" | "b"', "0ab", 6),
    Small("terminal of terminals", 'start: P\nP: Q "," Q\nQ: "a" | "b" "a"?', "ab,", 6),
    Small("case ignored in a string", 'start: "ab"i', "aAbB", 4),
    Small("case ignored in a regex", "start: /a[b-c]/i", "aAbBcC", 3),
    Small("flags s and x", "start: /a . b/x /./s", "ab\n ", 4),
    Small("flag m", "start: /a$/m /\\n/ /^b/m", "ab\n", 4),
    Small("scoped flags", "start: /(?i:a)b/", "aAbB", 3),
    Small("grammar flags", 'start: "a" /b/', "aAbB", 3, options={"g_regex_flags": 2}),
    Small("unicode categories", r"start: /\w\d/ /\s/", "a1é٣ ", 4),
    Small("comment and blanks", 'start: "a" "b"\n%ignore " "\n%ignore /#[^\\n]*/', "ab #", 6),
    Small("line comments", 'start: "a"+\n%ignore /[ \\n]+/\n%ignore /#[^\\n]*/', "a#\n ", 6),
    Small("blanks at both ends", 'start: "a" ("," "a")*\n%import common.WS\n%ignore WS', "a, \n", 6),
    # Regular expressions.
    Small("lazy string", 'start: /".*?"/', '"ab', 6),
    Small("lazy strings in a row", 'start: S+\nS: /".*?"/', '"a', 8),
    Small("escaped string", "%import common.ESCAPED_STRING\nstart: ESCAPED_STRING", '"a\\', 7),
    Small("escaped strings", '%import common.ESCAPED_STRING -> S\nstart: S ("," S)*', '"\\,', 8),
    Small("lazy comment", 'start: "a" C "b"\nC: "/*" /(.|\\n)*?/ "*/"', "ab/*", 8),
    Small("lazy repeat", "start: /a{1,3}?/ /a*b/", "ab", 7),
    Small("ordered branches", "start: A A\nA: /a|aa/", "ab", 6),
    Small("ordered branches, longer first", "start: A A\nA: /aa|a/", "ab", 6),
    Small("ordered branches inside", "start: /(a|ab)(c|bcd)/ /d?e/", "abcde", 6),
    Small("optional and ordered", "start: /(a|b)?b/ /c/", "abc", 5),
    Small("look-ahead inside", "start: /a(?!b)[a-c]/", "abc", 4),
    Small("leading negative look-ahead", "start: N+\nN: /(?!ab)[ab]{2}/", "ab", 6),
    Small("look-ahead at the end", 'start: /a+(?!b)/ "c"', "abc", 5),
    Small("look-ahead that decides", 'start: N "." N | N "r" N\nN: /1(?!r)/ | "2"', "12.r", 5),
    Small("look-behind", r"start: /a+(?<!aa)b/", "ab", 6),
    Small("boundary", "start: /ab\\b/ /[ ]/ /b/", "ab ", 5),
    Small("keyword with boundary", 'start: K N | N\nK: /ab\\b/\nN: /[ab]+/\n%ignore " "', "ab ", 6),
    Small("boundary and no keyword", 'start: K "=" N\nK: /a\\b/\nN: /[ab]+/', "ab=", 5),
    Small("end anchor", 'start: "a" /b$/', "abc", 4),
    # Clashes.
    Small("keyword and name", 'start: "if" N | N "="\nN: /[a-z]+/\n%ignore " "', "if= ", 6),
    Small("keyword before name", 'start: "if" N\nN: /[a-z]+/\n%ignore " "', "ifx ", 6),
    Small(
        "keywords in an expression",
        'start: n ("or" n)*\nn: N | "not" n\nN: /[a-z]+/\n%ignore " "',
        "ornt ",
        6,
        _LALR,
    ),
    Small("keyword, case ignored", 'start: "if"i N | N "="\nN: /[a-z]+/i\n%ignore " "', "iFf= ", 6),
    Small("keyword, case ignored, name not", 'start: "if"i N | N "="\nN: /[a-z]+/\n%ignore " "', "iFf= ", 6),
    Small("literal longer than a literal", 'start: ("a" | "ab") ("b" | "c")?', "abc", 5),
    Small("operators", 'start: N (("<" | "<=" | "=") N)*\nN: "a"', "a<=", 7, _BASIC),
    Small(
        "priority, keyword first",
        'start: KW N | N "="\nKW.2: "ab"\nN: /[a-z]+/\n%ignore " "',
        "ab= ",
        6,
        _BASIC,
    ),
    Small("priority, name first", 'start: KW "!" | N "="\nKW.-1: "ab"\nN: /[a-z]+/', "ab=!", 5, _BASIC),
    Small("two regexes", "start: (A | B)+\nA: /a+/\nB: /ab/", "ab", 8, _BASIC),
    Small("regexes of one width", "start: A | B\nA: /[ab]/ \nB: /[bc]/", "abc", 3, _BASIC),
    Small("regexes in order of length", 'start: A "=" | B "!"\nA: /[ab]+/\nB: /[a-c]+/', "abc=!", 5, _BASIC),
    Small("integer and decimal", 'start: x ("," x)*\nx: I | F\nI: /1+/\nF: /1+\\.1*/', "1.,", 7, _BASIC),
    Small("integer before a range", 'start: I ".." I | F\nI: /1+/\nF: /1+\\.1*/', "1.", 8, _BASIC),
    Small("name and number", 'start: (N | I)+\nN: /[a-b][a-b1]*/\nI: /1+/\n%ignore " "', "ab1 ", 6, _BASIC),
    Small("terminal of one state only", 'start: "x" A | "y" B\nA: /a+/\nB: /[ab]+/', "xyab", 5, _BASIC),
    Small("clash with what is ignored", "start: A+\nA: /a+/\nW: /[ab]b/\n%ignore W", "ab", 8, _BASIC),
    Small("a name that is ignored", 'start: "ab" N\nN: /[a-c]+/\n%ignore /b+/', "abc", 6),
    Small("string and name", 'start: (S | N)+\nS: /"[^"]*"/\nN: /[a"]/', 'ab"', 6, _BASIC),
    Small("literal inside a regex", 'start: A B\nA: /x[ab]*/\nB: "b" | "c"', "xabc", 5, _BASIC),
    Small("assignment", 'start: (N "=" v ";")+\nv: N | I\nN: /[a-b]+/\nI: "1"\n%ignore " "', "a=1; ", 6),
    Small("all splits", "start: A B\nA: /a+/\nB: /ab?/", "ab", 6, (("earley", "dynamic_complete"),)),
]

# Indentation: one width, to a depth, and line breaks without odd blanks: much is left out by design.
BLOCKS = [
    Small(
        "indented tree",
        "start: tree\ntree: N _NL [_IN tree+ _OUT]\nN: /a+/\n_NL: /(\\n *)+/\n%declare _IN _OUT\n",
        "a\n ",
        10,
        _LALR,
        {"postlex": _Blocks()},
        {"indent": 1, "max_depth": 3},
    ),
    Small(
        "blocks, brackets and comments",
        'start: (_NL | s)*\ns: "a" [":" _NL _IN s+ _OUT] | "a" "(" s* ")" _NL\n'
        "_NL: ( /\\n */ | C )+\nC: /#[^\\n]*/\n%ignore / +/\n%ignore C\n%declare _IN _OUT\n",
        "a:()\n #",
        6,
        _LALR,
        {"postlex": _Blocks()},
        {"indent": 1, "max_depth": 2},
    ),
    Small(
        "a last line without an end",
        'start: s (_NL s)*\ns: "a" | "b" _NL _IN s (_NL s)* _OUT\n_NL: /\\n */\n%declare _IN _OUT\n',
        "ab\n ",
        8,
        _LALR,
        {"postlex": _Blocks()},
        {"indent": 1, "max_depth": 2},
    ),
    Small(
        "brackets with line breaks of their own, quotes with blanks",
        'start: s+\ns: x _NL | ":" _NL _IN s+ _OUT\nx: "(" [_N] y ")" | "q" t "q"\ny: ("b" [_N])+\n'
        't: T ["(" [_N] y ")"]\nT.3: /[b ]+/\n_N.3: /[ \\n]+/\n_NL: /\\n */\n%declare _IN _OUT\n',
        "b:q()\n ",
        6,
        _LALR,
        {"postlex": _Open()},
        {"indent": 1, "max_depth": 2},
    ),
]
