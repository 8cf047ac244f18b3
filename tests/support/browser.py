"""A real Chromium, driven through its own pipe: pages are opened, looked at, and used."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from support.conditions import patient

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"),
    *("--disable-background-networking", "--no-first-run"),
)


class Page:
    """One page. `said`: what its scripts wrote, threw or were refused; `loaded`: every address that
    it asked for.
    """

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._left = b""
        self._number = 0
        self._session: str | None = None
        self.said: list[str] = []
        self.loaded: list[str] = []
        self._events: list[str] = []
        self._traced: list[dict[str, Any]] = []
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        attached = self.do("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.do(f"{domain}.enable")

    def do(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of the DevTools protocol; its result."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            command["sessionId"] = self._session
        os.write(self._to, json.dumps(command).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            more = os.read(self._from, 1 << 20)
            assert more, "the browser has ended"
            self._left += more
        line, _, self._left = self._left.partition(b"\0")
        return json.loads(line)

    def _note(self, message: dict[str, Any]) -> None:
        method, params = message.get("method", ""), message.get("params", {})
        self._events.append(method)
        if method == "Network.requestWillBeSent":
            self.loaded.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.said.append(json.dumps(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.said.append(json.dumps(params["args"]))
        elif method == "Log.entryAdded":
            self.said.append(params["entry"]["text"])
        elif method == "Tracing.dataCollected":
            self._traced += params["value"]

    def open(self, address: str, width: int = 1280, *, dark: bool = False) -> None:
        """Open a page in a window so wide."""
        self.size(width)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.do("Emulation.setEmulatedMedia", features=scheme)
        self._events.clear()
        self.do("Page.navigate", url=address)
        while "Page.loadEventFired" not in self._events:
            self._note(self._next())

    def size(self, width: int, height: int = 900) -> None:
        """Make the window so wide."""
        self.do(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )

    def run(self, script: str) -> Any:
        """The value of an expression in the page, awaited if it is a promise."""
        found = self.do(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def traced(self, script: str) -> list[dict[str, Any]]:
        """The events of the browser's own trace while an expression is awaited."""
        self._traced.clear()
        self._events.clear()
        self.do("Tracing.start", categories="devtools.timeline", transferMode="ReportEvents")
        self.run(script)
        self.do("Tracing.end")
        while "Tracing.tracingComplete" not in self._events:
            self._note(self._next())
        return self._traced

    def until(self, script: str) -> Any:
        """Wait until an expression is true; its value."""
        return self.run(
            f"new Promise((done) => {{ const look = () => {{ const found = ({script});"
            " if (found) done(found); else requestAnimationFrame(look); }; look(); })"
        )

    def press(self, key: str) -> None:
        """Press a key where the focus is."""
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            given = text if kind == "keyDown" else {}
            self.do("Input.dispatchKeyEvent", type=kind, key=key, **given)

    def mouse(self, kind: str, x: float, y: float) -> None:
        """`mouseMoved`, `mousePressed` or `mouseReleased` at a place of the window."""
        button = "none" if kind == "mouseMoved" else "left"
        self.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=1)

    def touch(self, *moments: list[tuple[float, float]]) -> None:
        """Put down fingers, move them on to the places of each further moment, and lift them."""
        for moment, places in enumerate(moments):
            kind = "touchMove" if moment else "touchStart"
            points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
            self.do("Input.dispatchTouchEvent", type=kind, touchPoints=points)
        self.do("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def click(self, selector: str) -> None:
        """Click an element as a script does."""
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Keep what the page looks like."""
        shot = self.do("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))


def _high(descriptor: int) -> int:
    """The same under a number above those that Chromium wants."""
    high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return high


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """A browser with one page, whose own files lie in `profile`; it has ended afterwards."""
    their_in, our_out = map(_high, os.pipe())
    our_in, their_out = map(_high, os.pipe())
    assert BROWSER is not None
    # Chromium reads from descriptor 3 and writes to 4.
    command = f'exec "$0" "$@" 3<&{their_in} 4>&{their_out} {their_in}<&- {their_out}>&-'
    # A socket of Chromium's stays in TMPDIR; the profile's path is too long for it.
    with TemporaryDirectory() as place:
        process = subprocess.Popen(
            ["bash", "-c", command, BROWSER, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(their_in, their_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": place},
        )
        os.close(their_in)
        os.close(their_out)
        try:
            yield Page(our_out, our_in)
        finally:
            os.close(our_out)
            os.close(our_in)
            process.terminate()
            process.wait(patient(20))
