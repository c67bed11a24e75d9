"""XPressTransformers: an Outlines model that decodes with speculation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from outlines.models import Transformers
from transformers import ProcessorMixin

from xpress_struct.errors import UnsupportedFeatureError
from xpress_struct.integrations.outlines.generate import OutlinesGenerate

if TYPE_CHECKING:
    from torch import dtype
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["XPressTransformers", "from_transformers"]


class XPressTransformers(Transformers):  # type: ignore[misc]
    """An `outlines.models.Transformers` whose calls, batches and streams are decoded by this library.

    Output types, backends, templates, generators and applications are Outlines' own. Streams, which
    Outlines does not have for transformers, come piece by piece.

    Args:
        model, tokenizer, device_dtype: as of `outlines.from_transformers`.
        drafter, options: as of `OutlinesGenerate`.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        device_dtype: dtype | None = None,
        drafter: Any = "auto",
        **options: Any,
    ) -> None:
        super().__init__(model, tokenizer, device_dtype=device_dtype)
        self._decode = OutlinesGenerate(tokenizer=tokenizer, drafter=drafter, **options)

    def generate(self, model_input: Any, output_type: Any = None, **inference_kwargs: Any) -> str | list[str]:
        """Called by Outlines for one prompt."""
        given = {"custom_generate": self._decode, **inference_kwargs}
        found: str | list[str] = super().generate(model_input, output_type, **given)
        return found

    def generate_batch(
        self, model_input: Sequence[Any], output_type: Any = None, **inference_kwargs: Any
    ) -> list[Any]:
        """Called by Outlines for several prompts; they are decoded one after another."""
        given = {"custom_generate": self._decode, **inference_kwargs}
        found: list[Any] = super().generate_batch(model_input, output_type, **given)
        return found

    def generate_stream(
        self, model_input: Any, output_type: Any = None, **inference_kwargs: Any
    ) -> Iterator[str]:
        """Called by Outlines for a stream: pieces of text, never taken back."""
        _, inputs = self._prepare_model_inputs(model_input)
        pieces: Iterator[str] = self.model.generate(
            **inputs,
            logits_processor=self.type_adapter.format_output_type(output_type),
            custom_generate=self._decode.stream,
            **inference_kwargs,
        )
        return pieces


def from_transformers(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    device_dtype: dtype | None = None,
    drafter: Any = "auto",
    **options: Any,
) -> XPressTransformers:
    """`outlines.from_transformers`, for a model that decodes with speculation; see `XPressTransformers`.

    Raises:
        UnsupportedFeatureError: a processor of a multi-modal model is given.
    """
    if isinstance(tokenizer, ProcessorMixin):
        raise UnsupportedFeatureError(
            "Speculation reads text alone: pass the tokenizer of a text model, or keep "
            "outlines.from_transformers for a multi-modal one.",
            feature="processor",
        )
    return XPressTransformers(model, tokenizer, device_dtype=device_dtype, drafter=drafter, **options)
