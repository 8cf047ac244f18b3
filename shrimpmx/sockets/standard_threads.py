"""Threads of the standard library as user-level threads of a Scheduler.

A process has one thread of the system that may use its emulated sockets. While `patched` lasts,
what starts a threading.Thread starts a thread of the Scheduler that runs; where none runs it is
refused at once, in the thread that wanted it.
"""

from __future__ import annotations

import contextlib
import socketserver
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from shrimpmx.sockets.refusals import INSTEAD, refused
from shrimpmx.sockets.threads import Scheduler, Thread

if TYPE_CHECKING:
    from shrimpmx.sockets.network import Network

# How often a thread looks whether it is notified.
LOOK_NS = 100_000
ONE_THREAD = (
    "but only one system thread of a process may use emulated sockets; inside a thread of a "
    "Scheduler all new threads are user-level ones"
)


def running_scheduler(network: Network) -> Scheduler | None:
    """The scheduler of whose threads one is running."""
    owner = getattr(network.wait_hook, "__self__", None)
    return owner if isinstance(owner, Scheduler) and owner.current() is not None else None


def _check_server(network: Network, server: Any) -> None:
    """OSError for a server whose first client would need a refused call."""
    if isinstance(server, socketserver.ForkingMixIn):
        raise refused(
            f"{type(server).__name__} forks, and a child has no emulated sockets: use TCPServer, "
            "or ThreadingTCPServer in a thread of a Scheduler"
        )
    if isinstance(server, socketserver.ThreadingMixIn) and running_scheduler(network) is None:
        raise refused(f"{type(server).__name__} starts threads, {ONE_THREAD}")


def _check_thread(thread: threading.Thread, scheduler: Scheduler | None) -> Scheduler:
    """OSError for a thread that could not run."""
    if scheduler is None:
        raise refused(f"{thread.name} is a second thread, {ONE_THREAD}")
    # Workers of pools wait in compiled queues, where no other thread would run.
    package = str(getattr(vars(thread).get("_target"), "__module__", "")).partition(".")[0]
    if package in INSTEAD:
        raise refused(
            f"{package} needs system threads, and a rank has only user-level ones: "
            f"{INSTEAD[package]}"
        )
    return scheduler


@contextlib.contextmanager
def user_level_threads(network: Network) -> Iterator[None]:
    """Threads and what waits for a Condition, as events and queues do, go by the scheduler while
    the context lasts, and servers that need threads or forks are checked when they are made.
    """
    own: WeakKeyDictionary[threading.Thread, Thread] = WeakKeyDictionary()
    real_join, real_alive = threading.Thread.join, threading.Thread.is_alive
    real_wait, real_server = threading.Condition.wait, socketserver.BaseServer.__init__

    def start(thread: threading.Thread) -> None:
        if thread in own:
            raise RuntimeError("threads can only be started once")
        scheduler = _check_thread(thread, running_scheduler(network))
        own[thread] = scheduler.spawn(thread.run)

    def join(thread: threading.Thread, timeout: float | None = None) -> None:
        if thread not in own:
            real_join(thread, timeout)
        elif timeout is None:
            own[thread].join()
        else:
            _await(network, lambda: own[thread].done, timeout)

    def is_alive(thread: threading.Thread) -> bool:
        return not own[thread].done if thread in own else real_alive(thread)

    def wait(condition: Any, timeout: float | None = None) -> bool:
        if running_scheduler(network) is None:
            return real_wait(condition, timeout)
        return _wait(network, condition, timeout)

    def made(server: Any, *arguments: Any, **named: Any) -> None:
        _check_server(network, server)
        real_server(server, *arguments, **named)

    replaced: list[tuple[Any, str, Any]] = [
        (threading.Thread, "start", start),
        (threading.Thread, "join", join),
        (threading.Thread, "is_alive", is_alive),
        (threading.Condition, "wait", wait),
        (socketserver.BaseServer, "__init__", made),
    ]
    with contextlib.ExitStack() as undo:
        for owner, name, ours in replaced:
            undo.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, ours)
        yield


def _wait(network: Network, condition: Any, timeout: float | None) -> bool:
    """Condition.wait of a user-level thread, with the condition's own list of who waits."""
    waiter = threading.Lock()
    waiter.acquire()
    condition._waiters.append(waiter)
    held = condition._release_save()
    try:
        notified = _await(network, lambda: waiter.acquire(blocking=False), timeout)
    finally:
        condition._acquire_restore(held)
        if waiter in condition._waiters:
            condition._waiters.remove(waiter)
    return notified


def _await(network: Network, holds: Callable[[], bool], timeout: float | None) -> bool:
    """Let other threads run until it holds; False after `timeout` seconds."""
    scheduler = running_scheduler(network)
    assert scheduler is not None
    until_ns = None if timeout is None else network.now_ns() + int(timeout * 1e9)
    while not holds():
        if until_ns is not None and network.now_ns() >= until_ns:
            return False
        scheduler.sleep(LOOK_NS)
    return True
