"""JSON Schema and Python types as constraints."""

from xpress_struct.constraints.json_schema.build import json_schema

__all__ = ["json_schema"]
