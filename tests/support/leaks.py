"""What a test may leave behind: nothing. Taken before and after each test and compared."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import time
from dataclasses import dataclass, fields
from pathlib import Path

from shrimpmx.native.segment import parse_segment_name
from support.conditions import Limit

# Processes and segments of a killed run are gone within a second; a loaded machine gets more.
SETTLE_S = 5.0
PR_SET_CHILD_SUBREAPER = 36
RLIMIT_RTTIME = 15  # the resource module does not name it
# What a library of the system opens once and keeps.
KEPT = ("/libuuid/clock.txt",)
# By which a process dies of an error of its own.
CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT)

_crashed: set[str] = set()
_others: set[str] = set()  # segments of living runs of others, seen before


@dataclass(frozen=True)
class ProcessState:
    """All that a test could change and must put back, as sorted readable lines."""

    segments: frozenset[str]
    descriptors: frozenset[str]
    children: frozenset[str]
    affinity: frozenset[str]
    scheduling: frozenset[str]
    signals: frozenset[str]
    crashes: frozenset[str]

    @classmethod
    def now(cls) -> ProcessState:
        children = _children()
        return cls(
            segments=_segments(),
            descriptors=_descriptors(),
            children=children,
            affinity=frozenset({str(sorted(os.sched_getaffinity(0)))}),
            scheduling=_scheduling(),
            signals=_signals(),
            crashes=frozenset(_crashed),
        )

    def changes_to(self, after: ProcessState) -> list[str]:
        """One line per difference."""
        changes = []
        for field in fields(self):
            old, new = getattr(self, field.name), getattr(after, field.name)
            changes += [f"{field.name}: left behind {item}" for item in sorted(new - old)]
            # Closing what another test's fixture had opened is no leak of this one.
            if field.name not in ("segments", "descriptors", "children"):
                changes += [f"{field.name}: lost {item}" for item in sorted(old - new)]
        return changes


def adopt_orphans() -> None:
    """Make this process the parent of its descendants' orphans, so that none can hide."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def settled_changes(before: ProcessState) -> list[str]:
    """Differences that are still there after a while: what is dying may finish to."""
    limit = Limit(SETTLE_S)
    while True:
        changes = before.changes_to(ProcessState.now())
        if not changes or limit.is_over():
            return changes
        time.sleep(0.01)


def end_children(before: ProcessState) -> None:
    """Kill the children that a failed test left, so that it fails alone."""
    for line in _children() - before.children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(line.split()[0]), signal.SIGKILL)


def _segments() -> frozenset[str]:
    """Our names in /dev/shm, but for those of a living run of others on this machine."""
    found = set()
    for path in Path("/dev/shm").iterdir():
        name = path.name.removeprefix("sem.")
        if not name.startswith("shrimpmx"):
            continue
        if name in _others:
            continue
        parsed = parse_segment_name(name)
        if parsed and parsed[0].is_alive() and not _is_ours(parsed[0].pid):
            _others.add(name)
            continue
        found.add(path.name)
    return frozenset(found)


def _is_ours(pid: int) -> bool:
    """Whether `pid` is this process or one that descends from it."""
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = _parent(pid)
    return False


def _stat(pid: int | str) -> list[str]:
    """Name, state, parent and so on of a process; empty if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    name, _, rest = text.partition("(")[2].rpartition(")")
    return [name, *rest.split()]


def _parent(pid: int) -> int:
    stat = _stat(pid)
    return int(stat[2]) if stat else 0


def _descriptors() -> frozenset[str]:
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the listing's own
            found.add(f"{number} -> {os.readlink(f'/proc/self/fd/{number}')}")
    return frozenset(line for line in found if not line.endswith(("/fd", *KEPT)))


def _children() -> frozenset[str]:
    """Living children, adopted orphans among them. The dead are waited for, as their test may
    have forgotten to."""
    with contextlib.suppress(ChildProcessError):
        while (dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG)) is not None:
            if dead.si_code != os.CLD_EXITED and dead.si_status in CRASHES:
                _crashed.add(f"{dead.si_pid} by {signal.Signals(dead.si_status).name}")
        parents = {name: _stat(name) for name in os.listdir("/proc") if name.isdigit()}
        return frozenset(
            f"{name} {stat[0]}"
            for name, stat in parents.items()
            if stat and int(stat[2]) == os.getpid()
        )
    return frozenset()  # there are none


def _scheduling() -> frozenset[str]:
    policy = os.sched_getscheduler(0)
    return frozenset(
        {
            f"class {policy} priority {os.sched_getparam(0).sched_priority}",
            f"nice {os.nice(0)}",
            f"RLIMIT_RTTIME {resource.getrlimit(RLIMIT_RTTIME)}",
        }
    )


def _signals() -> frozenset[str]:
    """Signals caught, ignored and blocked, C-level handlers too, as the kernel sees them."""
    found = set()
    for line in Path("/proc/self/status").read_text().splitlines():
        word, _, mask = line.partition(":")
        if word in ("SigBlk", "SigIgn", "SigCgt"):
            bits = int(mask, 16)
            found |= {f"{word} {bit + 1}" for bit in range(64) if bits >> bit & 1}
    # pytest-timeout's own: it is gone earlier after a test that failed.
    return frozenset(found - {f"SigCgt {signal.SIGALRM}"})
