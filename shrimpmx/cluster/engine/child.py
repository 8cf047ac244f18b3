"""The child processes of a run. multiprocessing's take a twentieth of a program's start to load."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NoReturn


class ChildProcess:
    """A child of this process.

    `used` is what it took, its own children that it waited for included, once it has ended: as
    shrimpmx.native.perf.usage.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.used: dict[str, int] = {}
        self._exit_code: int | None = None

    @property
    def exitcode(self) -> int | None:
        """Its exit code, the negative number of the signal that killed it, or None: it runs."""
        return self._reap(os.WNOHANG)

    def join(self) -> None:
        """Wait until it has ended."""
        self._reap(0)

    def close(self) -> None:
        """Nothing is kept of it."""

    def _reap(self, options: int) -> int | None:
        if self._exit_code is not None:
            return self._exit_code
        pid, status, used = os.wait4(self.pid, options)
        if pid == 0:
            return None
        self._exit_code = os.waitstatus_to_exitcode(status)
        self.used = {
            "user_ns": round(used.ru_utime * 1e9),
            "system_ns": round(used.ru_stime * 1e9),
            "task_clock_ns": round((used.ru_utime + used.ru_stime) * 1e9),
            "voluntary_switches": used.ru_nvcsw,
            "involuntary_switches": used.ru_nivcsw,
            "minor_faults": used.ru_minflt,
            "major_faults": used.ru_majflt,
        }
        return self._exit_code


def forked(main: Callable[[], None]) -> ChildProcess:
    """A fork of this process, in which `main` runs."""
    flush_streams()
    pid = os.fork()
    if pid == 0:
        _live(main)
    return ChildProcess(pid)


def flush_streams() -> None:
    """Write what this process has printed."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _live(main: Callable[[], None]) -> NoReturn:
    """The child's life: nothing of the caller's may run in it, no clean-up and no flush."""
    code = 1
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)
