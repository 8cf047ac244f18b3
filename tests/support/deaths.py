"""Processes that die while they hold something that others need."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable

from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.node import Node
from shrimpmx.shared.sizes import ENDPOINT_DESCRIPTOR_BYTES
from support.host_node import HostNode

LOCK_AT = 64  # in struct endpoint_descriptor


def in_child(work: Callable[[], object]) -> int:
    """Fork a process that works, then kills itself; returns its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    return pid


def lock_of(node: Node, layout: NodeLayout, endpoint: int = 0) -> ctypes.Array[ctypes.c_char]:
    """An endpoint's lock as it lies in memory."""
    place = layout.endpoints_offset + endpoint * ENDPOINT_DESCRIPTOR_BYTES + LOCK_AT
    return (ctypes.c_char * 48).from_buffer(node.segment.view(), place)


def take_lock(node: Node, layout: NodeLayout, endpoint: int = 0) -> int:
    """Take an endpoint's lock as a handler does; 0 or an errno."""
    return int(ctypes.CDLL(None).pthread_mutex_lock(lock_of(node, layout, endpoint)))


def give_lock(node: Node, layout: NodeLayout, endpoint: int = 0) -> None:
    """Give an endpoint's lock back."""
    ctypes.CDLL(None).pthread_mutex_unlock(lock_of(node, layout, endpoint))


def die_holding_the_lock(host: HostNode, endpoint: int = 0) -> None:
    """A process takes the endpoint's lock, and is killed."""

    def work() -> None:
        os._exit(1) if take_lock(host.node, host.layout, endpoint) else None

    _, status = os.waitpid(in_child(work), 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


def stop_holding_the_lock(host: HostNode, endpoint: int = 0) -> int:
    """A process takes the endpoint's lock, and is stopped; its pid."""

    def work() -> None:
        taken = take_lock(host.node, host.layout, endpoint) == 0
        os.kill(os.getpid(), signal.SIGSTOP) if taken else os._exit(1)

    pid = in_child(work)
    _, status = os.waitpid(pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    return pid
