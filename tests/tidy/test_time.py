"""Ranks, libraries, workloads, strategies and agents reach time through the Host alone."""

from __future__ import annotations

import re
from pathlib import Path

from support.tree import PACKAGE, files, name

PARTS = {"shared", "wire", "link", "nic", "host", "wait", "mx", "vmmc", "sockets", "workloads"}
# Of `cluster`, what runs in the processes of agents and ranks; the rest is the supervisor's.
IN_PROCESSES = ("cluster/rank/", "cluster/nics/", "cluster/engine/runner.")
TIME = re.compile(
    r"\b(?:clock_now_ns|monotonic_now_ns|clock_gettime\w*|burn_ns|\w*nanosleep|futex_wait"
    r"|wait_slot_sleep|control\.now_ns|(?:perf\.|(?<!\.))usage(?:_of)?|getrusage|os\.times"
    r"|time\.(?:sleep|time|monotonic|perf_counter|process_time|thread_time)\w*)\("
)
# These wait for a lock that another thread or process holds for a moment.
LOOKS = re.compile(r"\b(?:sched_yield|cpu_pause)\(\)")
ITSELF = {
    "shrimpmx/shared/host.pyx",
    "shrimpmx/shared/host.pxd",
    "shrimpmx/shared/control.pyx",
    "shrimpmx/cluster/rank/baton.pyx",
}
LOCKS = {
    "shrimpmx/shared/heap.pyx",
    "shrimpmx/host/regions.h",
    "shrimpmx/mx/core.pyx",
    "shrimpmx/mx/lock.pyx",
    "shrimpmx/mx/endpoint.pyx",
}
DEAD_HOLDERS = {"shrimpmx/host/regions.h"}  # how long a lock's holder has been dead


def covered(path: Path) -> bool:
    inside = path.relative_to(PACKAGE)
    return inside.parts[0] in PARTS or str(inside).startswith(IN_PROCESSES)


def test_only_the_host_reads_the_clock_burns_waits_and_sleeps() -> None:
    wrong = []
    for path in files(".py", ".pyx", ".pxd", ".h", under="shrimpmx"):
        where = name(path)
        if not covered(path) or where in ITSELF:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.startswith("    int sched_yield()"):
                continue
            if (TIME.search(line) and where not in DEAD_HOLDERS) or (
                LOOKS.search(line) and where not in LOCKS
            ):
                wrong.append(f"{where}:{number}: {line.strip()}")
    assert wrong == []


def test_the_exceptions_are_still_needed() -> None:
    for where in sorted(ITSELF | LOCKS):
        text = (PACKAGE.parent / where).read_text()
        assert TIME.search(text) or LOOKS.search(text), where
