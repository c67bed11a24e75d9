"""Worker: one thread in which a model decodes, a request at a time; the others wait in line."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass

from xpress_struct.results import Generation

__all__ = ["Event", "Finished", "Job", "Piece", "Worker"]


@dataclass(frozen=True)
class Piece:
    """Text of a choice, or of the thoughts before it."""

    choice: int
    text: str
    thought: bool = False


@dataclass(frozen=True)
class Finished:
    """The end of a choice."""

    choice: int
    result: Generation


Event = Piece | Finished


class Job:
    """A request in the line. Iterated, it gives its events; an error of its work is raised.

    Attributes:
        cancel: set, it ends the work before its next round.
        waited: seconds in the line, once it has begun.
    """

    def __init__(self, work: Callable[[Job], None]) -> None:
        self.cancel = threading.Event()
        self.waited: float | None = None
        self._work = work
        self._arrived = time.perf_counter()
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Event | Exception | None] = asyncio.Queue()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while (event := await self._events.get()) is not None:
            if isinstance(event, Exception):
                raise event
            yield event

    def emit(self, event: Event | Exception | None) -> None:
        """Tells the request's handler, from any thread."""
        with suppress(RuntimeError):  # its loop has ended, and the handler with it
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    def run(self) -> None:
        """Does the work, in the worker's thread."""
        self.waited = time.perf_counter() - self._arrived
        try:
            if not self.cancel.is_set():
                self._work(self)
        except Exception as error:
            self.emit(error)
        self.emit(None)


class Worker:
    """Runs jobs one after another, first come, first served."""

    def __init__(self) -> None:
        self._line: deque[Job] = deque()
        self._running: Job | None = None
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="xpress-struct-worker", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """True while it serves."""
        return self._thread.is_alive() and not self._closed

    @property
    def waiting(self) -> int:
        """Jobs in the line."""
        return len(self._line)

    @property
    def busy(self) -> bool:
        """True while a job runs."""
        return self._running is not None

    def submit(self, job: Job) -> None:
        """Puts a job at the end of the line."""
        with self._changed:
            self._line.append(job)
            self._changed.notify()

    def leave(self, job: Job) -> None:
        """Takes a job out of the line; one that runs ends before its next round."""
        job.cancel.set()
        with self._changed, suppress(ValueError):
            self._line.remove(job)
            job.emit(None)

    def close(self) -> None:
        """Ends the running job and the thread; those in line end without an answer."""
        with self._changed:
            self._closed = True
            for job in (*self._line, *([self._running] if self._running else [])):
                job.cancel.set()
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._line or self._closed)
                if not self._line:
                    return
                self._running = self._line.popleft()
            self._running.run()
            self._running = None
