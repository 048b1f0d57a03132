"""Drive a headless Chromium over its debugging pipe: no driver, no port, and no package beyond the browser itself."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from select import select
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
PATIENCE = 60.0  # seconds; a start on a busy machine takes several


def installed() -> str | None:
    """The browser's path, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One Chromium; `open` shows a page at a size, then `run`, `press` and `picture` work on it."""

    def __init__(self, profile: Path) -> None:
        command = installed()
        assert command is not None
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        flags = [*FLAGS, f"--user-data-dir={profile}", "about:blank"]
        # the browser reads its pipe at 3 and writes it at 4, whatever numbers ours have
        shell = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        with (profile.parent / "chromium.log").open("w") as log:
            self.process = subprocess.Popen(
                ["bash", "-c", shell, "bash", command, *flags],
                pass_fds=(theirs_in, theirs_out),
                stdout=log,
                stderr=log,
            )
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer = b""
        self._ids = itertools.count(1)
        self.events: list[dict[str, Any]] = []
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        self.process.kill()
        self.process.wait()
        os.close(self._to)
        os.close(self._from)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the DevTools protocol and its answer; events that come in between are kept."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        ends = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select([self._from], [], [], max(0.0, ends - time.monotonic()))
            chunk = os.read(self._from, 1 << 20) if ready else b""
            assert chunk, "Chromium ended or does not answer"
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def open(self, page: Path, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Show a page at a size in CSS pixels, as a phone below 600; what it logs and asks for is in `events`."""
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[scheme])
        self.call("Page.navigate", url=page.as_uri())
        ends = time.monotonic() + PATIENCE
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            assert time.monotonic() < ends
            self.run("0")

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key."""
        codes = {"Enter": 13, "Tab": 9, "ArrowRight": 39, "ArrowLeft": 37, "End": 35, "/": 191, " ": 32}
        words: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": codes[key]}
        typed = {"Enter": "\r", "/": "/", " ": " "}.get(key)
        if typed:
            self.call("Input.dispatchKeyEvent", type="keyDown", text=typed, **words)
        else:
            self.call("Input.dispatchKeyEvent", type="rawKeyDown", **words)
        self.call("Input.dispatchKeyEvent", type="keyUp", **words)

    def move(self, x: float, y: float) -> None:
        """Move the mouse."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def picture(self, file: Path, whole: bool = False) -> None:
        """A screenshot: what is in view, or the whole page."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, exceptions, and violations of the page's policy."""
        found = []
        for event in self.events:
            parameters = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(parameters["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """The addresses that the page asked for, itself left out."""
        sent = [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return list(sent[1:])
