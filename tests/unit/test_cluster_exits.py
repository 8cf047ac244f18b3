"""How processes of a run end: what is known of them before they are reaped, and when they are."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
from multiprocessing.context import ForkProcess
from types import SimpleNamespace
from typing import Any

import pytest

from shrimpmx.cluster.engine import exits
from shrimpmx.cluster.engine.children import Children
from shrimpmx.cluster.engine.exits import end_within, exit_code_of, how_it_ended, reap


def started(how: int) -> tuple[ForkProcess, int]:
    """A process that ends with this exit code, or by this signal if it is negative."""

    def main() -> None:
        os._exit(how) if how >= 0 else os.kill(os.getpid(), -how)

    process = multiprocessing.get_context("fork").Process(target=main)
    process.start()
    assert process.pid is not None
    return process, os.pidfd_open(process.pid)


@pytest.mark.parametrize("how", [0, 3, -signal.SIGKILL])
def test_the_exit_code_is_known_before_and_after_the_process_is_reaped(how: int) -> None:
    process, pidfd = started(how)
    os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOWAIT)
    assert exit_code_of(process, pidfd) == how
    assert os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOWAIT) is not None, "a zombie still"
    process.join()
    assert exit_code_of(process, pidfd) == how
    os.close(pidfd)


def test_a_child_without_a_pidfd_is_ended_again(monkeypatch: pytest.MonkeyPatch) -> None:
    process, pidfd = started(-signal.SIGSTOP)

    def none_left(_pid: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    children = Children(SimpleNamespace(processes=()))  # type: ignore[arg-type]
    children.expect(1)
    with monkeypatch.context() as full:
        full.setattr(os, "pidfd_open", none_left)
        with pytest.raises(OSError, match="Too many open files"):
            children.put(0, process)
    assert end_within([pidfd], 0)
    assert (children.pids(), children.pidfds, children.exited) == ([0], [-1], {0})
    os.close(pidfd)


def test_a_process_that_runs_has_none() -> None:
    process, pidfd = started(-signal.SIGSTOP)
    assert exit_code_of(process, pidfd) is None
    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    reap([process], [pidfd])
    os.close(pidfd)


def test_whether_all_end_within_a_time() -> None:
    stopped, runs = started(-signal.SIGSTOP)
    ended, over = started(0)
    assert end_within([over], 60)
    assert not end_within([over, runs], 0.05)
    signal.pidfd_send_signal(runs, signal.SIGKILL)
    assert end_within([over, runs], 60)
    reap([stopped, ended], [runs, over])
    for pidfd in (runs, over):
        os.close(pidfd)


def test_none_is_reaped_before_all_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Ended:
        def join(self) -> None:
            calls.append("join")

        def close(self) -> None:
            calls.append("close")

    def waitid(_kind: int, pidfd: int, options: int) -> None:
        assert options & os.WNOWAIT
        calls.append(f"wait {pidfd}")

    monkeypatch.setattr(exits.os, "waitid", waitid)
    members: Any = [Ended(), Ended()]
    reap(members, [7, 8])
    assert calls == ["wait 7", "wait 8", "join", "close", "join", "close"]


def test_an_end_in_words() -> None:
    assert how_it_ended(-signal.SIGSEGV, worked=False) == "was killed by SIGSEGV"
    assert how_it_ended(-99, worked=False) == "was killed by signal 99"
    assert how_it_ended(3, worked=True) == "ended after its work with exit code 3"
