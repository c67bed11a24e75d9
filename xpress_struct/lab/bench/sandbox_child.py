"""The process of `sandbox`: sets its own limits, then runs the program that stands on its input.

The first line has the word to say at the end, then seconds of processor time, bytes of memory and of a file.
"""

import os
import sys

_REFUSED: tuple[str, ...] = (
    "os.fork",
    "os.forkpty",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.startfile",
    "os.system",
    "os.kill",
    "os.killpg",
    "os.putenv",
    "pty.spawn",
    "subprocess.Popen",
    "socket.",
    "ctypes.",
    "signal.pthread_kill",
    "resource.setrlimit",
    "resource.prlimit",
)
_CHANGES: tuple[str, ...] = (
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.mkdir",
    "os.link",
    "os.symlink",
    "os.truncate",
)
_CHANGES += ("os.truncate", "os.chmod", "os.chown", "os.chdir", "shutil.", "os.utime", "os.setxattr")


def _limit(cpu: int, memory: int, file_size: int) -> None:
    try:
        import resource
    except ImportError:  # Windows: the wall clock alone
        return
    wanted = {
        resource.RLIMIT_CPU: cpu,
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_FSIZE: file_size,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NPROC: 0,  # does not bind root; the hook below does
        resource.RLIMIT_NOFILE: 32,
    }
    for name, value in wanted.items():
        try:
            resource.setrlimit(name, (value, value))
        except (ValueError, OSError):  # a lower limit is in force
            continue


def _hook(home: str) -> None:
    def inside(path: object) -> bool:
        if not isinstance(path, (str, bytes)):
            return False
        return os.path.abspath(os.fsdecode(path)).startswith(home + os.sep)

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event.startswith(_REFUSED):
            raise PermissionError(f"{event} is refused here")
        if event.startswith(_CHANGES) and not all(inside(item) for item in arguments[:1]):
            raise PermissionError(f"{event} is refused outside of the folder")
        if event == "open":
            path, _, flags = arguments
            changes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            if changes and not inside(path):
                raise PermissionError(f"open for writing is refused outside of the folder: {path!r}")

    sys.addaudithook(watch)


def main() -> None:
    head, _, program = sys.stdin.buffer.read().decode("utf-8").partition("\n")
    word, *numbers = head.split()
    out = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    _limit(*map(int, numbers))
    _hook(os.path.realpath(os.getcwd()))
    names: dict[str, object] = {"__name__": "__main__"}
    exec(compile(program, "<program>", "exec"), names)
    os.write(out, word.encode())


if __name__ == "__main__":
    main()
