"""Waiting in tests of real processes: for a condition, with a limit, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], what: str, limit_s: float = 10.0) -> None:
    """Return once `condition()` is true; fail with `what` if it is not after `limit_s`."""
    limit = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > limit:
            raise AssertionError(f"after {limit_s} s still not: {what}")
        time.sleep(0.002)
