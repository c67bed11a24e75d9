"""Generation from coroutines: the model runs in threads, and stops when the task is cancelled."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

from xpress_struct.errors import ArgumentError
from xpress_struct.options import Options
from xpress_struct.results import Generation
from xpress_struct.streaming import Stream

__all__ = ["AsyncStream", "in_thread", "stopped_by"]

T = TypeVar("T")


class _Either(threading.Event):
    """Set when itself or another event is."""

    def __init__(self, other: threading.Event) -> None:
        super().__init__()
        self._other = other

    def is_set(self) -> bool:
        return super().is_set() or self._other.is_set()


def stopped_by(options: Mapping[str, Any]) -> tuple[threading.Event, dict[str, Any]]:
    """An event that stops the model, and the options with it; the caller's own event stops it too.

    Raises:
        ArgumentError, UnknownArgumentError: an option cannot be honoured.
    """
    given = Options.read(options).cancel
    stop = threading.Event() if given is None else _Either(given)
    return stop, {**options, "cancel": stop}


async def in_thread(work: Callable[[], T], stop: threading.Event, executor: Executor | None = None) -> T:
    """Runs blocking work in a thread.

    Cancelled, it sets `stop` and waits for the work to end, unless that has not begun. A second cancellation
    waits no more.

    Args:
        executor: None takes the event loop's.
    """
    begun = threading.Event()
    context = contextvars.copy_context()

    def run() -> T:
        begun.set()
        return context.run(work)

    future = asyncio.get_running_loop().run_in_executor(executor, run)
    try:
        await asyncio.wait([future])
    except asyncio.CancelledError:
        stop.set()
        # Read, so that an error which nobody waits for any more is not logged as one that was missed.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        if begun.is_set():
            await asyncio.wait([future])
        raise
    return future.result()


class AsyncStream:
    """Pieces of text while they are generated, for coroutines; see `Stream`.

    Rounds run in a thread of its own, and only as pieces are asked for. Leaving the block, or cancelling the
    task, stops the model before its next round.

        async with model.astream(prompt, constraint) as s:
            async for piece in s:
                print(piece, end="")
        print(s.result.stats)

    Args:
        start: starts the stream; it is called in the thread.
        stop: the event that cancels it.
    """

    def __init__(self, start: Callable[[], Stream], stop: threading.Event) -> None:
        self._start, self._stop = start, stop
        self._thread: ThreadPoolExecutor | None = None
        self._stream: Stream | None = None
        self._pieces: Iterator[str] = iter(())

    async def __aenter__(self) -> AsyncStream:
        if self._stream is None:
            self._thread = ThreadPoolExecutor(1, "xpress-struct-stream")
            try:
                self._stream = await in_thread(self._start, self._stop, self._thread)
            except BaseException:
                self._thread.shutdown(wait=False)
                raise
            self._pieces = iter(self._stream)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> str:
        self._opened  # noqa: B018  (an error outside of the block)
        if self._thread is None:
            raise StopAsyncIteration
        piece = await in_thread(lambda: next(self._pieces, None), self._stop, self._thread)
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Stops the model. An unfinished result becomes "cancelled"."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stop.set()
            try:
                await in_thread(self._opened.close, self._stop, thread)
            finally:
                thread.shutdown(wait=False)

    @property
    def text(self) -> str:
        """The text so far."""
        return self._opened.text

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The tokens so far."""
        return self._opened.token_ids

    @property
    def partial(self) -> Any:
        """The JSON value so far; see `Stream.partial`."""
        return self._opened.partial

    @property
    def result(self) -> Generation:
        """The finished generation.

        Raises:
            ArgumentError: the stream is neither read to its end nor closed.
        """
        return self._opened.result

    @property
    def _opened(self) -> Stream:
        if self._stream is None:
            raise ArgumentError("The stream has not begun: use it in an `async with` block.")
        return self._stream
