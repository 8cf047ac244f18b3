"""py-spy beside the ranks of a run: a profile of each, with the compiled frames."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from shrimpmx.errors import InputError

if TYPE_CHECKING:
    import subprocess

# How long py-spy has to write what it saw once its process has ended, s.
WRITE_LIMIT_S = 30.0
RATE_HZ = "200"


def py_spy() -> str:
    """The program's path, also where its environment is not activated; InputError if absent."""
    import shutil  # not for programs without a profile

    places = os.pathsep.join([os.environ.get("PATH", ""), str(Path(sys.executable).parent)])
    found = shutil.which("py-spy", path=places)
    if found is None:
        raise InputError("--profile needs py-spy, which is not installed: pip install py-spy")
    return found


class Profiles:
    """Profiles in `directory`, one per process, in the format of speedscope."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: dict[str, subprocess.Popen[str]] = {}

    def begin(self, name: str, pid: int) -> None:
        """Profile a process until it ends."""
        place = self._directory / f"{name}.speedscope.json"
        import subprocess  # few runs are profiled

        options = ["--native", "--rate", RATE_HZ, "--format", "speedscope", "--output", str(place)]
        self._running[name] = subprocess.Popen(
            [py_spy(), "record", *options, "--pid", str(pid)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C ends the ranks, and it with them
        )

    def finish(self) -> list[str]:
        """Wait until they are written, all processes having ended; what went wrong."""
        import subprocess

        until = time.monotonic() + WRITE_LIMIT_S
        problems = []
        for name, process in self._running.items():
            try:
                _, said = process.communicate(timeout=max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                _, said = process.communicate()
                said += f"it did not end within {WRITE_LIMIT_S:g} s"
            if process.returncode != 0:
                last = (said.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
                problems.append(f"py-spy did not profile {name}: {last}")
        self._running.clear()
        return problems
