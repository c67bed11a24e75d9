"""Is a pair of models lossless here? Tests with their statistics, and one verdict."""

from xpress_struct.lab.check.decoders import Ask, Decode
from xpress_struct.lab.check.report import CheckReport, Section
from xpress_struct.lab.check.run import check
from xpress_struct.lab.check.threshold import LossyThresholdRefiner

__all__ = ["Ask", "CheckReport", "Decode", "LossyThresholdRefiner", "Section", "check"]
