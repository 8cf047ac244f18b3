"""Waiting in tests of real processes: for a condition, with a limit, never for a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

# Limits of the tests are longer by this factor, for a machine that is loaded or emulated.
PATIENCE = float(os.environ.get("SHRIMPMX_TEST_PATIENCE", "1"))
# What comes between two looks counts for so long at most.
LOOK_MAX_S = 0.1


def patient(limit_s: float) -> float:
    """How long to wait on this machine for what takes `limit_s` at most on an ordinary one."""
    return limit_s * PATIENCE


class Limit:
    """So many seconds in which this process runs: a machine that stands still takes all with it."""

    def __init__(self, limit_s: float) -> None:
        self._left_s = patient(limit_s)
        self._seen_s = time.monotonic()

    def is_over(self) -> bool:
        """Whether they have passed; to be asked again and again."""
        now_s = time.monotonic()
        self._left_s -= min(now_s - self._seen_s, LOOK_MAX_S)
        self._seen_s = now_s
        return self._left_s < 0


def wait_until(condition: Callable[[], object], what: str, limit_s: float = 30.0) -> None:
    """Return once `condition()` is true; fail with `what` if it is not after `limit_s`."""
    limit = Limit(limit_s)
    while not condition():
        if limit.is_over():
            raise AssertionError(f"after {limit_s} s still not: {what}")
        time.sleep(0.002)
