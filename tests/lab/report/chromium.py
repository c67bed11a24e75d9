"""A headless Chromium, driven over the DevTools protocol through two pipes."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome-headless-shell")
FETCHED = Path(sys.prefix) / "chromium"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
    "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--proxy-server=127.0.0.1:9", "--remote-debugging-pipe",
)  # fmt: skip
# The protocol's pipes are the descriptors 3 and 4 of the browser, which only the child may overwrite.
LAUNCH = (
    "import fcntl, os, sys; r, w = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3]); "
    "os.dup2(r, 3); os.dup2(w, 4); os.execv(sys.argv[3], sys.argv[3:])"
)


def find() -> str | None:
    """The Chromium that `make test` fetched, else one on PATH."""
    fetched = FETCHED / "chromium"
    return str(fetched) if fetched.exists() else next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """A browser with one page. `requests` and `problems` are what the page asked for and complained of."""

    def __init__(self, profile: Path) -> None:
        binary = find()
        assert binary is not None
        mine, theirs = os.pipe(), os.pipe()
        environment = dict(os.environ)
        if binary == str(FETCHED / "chromium"):
            environment["LD_LIBRARY_PATH"] = f"{FETCHED / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"
            environment["FONTCONFIG_FILE"] = str(FETCHED / "fonts.conf")
        command = [sys.executable, "-c", LAUNCH, str(mine[0]), str(theirs[1]), binary, *FLAGS]
        self.log = (profile / "chromium.log").open("wb")
        self.process = subprocess.Popen(
            [*command, f"--user-data-dir={profile / 'profile'}", "about:blank"],
            pass_fds=(mine[0], theirs[1]),
            env=environment,
            stdout=self.log,
            stderr=self.log,
        )
        os.close(mine[0])
        os.close(theirs[1])
        self.into, self.out = mine[1], theirs[0]
        self.buffer, self.last, self.session = b"", 0, ""
        self.requests: list[str] = []
        self.problems: list[str] = []
        self.loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self.session = ""
        self.call("Browser.close")
        self.process.wait(20)
        os.close(self.into)
        os.close(self.out)
        self.log.close()

    def open(self, path: Path) -> None:
        """Opens a file, and waits until it is loaded."""
        self.requests, self.problems, self.loaded = [], [], False
        self.call("Page.navigate", url=path.as_uri())
        deadline = time.monotonic() + 60
        while not self.loaded:
            self._note(self._read(deadline))

    def view(self, width: int, height: int = 900, *, dark: bool = False, phone: bool = False) -> None:
        """Sets the size of the window, and what the device says about colours."""
        scale = 2 if phone else 1
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": phone}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def evaluate(self, script: str) -> Any:
        """What a script returns, promises awaited."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def screenshot(self, *, whole: bool = True) -> bytes:
        """The page as PNG."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(found["data"])

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.into, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            found = self._read(deadline)
            if found.get("id") == self.last:
                assert "error" not in found, f"{method}: {found['error']}"
                return dict(found["result"])
            self._note(found)

    def _note(self, found: dict[str, Any]) -> None:
        method, told = found.get("method"), found.get("params", {})
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(str(told["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.problems.append(str(told["args"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.problems.append(told["entry"]["text"])

    def _read(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.out], [], [], max(deadline - time.monotonic(), 0))
            assert ready, "Chromium does not answer"
            piece = os.read(self.out, 1 << 20)
            assert piece, f"Chromium ended: {Path(self.log.name).read_text(errors='replace')[-2000:]}"
            self.buffer += piece
        message, _, self.buffer = self.buffer.partition(b"\0")
        return dict(json.loads(message))
