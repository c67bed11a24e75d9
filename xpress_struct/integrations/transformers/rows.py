"""The rows of a `generate` call: each decoded alone, then padded into one tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers import GenerationConfig, StoppingCriteriaList

from xpress_struct.constraints.constraint import Constraint
from xpress_struct.decoding.text import TextAssembler
from xpress_struct.errors import ArgumentError
from xpress_struct.integrations.transformers.shared import ids_of
from xpress_struct.model import Model
from xpress_struct.options import Options
from xpress_struct.results import Generation
from xpress_struct.streaming import BufferedStream, Stream

if TYPE_CHECKING:
    from transformers.generation.streamers import BaseStreamer

__all__ = ["Row", "RowOutput", "sequences_of"]


class RowOutput:
    """Hands the tokens of one row on as they come, up to where a criterion stops them.

    Args:
        before: ids of the row before its output, padding included.
    """

    def __init__(
        self,
        before: Sequence[int],
        criteria: StoppingCriteriaList,
        streamer: BaseStreamer | None,
        device: torch.device,
    ) -> None:
        self._before, self._criteria, self._streamer = list(before), criteria, streamer
        self._device = device
        self.kept: list[int] = []
        self.stopped = False

    def take(self, output: Sequence[int]) -> bool:
        """Takes the whole output so far; True when the row stops."""
        for token in output[len(self.kept) :]:
            if self.stopped:
                break
            self.kept.append(token)
            if self._streamer is not None:
                self._streamer.put(torch.tensor([token]))
            if self._criteria:
                ids = torch.tensor([self._before + self.kept], device=self._device)
                self.stopped = bool(self._criteria(ids, None).all())
        return self.stopped


class Row:
    """One row of a call, to be decoded alone.

    Args:
        model: with the row's processors.
        number: of the row in the batch; it keys the noise.
        emit: takes the tokens as they come, and says where a criterion stops the row.
    """

    def __init__(
        self,
        model: Model,
        prompt: list[int],
        constraint: Constraint | None,
        options: Options,
        number: int,
        emit: RowOutput,
    ) -> None:
        self._model, self._prompt, self._constraint = model, prompt, constraint
        self._options, self._number, self._emit = options, number, emit

    def decode(self) -> Generation:
        """Decodes the row, up to where a criterion stops it."""
        emit = self._emit
        with self._start() as stream:
            for _ in stream:
                if emit.take(stream.token_ids):
                    break
            emit.take(stream.token_ids)
        result = stream.result
        if len(emit.kept) == len(result.token_ids):
            return result
        text = self._model.vocabulary.decode(emit.kept).decode(errors="ignore")
        result.stats.output_tokens = len(emit.kept)
        return replace(result, token_ids=tuple(emit.kept), text=text, finish_reason="cancelled")

    def pieces(self) -> Iterator[str]:
        """The text of the row, piece by piece while it is decoded."""
        emit, given = self._emit, 0
        with self._start() as stream:
            for piece in stream:
                if emit.take(stream.token_ids):
                    break
                given += len(piece)
                yield piece
        if emit.stopped:
            text = TextAssembler(self._model.vocabulary)
            for token in emit.kept:
                text.feed(token)
            if rest := text.text[given:]:
                yield rest

    def _start(self) -> Stream:
        constraint, options = self._constraint, self._options
        if constraint is not None and constraint.checked_after:
            # It may be drawn again, so nothing stands before the end.
            return BufferedStream(
                lambda: self._model._complete(self._prompt, constraint, options, self._number)
            )
        return self._model._start(self._prompt, constraint, options, self._number, None)


def sequences_of(input_ids: Tensor, generations: Sequence[Generation], config: GenerationConfig) -> Tensor:
    """Prompts and outputs, [rows, n], padded on the right.

    Raises:
        ArgumentError: there is no id to pad with.
    """
    lengths = [len(each.token_ids) for each in generations]
    pad = ids_of(config.pad_token_id) or ids_of(config.eos_token_id)
    if pad is None and len({*lengths}) > 1:
        raise ArgumentError("Outputs of several lengths need pad_token_id; pass it to generate().")
    outputs = input_ids.new_full((len(lengths), max(lengths)), pad[0] if pad else 0)
    for row, each in enumerate(generations):
        outputs[row, : lengths[row]] = torch.tensor(each.token_ids)
    return torch.cat([input_ids, outputs], dim=1)
