"""A process of its own in which constraints are compiled first: a thread cannot be stopped, a process can."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any

from xpress_struct.constraints.compiled import clear_cache
from xpress_struct.errors import CompileLimitError
from xpress_struct.prompt import compact_schema
from xpress_struct.server.constraints import build

__all__ = ["Checker", "main"]

_MEMORY = 4 << 30
_SHOWN = 1 << 18
_READY, _DONE, _LARGE = "ready\n", "done\n", "large\n"


class Checker:
    """Tells whether a constraint compiles within a time. Used by one thread at a time; the others wait.

    Args:
        timeout: seconds.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def check(self, spec: Any) -> None:
        """Compiles what a spec says. A spec that does not compile passes too: it will fail here as fast.

        Raises:
            CompileLimitError: it takes too long, or too much memory, or would fill the prompt.
        """
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                self._stop()
            process = self._process = self._process or self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            began = time.monotonic()
            timer = threading.Timer(self._timeout, process.kill)
            timer.start()
            try:
                process.stdin.write(json.dumps(spec) + "\n")
                process.stdin.flush()
                told = process.stdout.readline()
            except OSError:
                told = ""
            timer.cancel()
            timer.join()
            # An answer as late as the timer counts as none: its process may be dying already.
            if time.monotonic() - began >= self._timeout:
                told = ""
            if not told:
                self._stop()
        if told == _LARGE:
            raise CompileLimitError(
                f"The schema, its references written out, has more than {_SHOWN} characters. Simplify it."
            )
        if told:
            return
        raise CompileLimitError(
            f"The constraint takes more than {self._timeout:g} s to compile, or too much memory. Simplify "
            "it: fewer alternatives, smaller bounds."
        )

    def close(self) -> None:
        """Ends the process."""
        with self._lock:
            self._stop()

    def _start(self) -> subprocess.Popen[str]:
        # The same search path, whatever the main module is.
        code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import main; main()"
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        # Its imports are no one's constraint.
        if process.stdout.readline() != _READY:
            raise RuntimeError("the process that checks constraints does not start")
        return process

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()


def main() -> None:
    """The process: a line with a spec comes in, a line goes out when it is compiled or refused."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this process
    try:
        import resource
    except ImportError:  # Windows
        pass
    else:
        with suppress(ValueError, OSError):  # not everywhere can it be set
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    print(_READY, end="", flush=True)
    for line in sys.stdin:
        told = _DONE
        try:
            schema = build(json.loads(line)).schema
            if schema is not None and len(json.dumps(compact_schema(schema))) > _SHOWN:
                told = _LARGE
        except MemoryError:
            return  # no answer tells that it cannot be
        except Exception:
            pass  # refused: the server finds that out by itself
        clear_cache()  # none is paid for by the next
        print(told, end="", flush=True)
