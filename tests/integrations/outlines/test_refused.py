"""What cannot be honoured under Outlines is an error of ours that says what to do."""

from __future__ import annotations

import importlib
import sys

import outlines
import pytest
from outlines.backends.outlines_core import OutlinesCoreLogitsProcessor
from outlines.processors import OutlinesLogitsProcessor
from transformers import ProcessorMixin

from tests.integrations.outlines.shared import SAME_MASKS, decoding, processor, run, theirs
from tests.integrations.tiny import PROMPTS, TOKENIZER, WORDS, network
from xpress_struct.errors import (
    ArgumentError,
    MissingPackageError,
    UnknownArgumentError,
    UnsupportedFeatureError,
)
from xpress_struct.integrations.outlines import OutlinesGenerate, from_transformers
from xpress_struct.integrations.transformers import XPressGenerate


class Own(OutlinesLogitsProcessor):
    def __init__(self) -> None:
        super().__init__("torch")

    def reset(self) -> None:
        pass

    def process_logits(self, input_ids, logits):
        return logits


class Changed(OutlinesCoreLogitsProcessor):
    """Masks as it likes."""


def test_a_processor_of_another_kind_is_refused() -> None:
    """A processor of the caller's own, or one derived from a known kind, is not guessed at."""
    index = processor("outlines_core", "json").index
    for own in (Own(), Changed(index, "torch")):
        generator = outlines.Generator(theirs(), processor=own)
        with pytest.raises(UnsupportedFeatureError, match=f"{type(own).__name__} is no processor of"):
            generator(PROMPTS[0], custom_generate=decoding(), max_new_tokens=9)
        with pytest.raises(UnsupportedFeatureError, match="is no processor of"):
            outlines.Generator(from_transformers(network(), TOKENIZER), processor=own).stream(
                PROMPTS[0], max_new_tokens=9
            )


@pytest.mark.parametrize("key", SAME_MASKS, ids="-".join)
def test_two_constraints_are_refused(key) -> None:
    """A constraint here beside an output type there, and two output types, are errors."""
    with pytest.raises(ArgumentError, match="Two constraints"):
        run(processor(*key), custom_generate=decoding(constraint=WORDS))
    with pytest.raises(ArgumentError, match="2 processors of Outlines"):
        run(processor(*key), others=[processor("llguidance", "cfg")], custom_generate=decoding())


@pytest.mark.parametrize("backend", ["outlines_core", "xgrammar", "llguidance"])
def test_the_way_into_transformers_refuses_outlines(backend: str) -> None:
    """XPressGenerate does not run a processor that goes forward only; it names the class that reads it."""
    with pytest.raises(UnsupportedFeatureError, match="OutlinesGenerate"):
        run(processor(backend, "json"), custom_generate=XPressGenerate(tokenizer=TOKENIZER))


def test_arguments_are_those_of_the_way_into_transformers() -> None:
    """Unknown options and refused arguments of `generate` are named."""
    with pytest.raises(UnknownArgumentError, match="speed"):
        OutlinesGenerate(speed=3)
    with pytest.raises(UnknownArgumentError, match="speed"):
        from_transformers(network(), TOKENIZER, speed=3)
    with pytest.raises(UnsupportedFeatureError, match="num_beams"):
        run(processor("xgrammar", "json"), custom_generate=decoding(), num_beams=2)


def test_a_multi_modal_processor_is_refused() -> None:
    """What is not a text model is left to Outlines."""

    class Pictures(ProcessorMixin):
        def __init__(self) -> None:
            """Nothing is read."""

    with pytest.raises(UnsupportedFeatureError, match="multi-modal"):
        from_transformers(network(), Pictures())


def test_without_outlines_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only this module needs Outlines."""
    monkeypatch.setitem(sys.modules, "outlines", None)
    monkeypatch.delitem(sys.modules, "xpress_struct.integrations.outlines")
    with pytest.raises(MissingPackageError, match=r'pip install "xpress-struct\[outlines\]"'):
        importlib.import_module("xpress_struct.integrations.outlines")
