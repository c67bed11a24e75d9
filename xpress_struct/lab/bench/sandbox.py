"""Runs code that a model wrote together with its tests, in a process of its own with limits.

The process is `python -I` in an empty folder, without environment and input. It has limits of processor time,
memory, file size and processes, and an audit hook that refuses new processes, sockets, ctypes, signals
to others, and changes of files outside of its folder. A wall clock ends it, with all that it started.

These limits stop accidents, such as endless loops and deletions by mistake. They are no security boundary:
code that means to get around them can, since it runs as the same user and may read that user's files.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Outcome", "run_tests"]

_CHILD = Path(__file__).with_name("sandbox_child.py")


@dataclass(frozen=True)
class Outcome:
    """How a program ended.

    Attributes:
        passed: it came to its end. One that leaves before its tests are through has not.
        reason: the last line of its errors, or what ended it.
    """

    passed: bool
    reason: str = ""


def run_tests(
    program: str, *, wall_s: float = 10.0, cpu_s: int = 5, memory: int = 1 << 30, file_size: int = 1 << 20
) -> Outcome:
    """Runs a program, whose last statements are its tests.

    Args:
        wall_s, cpu_s: seconds.
        memory, file_size: bytes of address space, and of each file that it writes.
    """
    # Told by the child when the program is through, and unknown to the program's own exits.
    word = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="xpress_struct_sandbox_") as folder:
        given = f"{word} {cpu_s} {memory} {file_size}\n{program}"
        process = subprocess.Popen(
            [sys.executable, "-I", "-B", str(_CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env={},
            start_new_session=True,
        )
        try:
            out, err = process.communicate(given.encode("utf-8", errors="replace"), timeout=wall_s)
        except subprocess.TimeoutExpired:
            return Outcome(False, f"no end after {wall_s:g} s")
        finally:
            _end(process)
    if word.encode() in out:
        return Outcome(True)
    lines = err.decode(errors="replace").strip().splitlines()
    code = process.returncode
    ended = f"ended by signal {-code}" if code < 0 else f"ended by itself with code {code}"
    return Outcome(False, lines[-1][:200] if lines else ended)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the process with all that is left of its session."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:  # Windows
            process.kill()
    process.communicate()
