"""Code of a programming language as a constraint."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import replace
from functools import lru_cache, partial

from lark.indenter import Indenter

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.constraints.lark import lark
from xpress_struct.constraints.matcher import GrammarMatcher
from xpress_struct.errors import ArgumentError, OutputValidationError

__all__ = ["PythonBlocks", "code"]

_HEAD = re.compile(r"^(?:@.*\n(?:[ \t#].*\n|\n)*)*(?:async[ \t]+)?def\b", re.MULTILINE)


class PythonBlocks(Indenter):
    """The post-lexer of the shipped grammar "python". Brackets are the grammar's own affair."""

    NL_type = "_NEWLINE"
    OPEN_PAREN_types: list[str] = []
    CLOSE_PAREN_types: list[str] = []
    INDENT_type = "_INDENT"
    DEDENT_type = "_DEDENT"
    tab_len = 8
