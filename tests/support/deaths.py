"""Processes that die while they hold something that others need."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable

from support.host_node import HostNode

DESCRIPTOR_BYTES, LOCK_AT = 256, 64  # of layout.h


def in_child(work: Callable[[], object]) -> int:
    """Fork a process that works, then kills itself; returns its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    return pid


def die_holding_the_lock(host: HostNode, endpoint: int = 0) -> None:
    """A process takes the endpoint's lock as a handler does, and is killed."""
    memory = host.node.segment.view()
    place = host.layout.endpoints_offset + endpoint * DESCRIPTOR_BYTES + LOCK_AT
    lock = (ctypes.c_char * 48).from_buffer(memory, place)
    libc = ctypes.CDLL(None)

    def work() -> None:
        os._exit(1) if libc.pthread_mutex_lock(lock) else None

    _, status = os.waitpid(in_child(work), 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
