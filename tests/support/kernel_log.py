"""Segmentation faults in the kernel's log, where it can be read: also of processes whose exit codes
no test sees, such as workers that crash after their work.
"""

from __future__ import annotations

import contextlib
import os
import re

LOG = "/dev/kmsg"
RECORD_BYTES = 8192
# Ranks crash on purpose; their supervisors tell. Tests crash processes by ctypes.
CRASH = re.compile(r"(?P<name>[\w.-]+)\[\d+\]: segfault at .* in (?P<where>[\w.-]+)\[")
ON_PURPOSE = re.compile(r"rank\d+")
PLACES = re.compile(r"libpython|python|\w+\.cpython-")


def crash_in(record: str) -> str | None:
    """The crash that a record of the log tells of, unless it is on purpose or not of Python."""
    found = CRASH.search(record)
    if found is None or ON_PURPOSE.fullmatch(found["name"]):
        return None
    is_ours = PLACES.match(found["where"]) and not found["where"].startswith("_ctypes.")
    return record[found.start() :].splitlines()[0] if is_ours else None


class KernelLog:
    """What the kernel logs from now on; nothing where its log cannot be read."""

    def __init__(self) -> None:
        self._file = -1
        with contextlib.suppress(OSError):
            self._file = os.open(LOG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._file, 0, os.SEEK_END)

    def crashes(self) -> list[str]:
        """The crashes since the last call."""
        found: list[str] = []
        while self._file >= 0:
            try:
                record = os.read(self._file, RECORD_BYTES)
            except BrokenPipeError:  # some were overwritten
                continue
            except OSError:
                break
            crash = crash_in(record.decode(errors="replace"))
            found += [crash] if crash else []
        return found

    def close(self) -> None:
        """Let it go."""
        if self._file >= 0:
            os.close(self._file)
