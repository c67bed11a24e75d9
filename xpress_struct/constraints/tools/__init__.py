"""Tools as a constraint: functions, types and specs that a model may call."""

from xpress_struct.constraints.tools.build import tools
from xpress_struct.constraints.tools.reading import CallReader
from xpress_struct.constraints.tools.tool import Tool, ToolCall

__all__ = ["CallReader", "Tool", "ToolCall", "tools"]
