"""Waiting in tests of real processes: for a condition, with a limit, never for a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

# Limits of the tests are longer by this factor, for a machine that is loaded or emulated.
PATIENCE = float(os.environ.get("SHRIMPMX_TEST_PATIENCE", "1"))


def patient(limit_s: float) -> float:
    """How long to wait on this machine for what takes `limit_s` at most on an ordinary one."""
    return limit_s * PATIENCE


def wait_until(condition: Callable[[], object], what: str, limit_s: float = 10.0) -> None:
    """Return once `condition()` is true; fail with `what` if it is not after `limit_s`."""
    limit = time.monotonic() + patient(limit_s)
    while not condition():
        if time.monotonic() > limit:
            raise AssertionError(f"after {limit_s} s still not: {what}")
        time.sleep(0.002)
