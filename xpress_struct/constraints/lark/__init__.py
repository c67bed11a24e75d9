"""Lark grammars as constraints."""

from xpress_struct.constraints.lark.build import lark
from xpress_struct.constraints.lark.report import LarkReport

__all__ = ["LarkReport", "lark"]
