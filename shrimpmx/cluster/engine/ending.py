"""Signals by which a user ends a run: Ctrl-C, SIGTERM, and SIGHUP when the terminal is closed.

They reach the whole process group, often more than once and at any moment. The supervisor
alone answers them, once: the first one ends the run, those that follow must not cut its
clean-up short.
"""

from __future__ import annotations

import contextlib
import functools
import signal
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from shrimpmx.cluster.engine.dropped import raising_again
from shrimpmx.cluster.rank.signals import ENDING_SIGNALS

NAMES = {
    signal.SIGINT: "Ctrl-C",
    signal.SIGTERM: "SIGTERM",
    signal.SIGHUP: "SIGHUP: its terminal was closed",
}


def what_interrupted(error: KeyboardInterrupt) -> str:
    """What the user did, for a sentence that begins with "interrupted by"."""
    return str(error) or NAMES[signal.SIGINT]


def signal_of(error: KeyboardInterrupt) -> int:
    """The number of the signal that the user ended a run by."""
    return next((number for number, name in NAMES.items() if name == str(error)), signal.SIGINT)


class EndingInterrupt(KeyboardInterrupt):
    """One of these signals, in a subclass: after a plain KeyboardInterrupt has passed through
    exec(), as of a dataclass, Python ends by SIGINT even if it was caught.
    """

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(NAMES[number])
        self.number = number


# After so long without an end another interrupt is heard: a `try` swallowed the first one.
PATIENCE_S = 5.0


class _Hold:
    """Whether interrupts are held back, and the call of the one that came meanwhile."""

    depth = 0
    late: Callable[[], None] | None = None


_hold = _Hold()


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold them back for a moment, so that none hits a process half made or half removed.

    Blocked they are for what is forked meanwhile. That alone does not hold them back here: with
    other threads (those of a log) the kernel gives them to one of these, and Python calls the
    handler in the main thread all the same; within a fork what it raises would be lost.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
    _hold.depth += 1
    try:
        yield
    finally:
        _hold.depth -= 1
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        late, _hold.late = _hold.late, None
        if late is not None:
            late()


class FirstInterrupt:
    """Raises EndingInterrupt for the first ending signal, and swallows those that follow.

    A context manager for the main thread. It takes over the signals in `also`, and those
    whose handler is a function of Python's already, and gives them back at its end; a signal
    that ends the process without a word, or is ignored, stays so. With `keep` it leaves them
    ignored: for a program that then only exits.
    """

    def __init__(self, also: tuple[signal.Signals, ...] = (), keep: bool = False) -> None:
        self.also = also
        self.keep = keep
        self.came = False
        self.raised: EndingInterrupt | None = None
        self._came_s = 0.0
        self._is_over = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> FirstInterrupt:
        for number in ENDING_SIGNALS:
            handler = signal.getsignal(number)
            # nohup, and a shell that starts a job in the background, have theirs ignored.
            if callable(handler) or (number in self.also and handler == signal.SIG_DFL):
                self._before[number] = handler
                signal.signal(number, self._interrupt)
        self._hook_before = sys.unraisablehook
        sys.unraisablehook = raising_again(self, self._hook_before)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = self.keep
        self.raised = None
        sys.unraisablehook = self._hook_before
        # A handler in Python would end with the interpreter, shortly before the process.
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_IGN if self.keep else handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if _hold.depth:
            _hold.late = functools.partial(self._interrupt, number, None)
            return
        now_s = time.monotonic()
        if self._is_over or (self.came and now_s - self._came_s < PATIENCE_S):
            return
        self.came, self._came_s = True, now_s
        handler = self._before[signal.Signals(number)]
        if not callable(handler) or handler is signal.default_int_handler:
            self.raised = EndingInterrupt(signal.Signals(number))
            raise self.raised
        handler(number, frame)
        self.came = False  # its owner took it and wants nothing ended
