"""Cores: affinity, scheduling class, limits, names, death with the parent."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.conditions import wait_until

from shrimpmx.errors import InputError
from shrimpmx.native import cores

RLIMIT_RTTIME = 15


def status_of_child(function: Callable[[], int]) -> int:
    """Run `function` in a fork, so that this process stays as it is, and give its result."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = function()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_child(function: Callable[[], object]) -> int:
    """The same for a function that is to return something true: 0 if it did."""
    return status_of_child(lambda: 0 if function() else 2)


def test_pinning_binds_to_just_those_cpus() -> None:
    last = max(os.sched_getaffinity(0))

    def pinned() -> bool:
        cores.pin([last])
        return os.sched_getaffinity(0) == {last}

    assert in_child(pinned) == 0


@pytest.mark.parametrize(
    ("cpus", "named"),
    [([99999], "99999"), ([-1], "-1"), ([], r"\(none\)"), ([0, 99999], "0, 99999")],
)
def test_a_cpu_that_is_not_there_is_named(cpus: list[int], named: str) -> None:
    before = os.sched_getaffinity(0)
    with pytest.raises(InputError, match=f"cannot run on CPU {named}: this machine has"):
        cores.pin(cpus)
    assert os.sched_getaffinity(0) == before


def test_real_time_is_granted_with_a_limit_or_not_at_all() -> None:
    permitted, _ = cores.realtime_permitted()
    hard = resource.getrlimit(RLIMIT_RTTIME)[1]
    if hard == resource.RLIM_INFINITY:
        hard = 2**63

    def granted() -> bool:
        priority = cores.set_realtime(50)
        limits = resource.getrlimit(RLIMIT_RTTIME)
        if not permitted:
            return priority == 0 and os.sched_getscheduler(0) == os.SCHED_OTHER
        return (
            priority > 0
            and os.sched_getscheduler(0) == os.SCHED_FIFO
            and os.sched_getparam(0).sched_priority == priority
            and limits == (min(5_000_000, hard), min(6_000_000, hard))
        )

    assert in_child(granted) == 0


@pytest.mark.skipif(not cores.realtime_permitted()[0], reason="no right to real-time priority")
def test_a_real_time_process_ends_that_never_sleeps_though_its_parent_ignored_the_signal() -> None:
    def busy() -> int:
        signal.signal(signal.SIGXCPU, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGXCPU])
        cores.set_realtime(1, limit_ns=10_000_000)
        until_s = time.process_time() + 0.3
        while time.process_time() < until_s:
            pass
        return 0

    assert status_of_child(busy) == -signal.SIGXCPU


def test_without_the_right_a_process_stays_normal_and_says_why() -> None:
    def refused() -> bool:
        if os.getuid() == 0:
            os.setresuid(65534, 65534, 65534)  # unprivileged; takes the capabilities too
        resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
        permitted, reason = cores.realtime_permitted()
        return (
            not permitted
            and "RLIMIT_RTPRIO is 0" in reason
            and cores.set_realtime(50) == 0
            and os.sched_getscheduler(0) == os.SCHED_OTHER
        )

    assert in_child(refused) == 0


def test_without_the_right_no_higher_priority_is_permitted_and_why() -> None:
    def refused() -> bool:
        if os.getuid() == 0:
            os.setresuid(65534, 65534, 65534)
        resource.setrlimit(resource.RLIMIT_NICE, (0, 0))
        before = os.getpriority(os.PRIO_PROCESS, 0)
        permitted, reason = cores.niceness_permitted(-20)
        own = os.getpriority(os.PRIO_PROCESS, 0)
        return not permitted and "no right to niceness -20" in reason and own == before

    assert in_child(refused) == 0


def test_to_ask_for_a_niceness_leaves_the_own_one_as_it_is() -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert cores.niceness_permitted(19)[0]
    assert os.getpriority(os.PRIO_PROCESS, 0) == own


def test_a_low_limit_gives_a_low_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    # A kernel that grants up to 3: not every machine lets a test set itself this limit.
    real_limit = resource.getrlimit

    def limit(which: int) -> tuple[int, int]:
        return (3, 3) if which == resource.RLIMIT_RTPRIO else real_limit(which)

    def grant(pid: int, policy: int, parameters: os.sched_param) -> None:
        if parameters.sched_priority > 3:
            raise PermissionError

    monkeypatch.setattr(resource, "getrlimit", limit)
    monkeypatch.setattr(os, "sched_setscheduler", grant)
    assert in_child(lambda: cores.set_realtime(50) == 3) == 0
    assert in_child(lambda: cores.set_realtime(2) == 2) == 0


@pytest.mark.parametrize("priority", [0, 100, -1])
def test_a_priority_out_of_range_is_an_input_error(priority: int) -> None:
    with pytest.raises(InputError, match="1 to 99"):
        cores.set_realtime(priority)


def test_the_idle_class() -> None:
    def idle() -> bool:
        cores.set_idle()
        return os.sched_getscheduler(0) == os.SCHED_IDLE

    assert in_child(idle) == 0


def test_timer_slack_is_kept_by_the_kernel() -> None:
    def slack() -> bool:
        cores.set_timer_slack(1234)
        return cores.timer_slack() == 1234

    assert in_child(slack) == 0
    with pytest.raises(InputError, match="at least 1 ns, not 0"):
        cores.set_timer_slack(0)


def test_a_name_is_cut_to_what_the_kernel_keeps() -> None:
    def named() -> bool:
        cores.set_process_name("node0.irq3-and-more")
        return Path("/proc/self/comm").read_text() == "node0.irq3-and-\n"

    assert in_child(named) == 0


def test_start_ticks_are_those_of_the_process_and_none_when_it_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    mine, others = cores.start_ticks(os.getpid()), cores.start_ticks(child.pid)
    assert mine is not None
    assert others is not None
    assert others >= mine
    child.communicate()
    assert cores.start_ticks(child.pid) is None


def test_start_ticks_survive_a_name_with_brackets() -> None:
    def odd_name() -> bool:
        before = cores.start_ticks(os.getpid())
        cores.set_process_name("a) R 1 (b")
        return cores.start_ticks(os.getpid()) == before

    assert in_child(odd_name) == 0


def test_who_dies_with_its_parent_does() -> None:
    reader, writer = os.pipe()
    parent = os.fork()
    if parent == 0:
        own_pid = os.getpid()
        if os.fork() == 0:
            cores.die_with_parent(own_pid)
            os.write(writer, str(os.getpid()).encode())
            while True:
                signal.pause()
        while True:
            signal.pause()
    grandchild = int(os.read(reader, 20))
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    wait_until(lambda: cores.start_ticks(grandchild) is None, "the grandchild is dead")
    os.close(reader)
    os.close(writer)


def test_who_comes_too_late_to_its_parent_dies_at_once() -> None:
    def orphan() -> bool:
        cores.die_with_parent(os.getppid() + 1)  # not the parent: it "has died" already
        return True

    assert in_child(orphan) == -signal.SIGKILL


SLICES = pytest.mark.skipif(
    not cores.time_slices_settable(), reason="this kernel gives all processes the same time slice"
)


@SLICES
@pytest.mark.parametrize("slice_ns", [100_000, 3_000_000, 100_000_000])
def test_a_time_slice_is_granted_and_the_niceness_stays(slice_ns: int) -> None:
    def granted() -> bool:
        niceness = os.nice(3)
        return (
            cores.set_time_slice(slice_ns) == cores.time_slice() == cores.time_slice(os.getpid())
            and cores.time_slice() == slice_ns
            and os.getpriority(os.PRIO_PROCESS, 0) == niceness
            and os.sched_getscheduler(0) == os.SCHED_OTHER
        )

    assert in_child(granted) == 0


@SLICES
def test_a_time_slice_out_of_range_is_told_by_what_is_granted() -> None:
    def bounded() -> bool:
        return cores.set_time_slice(1) == 100_000 and cores.set_time_slice(10**9) == 100_000_000

    assert in_child(bounded) == 0


def test_to_ask_for_time_slices_leaves_the_own_one_as_it_is() -> None:
    before = cores.time_slice()
    cores.time_slices_settable()
    assert cores.time_slice() == before


def test_of_no_process_there_is_no_time_slice() -> None:
    assert cores.time_slice(2**22 + 1) == 0  # beyond the kernel's largest pid
