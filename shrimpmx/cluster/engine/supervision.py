"""What surrounds a run of processes: leftovers, interrupts, and limits of this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

from shrimpmx.cluster.engine.children import Children
from shrimpmx.cluster.engine.ending import NAMES, FirstInterrupt, signal_of, what_interrupted
from shrimpmx.cluster.engine.engine import names_words
from shrimpmx.cluster.engine.leftovers import find_leftovers, remove_leftovers
from shrimpmx.cluster.engine.notes import note
from shrimpmx.cluster.rank.signals import ENDING_SIGNALS
from shrimpmx.errors import AgentError, InputError, InterruptedRunError, MachineError

# -- Signals to the launcher are for the programs of its ranks: they get each one, once.
#
# Every process of such a run has a process group of its own. Signals of a terminal or a caller to
# the launcher's group reach them through the launcher only. A program that reads from the terminal
# has to stay in that group: then the terminal's signals reach it without the launcher.

# They are passed on, and end nothing here.
PASSED_SIGNALS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)
# A terminal sends them to a whole group.
TERMINAL_SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGTSTP)
# A caller that signals the launcher and its group sends one signal, which comes twice (ours).
SAME_S = 0.3
# After so long `say` names the ranks still running (ours).
TELL_S = 1.0


class Forwarding:
    """Passes signals on to `programs`, named processes among the `children`.

    The first signal that ends a run gives programs `grace_s` to end by themselves; the second one,
    or the end of that time, ends the run.
    """

    def __init__(
        self,
        children: Children,
        programs: dict[int, str],
        say: Callable[[str], None],
        grace_s: float,
    ) -> None:
        self._children, self._programs = children, programs
        self._say, self._grace_s = say, grace_s
        self._before: dict[signal.Signals, Any] = {}
        self._came_s = 0.0
        self._is_told = False
        self.ending: signal.Signals | None = None

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Signals are passed on from now on. For the main thread."""
        handlers = dict.fromkeys(ENDING_SIGNALS, self._end)
        handlers |= dict.fromkeys(PASSED_SIGNALS, self._pass)
        handlers[signal.SIGTSTP] = self._stop
        for number, handler in handlers.items() if self._programs else ():
            before = signal.getsignal(number)
            # One that ends this process without a word, or is ignored, stays so.
            if callable(before) or (number not in ENDING_SIGNALS and before == signal.SIG_DFL):
                self._before[number] = signal.signal(number, handler)
        try:
            yield
        finally:
            for number, before in self._before.items():
                signal.signal(number, before)

    def look(self, now_s: float) -> None:
        """End the run, as its handler before this does, once programs have ended or had their time
        to.
        """
        if self.ending is None:
            return
        left = [name for index, name in self._programs.items() if index in self._running()]
        name = NAMES[self.ending].partition(":")[0]
        if left and now_s < self._came_s + self._grace_s:
            if now_s >= self._came_s + TELL_S and not self._is_told:
                self._is_told = True
                have = "has" if len(left) == 1 else "have"
                self._say(
                    f"shrimpmx: {names_words(left)} {have} {self._grace_s:g} s to end after "
                    f"{name}; another {name} ends the run at once"
                )
            return
        if left:
            self._say(
                f"shrimpmx: {names_words(left)} did not end within {self._grace_s:g} s of {name}, "
                "so the run ends (--grace gives them longer)"
            )
        self.give_up()

    def give_up(self) -> None:
        """End the run for the signal that came."""
        number, self.ending = self.ending, None
        if number is not None:
            self._before[number](number, None)

    def postpone(self, late_s: float) -> None:
        """The run has stood still for so long."""
        self._came_s += late_s

    def _running(self) -> Sequence[int]:
        return [index for index in range(len(self._children)) if index not in self._children.exited]

    def _end(self, number: int, frame: FrameType | None) -> None:
        now_s = time.monotonic()
        if self.ending is not None and now_s < self._came_s + SAME_S:
            return
        if self.ending is not None or max(self._programs) >= len(self._children):
            self._before[signal.Signals(number)](number, frame)
            return
        self._send(signal.Signals(number), self._programs)
        self.ending, self._came_s = signal.Signals(number), now_s

    def _pass(self, number: int, frame: FrameType | None) -> None:
        # What stopped with the launcher goes on with it.
        to_all = number == signal.SIGCONT
        self._send(signal.Signals(number), self._running() if to_all else self._programs)
        before = self._before[signal.Signals(number)]
        if callable(before):
            before(number, frame)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._send(signal.SIGTSTP, self._running())
        os.kill(os.getpid(), signal.SIGSTOP)

    def _send(self, number: signal.Signals, indices: Sequence[int] | dict[int, str]) -> None:
        running = self._running()
        by_terminal = number in TERMINAL_SIGNALS and _is_in_foreground()
        for index in indices:
            if index in running:
                self._children.signal_group(index, number, by_terminal)


def _is_in_foreground() -> bool:
    """Whether the terminal at the standard input sends this process its signals."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


@contextlib.contextmanager
def limited_to(cpus: Sequence[int]) -> Iterator[None]:
    """Let this process and its children use `cpus` only; empty: all that it may use."""
    before = os.sched_getaffinity(0)
    if cpus:
        os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def supervision() -> Iterator[None]:
    """This process supervises a run: leftovers of dead runs are removed first, and the first
    interrupt ends it, as InterruptedRunError. MachineError if there is no room for it.
    """
    if threading.current_thread() is not threading.main_thread():
        raise InputError(
            "start a cluster from Python's main thread: processes end with the thread that starts "
            "them"
        )
    found = find_leftovers()
    if found:
        note("removing leftovers of dead runs: %s", found.describe())
        remove_leftovers(found)
    try:
        # Below, whatever keeps an error must not keep the run's memory with it.
        with FirstInterrupt():
            yield
    except KeyboardInterrupt as interrupt:
        _clear_frames(interrupt)
        raise InterruptedRunError(
            f"interrupted by {what_interrupted(interrupt)}", signal_of(interrupt)
        ) from None
    except BrokenPipeError:  # what was printed before, which a fork flushes, has no reader
        raise
    except OSError as error:
        raise MachineError(
            f"the run could not be set up: {error.strerror or error}; `ulimit -a` shows the "
            "limits of this process, `shrimpmx doctor` what this machine can do"
        ) from None
    except AgentError as error:
        _clear_frames(error)
        raise


def _clear_frames(error: BaseException) -> None:
    import traceback  # most runs succeed

    traceback.clear_frames(error.__traceback__)
