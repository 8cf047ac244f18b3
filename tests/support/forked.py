"""A question answered by a child, whatever it does to itself."""

from __future__ import annotations

import os
from collections.abc import Callable


def in_child(work: Callable[[], bool]) -> bool:
    """What `work` returns in a forked child; False as well if it raises."""
    pid = os.fork()
    if pid == 0:
        status = 2
        try:
            status = int(not work())
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
