"""Logs of a run: one file beside its results, written by all of its processes.

Info per run, debug per object, packets only in the binary trace. Processes hand their
records to the supervisor's through multiprocessing-logging.
"""

from __future__ import annotations

import gc
import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from shrimpmx.errors import MachineError
from shrimpmx.native.files import open_to_append
from shrimpmx.native.streams import shown

if TYPE_CHECKING:
    from multiprocessing_logging import MultiProcessingHandler

LOGGER = logging.getLogger("shrimpmx")
FILE_NAME = "shrimpmx.log"
# As the library waits for records that are under way.
_LAST_RECORDS_S = 5.0


def _check_locks() -> None:
    """The queue of records needs semaphores, which live in /dev/shm; MachineError without them."""
    import multiprocessing  # most programs' runs have no log

    try:
        multiprocessing.Lock()
    except OSError as error:
        raise MachineError(
            f"no semaphore can be made in /dev/shm: {error.strerror}; "
            "`shrimpmx clean` removes leftovers"
        ) from None


class _LogFile(logging.FileHandler):
    """A log that a full disk cuts short: the run goes on, and the terminal stays the user's."""

    def _open(self) -> TextIOWrapper:
        return open(open_to_append(Path(self.baseFilename)), "a", encoding=self.encoding)

    def emit(self, record: logging.LogRecord | None) -> None:
        """Write it; None only wakes the thread that writes."""
        if record is not None:
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Lose the record."""

    def close(self) -> None:
        """Close it, with what it could not take."""
        with suppress(OSError):
            super().close()


class _Shown(logging.Formatter):
    """Records with texts of programs as shown() has them."""

    def format(self, record: logging.LogRecord) -> str:
        """The record, in lines."""
        return shown(super().format(record))


@contextmanager
def _written_by_all(handler: logging.Handler) -> Iterator[None]:
    """The processes that are forked meanwhile write to the logger's `handler` as well; others that
    the logger has are their owner's.
    """
    # Loaded here: it would delay the start of a run without a log.
    from multiprocessing_logging import MultiProcessingHandler

    try:
        wrapped = MultiProcessingHandler("log", sub_handler=handler)
    except RuntimeError as error:
        # It has no thread. What there is of it must not live to be closed when the process ends.
        traceback.clear_frames(error.__traceback__)
        gc.collect()
        raise
    LOGGER.removeHandler(handler)
    LOGGER.addHandler(wrapped)
    # A process that cannot hand its records over, without a thread say, loses them as well.
    wrapped.handleError = handler.handleError
    try:
        yield
    finally:
        LOGGER.removeHandler(wrapped)
        _close(wrapped)


def _close(wrapped: MultiProcessingHandler) -> None:
    """As its own close(), whose thread looks for the end only five times a second, or at a record:
    this gives it one.
    """
    wrapped._is_closed = True
    with suppress(RuntimeError):  # no thread to send it
        wrapped.queue.put(None)
    wrapped._receive_thread.join(_LAST_RECORDS_S)
    wrapped.sub_handler.close()
    logging.Handler.close(wrapped)


@contextmanager
def run_log(directory: Path, level: int = logging.INFO, *, forks: bool = True) -> Iterator[Path]:
    """Write the log of all runs inside the block to `directory`/shrimpmx.log.

    Open it once for a whole sweep: where processes that are forked inside write to it, closing
    waits for records that are under way. MachineError if it cannot be made.
    """
    if forks:
        _check_locks()
    path = directory / FILE_NAME
    try:
        handler = _LogFile(path, encoding="utf-8")
    except OSError as error:
        raise MachineError(f"{path} cannot be written: {error.strerror}") from None
    form = "%(asctime)s.%(msecs)03d %(levelname)-7s %(processName)s %(name)s: %(message)s"
    handler.setFormatter(_Shown(form, "%Y-%m-%d %H:%M:%S"))
    before, propagated = LOGGER.level, LOGGER.propagate
    LOGGER.setLevel(level)
    LOGGER.propagate = False
    LOGGER.addHandler(handler)
    try:
        with _written_by_all(handler) if forks else nullcontext():
            yield path
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(before)
        LOGGER.propagate = propagated


@contextmanager
def no_log() -> Iterator[None]:
    """Records for a log go nowhere, instead of to the terminal."""
    nowhere = logging.NullHandler()
    LOGGER.addHandler(nowhere)
    try:
        yield
    finally:
        LOGGER.removeHandler(nowhere)
