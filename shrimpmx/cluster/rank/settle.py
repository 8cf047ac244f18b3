"""Makes a process one of a run: its signals, CPU, priority and stack dumps."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import signal
import sys
from typing import TYPE_CHECKING

from shrimpmx.native import notify
from shrimpmx.native.cores import (
    pin,
    set_process_name,
    set_realtime,
    set_time_slice,
    set_timer_slack,
)
from shrimpmx.shared.control import Control

if TYPE_CHECKING:
    from pathlib import Path

# The signals that end a run.
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# The supervisor asks for a stack with this signal: programs have others for their own use.
DUMP_SIGNAL = signal.SIGRTMIN + 1


def stack_file(directory: Path, process: str) -> Path:
    """Where a process's stack goes when the supervisor asks for it."""
    return directory / f"{process}.stack"


def leave_signals() -> None:
    """Leave Ctrl-C and a closed terminal to the supervisor."""
    # Both reach the whole group; the supervisor alone decides what becomes of it. SIGTERM ends
    # this process as any other: its sender may mean it alone.
    drop_handlers()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)


def reset_signals() -> None:
    """Restore a program's default signals; signals ignored on behalf of the supervisor's caller, as
    by nohup, stay ignored.
    """
    drop_handlers()
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python
        signal.signal(ignored, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)


def drop_handlers() -> None:
    """Drop the supervisor's handlers, inherited by the fork."""
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)


def settle(
    control: Control,
    runner: int,
    name: str,
    cpu: int,
    directory: Path | str,
    *,
    realtime: int = 0,
    niceness: int = 0,
    time_slice_ns: int = 0,
) -> int:
    """Make the calling process the one called `name`, of record `runner`.

    `directory` is the run's. Returns the real-time priority that the kernel granted.
    """
    # Killed processes leave no core file behind.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    set_process_name(name)
    _dump_stacks(directory, name)
    if not control.is_virtual:
        pin([cpu])
    set_timer_slack(1)
    if niceness:
        os.nice(niceness)
    if time_slice_ns:
        set_time_slice(time_slice_ns)
    # A simulation counts notifications, and sends no signal.
    control.register_process(runner, 0 if control.is_virtual else notify.default_signal())
    granted = set_realtime(realtime) if realtime else 0
    control.set_placement(runner, cpu, granted)
    return granted


def _dump_stacks(directory: Path | str, name: str) -> None:
    """Let DUMP_SIGNAL write the stacks of all threads to a file. Without the file this process is
    not asked for them: a limit leaves no room for it, or the program has no Python of its own.
    """
    if not sys.orig_argv:
        return
    from pathlib import Path

    path = stack_file(Path(directory), name)
    # It stays open for the process's life, as faulthandler writes to its descriptor.
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        faulthandler.register(DUMP_SIGNAL, file=descriptor, all_threads=True)
