"""Makes a process one of a run: its CPU, priority and stack dumps."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import sys

from shrimpmx.native import notify
from shrimpmx.native.cores import (
    pin,
    set_process_name,
    set_realtime,
    set_time_slice,
    set_timer_slack,
)
from shrimpmx.native.records import TYPE_CHECKING
from shrimpmx.shared.control import Control

if TYPE_CHECKING:
    from pathlib import Path


def stack_file(directory: Path, process: str) -> Path:
    """Where a process's stack goes when the supervisor asks for it."""
    return directory / f"{process}.stack"


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

    from shrimpmx.cluster.rank.signals import DUMP_SIGNAL

    path = stack_file(Path(directory), name)
    # It stays open for the process's life, as faulthandler writes to its descriptor.
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        faulthandler.register(DUMP_SIGNAL, file=descriptor, all_threads=True)
