"""Records for a run's log. Most programs run without one, and start without Python's logging."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

# Its name.
LOGGER = "shrimpmx.cluster"


class _State:
    unlogged = False


def note(text: str, *values: object) -> None:
    """For a log, if something keeps one."""
    if "logging" in sys.modules:
        import logging

        logging.getLogger(LOGGER).info(text, *values)


def note_error(text: str, *values: object) -> None:
    """For a log; without one it goes to the terminal."""
    if not _State.unlogged:
        import logging

        logging.getLogger(LOGGER).error(text, *values)


@contextlib.contextmanager
def unlogged() -> Iterator[None]:
    """What is noted goes nowhere, instead of to the terminal."""
    _State.unlogged = True
    try:
        yield
    finally:
        _State.unlogged = False
