"""Outlines at the speed of this library's decoding: by one argument, or by a model class."""

from xpress_struct.errors import MissingPackageError

try:
    import outlines  # noqa: F401
except ImportError as error:
    raise MissingPackageError('Outlines is not installed: pip install "xpress-struct[outlines]".') from error

from xpress_struct.integrations.outlines.generate import OutlinesGenerate
from xpress_struct.integrations.outlines.model import XPressTransformers, from_transformers

__all__ = ["OutlinesGenerate", "XPressTransformers", "from_transformers"]
