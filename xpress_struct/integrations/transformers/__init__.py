"""Constraints inside `model.generate` of transformers: decoding, or a mask for every method."""

from xpress_struct.integrations.transformers.generate import XPressGenerate, XPressOutput
from xpress_struct.integrations.transformers.processor import ConstraintLogitsProcessor

__all__ = ["ConstraintLogitsProcessor", "XPressGenerate", "XPressOutput"]
