"""Stream: a generation as it comes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Literal

from pydantic_core import from_json

from xpress_struct.decoding.loop import Decoder
from xpress_struct.decoding.text import TextAssembler
from xpress_struct.errors import ArgumentError
from xpress_struct.results import Generation

__all__ = ["BufferedStream", "Part", "Stream"]

Part = tuple[Literal["thinking", "text"], str]


class Stream:
    """Pieces of text while they are generated.

    A piece is never taken back and never holds half a character; together they are exactly
    `result.text`. Thoughts are no part of them; `parts` gives both. Leaving the `with` block, or `close`,
    stops the model: rounds run only as pieces are asked for.

        with model.stream(prompt, constraint) as s:
            for piece in s:
                print(piece, end="")
        print(s.result.stats)
    """

    def __init__(
        self,
        decoder: Decoder,
        text: TextAssembler,
        parse: Callable[[str], Any],
        started: float,
    ) -> None:
        self._decoder, self._text, self._parse, self._started = decoder, text, parse, started
        self._before = started_delay = time.perf_counter() - started
        self._spent = started_delay
        self._rounds = decoder.rounds()
        self._thought = 0
        self._result: Generation | None = None

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[str]:
        return (piece for kind, piece in self.parts() if kind == "text")

    def parts(self) -> Iterator[Part]:
        """Pieces of the thoughts, as ("thinking", piece), and then of the text, as ("text", piece)."""
        while self._result is None:
            resumed = time.perf_counter()
            try:
                next(self._rounds, None)
            except BaseException:
                self.close()  # read again, it is at its end
                raise
            # Time in the caller's hands between pieces is not the model's.
            self._spent += time.perf_counter() - resumed
            finished = self._decoder.finish is not None
            if finished:
                self._finish()
            if thought := (self._text.thinking or "")[self._thought :]:
                self._thought += len(thought)
                yield "thinking", thought
            if piece := self._text.take(final=finished):
                yield "text", piece

    def close(self) -> None:
        """Stops the model. An unfinished result becomes "cancelled"."""
        self._rounds.close()
        if self._result is None:
            self._decoder.finish = self._decoder.finish or "cancelled"
            self._finish()

    @property
    def text(self) -> str:
        """The text so far."""
        return self._text.text

    @property
    def thinking(self) -> str | None:
        """The thoughts so far; None where none were asked for."""
        return self._text.thinking

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The tokens so far."""
        return tuple(self._decoder.output)

    @property
    def partial(self) -> Any:
        """The JSON value so far: open strings, lists and objects as far as they go; None when there
        is nothing yet, or the text is not JSON."""
        try:
            return from_json(self.text, allow_partial="trailing-strings")
        except ValueError:
            return None

    @property
    def result(self) -> Generation:
        """The finished generation.

        Raises:
            ArgumentError: the stream is neither read to its end nor closed.
        """
        if self._result is None:
            raise ArgumentError("The stream is not finished: read it to its end, or close it.")
        return self._result

    def _finish(self) -> None:
        decoder = self._decoder
        stats = decoder.stats
        stats.output_tokens = len(decoder.output)
        stats.total_s = self._spent
        if stats.first_token_s is not None:
            stats.first_token_s += self._before
        stats.peak_memory_bytes = _peak_memory()
        assert decoder.finish is not None
        self._result = Generation(
            text=self._text.text,
            token_ids=tuple(decoder.output),
            finish_reason=decoder.finish,
            stats=stats,
            origins=tuple(decoder.origins),
            logprobs=tuple(decoder.logprobs) if decoder.logprobs else None,
            thinking=self._text.thinking,
            _parse=self._parse,
            _ends=tuple(decoder.ends),
        )


class BufferedStream(Stream):
    """A stream of one piece, the whole text, after its final check: for constraints with something
    in `checked_after`, whose text may have to be drawn again."""

    def __init__(self, run: Callable[[], Generation]) -> None:
        self._run = run
        self._result: Generation | None = None
        self._closed = False

    def parts(self) -> Iterator[Part]:
        if self._result is None and not self._closed:
            self._result = self._run()
            if self._result.thinking:
                yield "thinking", self._result.thinking
            yield "text", self._result.text

    def close(self) -> None:
        """Nothing runs between pieces, so there is nothing to stop; it can no longer be read."""
        self._closed = True

    @property
    def text(self) -> str:
        """The text: nothing before it is checked."""
        return self._result.text if self._result else ""

    @property
    def thinking(self) -> str | None:
        """The thoughts, with the text."""
        return self._result.thinking if self._result else None

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The tokens: none before the text is checked."""
        return self._result.token_ids if self._result else ()


def _peak_memory() -> int | None:
    """Peak bytes of the GPU's allocator, else of this process."""
    import torch

    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return int(torch.cuda.max_memory_allocated())
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)
