"""Chromium for tests of pages: one tab, driven by the browser's own protocol over two pipes. It opens no port."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from .skips import cannot

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)  # fmt: skip


class Browser:
    """One tab. `events` are those that came while an answer was waited for."""

    def __init__(self, profile: Path) -> None:
        below, self.write = os.pipe()
        self.read, above = os.pipe()
        theirs, other = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (below, above))  # neither may be 3 or 4
        # The browser reads commands from 3 and writes answers to 4.
        line = f'exec "$@" 3<&{theirs} 4>&{other}'
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", line, "chromium", str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(theirs, other), stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (below, above, theirs, other):
            os.close(end)
        self.left, self.numbers, self.session = b"", count(1), ""
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self.left:
            part = os.read(self.read, 65536)
            assert part, "the browser ended"
            self.left += part
        text, _, self.left = self.left.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        """Send a command and return its result."""
        number = next(self.numbers)
        session = {"sessionId": self.session} if self.session else {}
        text = json.dumps({"id": number, "method": method, "params": params, **session})
        os.write(self.write, text.encode() + b"\0")
        while (message := self._message()).get("id") != number:
            self.events.append(message)
        assert "error" not in message, message
        result: dict[str, Any] = message["result"]
        return result

    def open(self, page: Path, width: int = 1280, height: int = 900) -> None:
        """Load a page, and wait until it is there."""
        self.resize(width, height)
        self.events.clear()
        self.ask("Page.navigate", url=page.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message())

    def resize(self, width: int, height: int = 900) -> None:
        """Give the window another size; no page is loaded anew."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def value(self, script: str) -> Any:
        """Run a script as a user would act, and return its value."""
        done = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def end(self) -> None:
        self.ask("Browser.close")
        self.process.wait(30)
        os.close(self.read)
        os.close(self.write)


def browsing(profile: Path) -> Iterator[Browser]:
    """Yield a browser that ends with the tests that have it as a fixture."""
    if CHROMIUM is None:
        cannot("no Chromium on this machine: tests/lab/packages.txt")
    found = Browser(profile)
    yield found
    found.end()
