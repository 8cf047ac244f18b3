"""A descriptor that output goes to, without a wait for its reader."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import time
from collections import deque

# Between two looks at whether a reader that was slow takes more.
LOOK_S = 0.02


class Target:
    """A descriptor, and what its reader has not taken yet: `left` bytes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._parts: deque[memoryview] = deque()
        self._opened: int | None = None
        self._is_known = self._waits = False
        self.left = 0

    def fileno(self) -> int:
        """What to wait on."""
        return self._descriptor if self._opened is None else self._opened

    def add(self, data: bytes) -> None:
        """More to write."""
        if data:
            self._parts.append(memoryview(data))
            self.left += len(data)

    def discard(self) -> None:
        """Drop the bytes left."""
        self._parts.clear()
        self.left = 0

    def write(self) -> bool:
        """Write as much as is taken at once; whether all was. A reader may have stopped reading."""
        if self._parts and not self._is_known:
            self._open()
        with contextlib.suppress(BlockingIOError):
            while self._parts:
                written = self._put(self._parts[0])
                self.left -= written
                if written == len(self._parts[0]):
                    self._parts.popleft()
                else:
                    self._parts[0] = self._parts[0][written:]
        return not self._parts

    def write_all(self, patience_s: float) -> None:
        """Wait until all is taken, or its reader has taken nothing for so long."""
        left, until = self.left, time.monotonic() + patience_s
        while not self.write():
            now = time.monotonic()
            if self.left < left:
                left, until = self.left, now + patience_s
            if now >= until:
                return
            ready = select.poll()
            ready.register(self.fileno(), select.POLLOUT)
            ready.poll(LOOK_S * 1e3)

    def close(self) -> None:
        """Close the file opened to write; the descriptor stays open."""
        if self._opened is not None:
            os.close(self._opened)
            self._opened = None

    def _open(self) -> None:
        """Another descriptor of a terminal or a pipe, in which no write waits.

        A terminal with room for one byte is ready, and lets a longer write wait. O_NONBLOCK on the
        descriptor itself would be that of all processes that have it.
        """
        self._is_known = True
        kind = os.fstat(self._descriptor).st_mode
        may_wait = os.isatty(self._descriptor) or stat.S_ISFIFO(kind)
        self._waits = may_wait or stat.S_ISSOCK(kind)
        if may_wait:
            flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            with contextlib.suppress(OSError):  # another user's, or its reader has gone
                self._opened = os.open(f"/proc/self/fd/{self._descriptor}", flags)
                self._waits = False

    def _put(self, data: memoryview) -> int:
        if self._waits:
            ready = select.poll()
            ready.register(self._descriptor, select.POLLOUT)
            if not ready.poll(0):
                raise BlockingIOError
            data = data[: select.PIPE_BUF]  # a pipe with room takes so much without a wait
        return os.write(self.fileno(), data)
