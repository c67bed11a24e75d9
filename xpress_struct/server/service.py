"""Service: a model, the line before it, and what is kept between requests."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

from xpress_struct.constraints.compiled import ByteCache
from xpress_struct.constraints.constraint import Constraint
from xpress_struct.errors import CompileLimitError
from xpress_struct.model import Model
from xpress_struct.server.checking import Checker
from xpress_struct.server.constraints import Spec, build, from_package
from xpress_struct.server.errors import RequestError
from xpress_struct.server.generation import Task
from xpress_struct.server.limits import Limits
from xpress_struct.server.metrics import Metrics
from xpress_struct.server.worker import Job, Worker

__all__ = ["Service"]


class Service:
    """What the endpoints share.

    Attributes:
        name: of the model, as requests say it.
    """

    def __init__(self, model: Model, name: str, limits: Limits) -> None:
        self.model, self.name, self.limits = model, name, limits
        self.started = int(time.time())
        self.worker = Worker()
        self.metrics = Metrics(self.worker)
        self._checker = Checker(limits.compile_timeout)
        self._constraints: ByteCache[Constraint | CompileLimitError] = ByteCache(64 << 20)
        self._open = 0

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place among the requests that are served at once.

        Raises:
            RequestError: there is none.
        """
        if self._open >= self.limits.max_requests or not self.worker.alive:
            raise RequestError("The server is full; try again later.", status=503, code="overloaded")
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    async def constraint(self, spec: Spec | None) -> Constraint | None:
        """The constraint of a spec, in a thread.

        Raises:
            XPressError: it does not compile.
        """
        if spec is None:
            return None
        with self.metrics.compile_s.time():
            return await asyncio.to_thread(self._compile, spec)

    def _compile(self, spec: Spec) -> Constraint:
        key = json.dumps(spec)
        found = self._constraints.get(key)
        if found is None:
            try:
                if not from_package(spec):
                    self._checker.check(spec)
                found = build(spec)
            except CompileLimitError as error:
                found = error
            size = len(key) + (len(found.grammar) if isinstance(found, Constraint) else 0)
            self._constraints.put(key, found, size)
        if isinstance(found, CompileLimitError):
            raise found.with_traceback(None)
        return found

    def submit(self, task: Task, constraint: Constraint | None, deadline: float) -> Job:
        """Puts a task into the line."""

        def work(job: Job) -> None:
            assert job.waited is not None
            self.metrics.queue_s.observe(job.waited)
            task.work(self.model, constraint, deadline, job, self.metrics.note)

        job = Job(work)
        self.worker.submit(job)
        return job

    def close(self) -> None:
        """Ends the worker and the process that checks constraints."""
        self.worker.close()
        self._checker.close()
