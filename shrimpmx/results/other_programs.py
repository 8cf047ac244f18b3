"""CPU time of the programs that run on this machine beside one's own, as /proc has it (proc(5)).

What /proc hides is not seen: other users' processes with hidepid, all outside of a container.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# Of /proc/PID/stat, counted from the state, the first one behind the name.
_STATE, _PARENT, _USER, _SYSTEM = 0, 1, 11, 12
_WAITED_USER, _WAITED_SYSTEM, _THREADS, _BEGAN, _CPU = 13, 14, 17, 19, 36


class Used(NamedTuple):
    """CPU time of a thread so far, ns, and the CPU where it ran last."""

    cpu_ns: int
    cpu: int


@dataclass(frozen=True)
class Program:
    """A process as it was found. `began` tells it from an earlier one of the same number.

    `used`: of all its threads, also of those that have ended. `waited_ns`: what processes had used
    that it has started and waited for. `threads`: those that it has, by number.
    """

    began: int
    parent: int
    used: Used
    waited_ns: int
    threads: Mapping[int, Used]
    ended: bool = False


Programs = Mapping[int, Program]


def other_programs(root: Path = Path("/")) -> dict[int, Program]:
    """All processes but this one and its descendants, by number; none if /proc has not this one."""
    proc = root / "proc"
    try:
        own = int(os.readlink(proc / "self"))
    except (OSError, ValueError):
        return {}
    found = dict(_programs(proc))
    return {pid: program for pid, program in found.items() if not _descends(pid, own, found)}


def used_meanwhile(before: Programs, after: Programs) -> Mapping[int, int]:
    """The time that programs used between two looks, ns, by CPU.

    A thread's is charged to the CPU where it ran last, that of a thread or child that has ended to
    the CPU of its process or parent.
    """
    taken, gone = Counter[int](), Counter[int]()
    for pid, was in before.items():
        if pid not in after or after[pid].began != was.began:
            gone[was.parent] += was.used.cpu_ns + was.waited_ns
    for pid, now in after.items():
        was = before.get(pid, now)
        if pid not in before or was.began != now.began:
            if now.ended:  # of which its parent will tell
                continue
            was = Program(now.began, now.parent, Used(0, 0), 0, {})
        lived_ns = 0
        for number, thread in now.threads.items():
            used_ns = thread.cpu_ns - was.threads.get(number, Used(0, 0)).cpu_ns
            taken[thread.cpu] += max(0, used_ns)
            lived_ns += used_ns
        waited_ns = now.waited_ns - was.waited_ns - gone[pid]
        for used_ns in (now.used.cpu_ns - was.used.cpu_ns - lived_ns, waited_ns):
            taken[now.used.cpu] += max(0, used_ns)
    return taken


def _programs(proc: Path) -> Iterator[tuple[int, Program]]:
    for pid in _numbers(proc):
        fields = _stat(proc / str(pid))
        if fields is None:
            continue
        used = _used(fields)
        tasks = proc / str(pid) / "task"
        several = int(fields[_THREADS]) > 1
        threads = dict(_threads(tasks)) if several else {pid: used}
        waited_ns = (int(fields[_WAITED_USER]) + int(fields[_WAITED_SYSTEM])) * TICK_NS
        began, parent = int(fields[_BEGAN]), int(fields[_PARENT])
        yield pid, Program(began, parent, used, waited_ns, threads, fields[_STATE] in ("Z", "X"))


def _threads(tasks: Path) -> Iterator[tuple[int, Used]]:
    for number in _numbers(tasks):
        fields = _stat(tasks / str(number))
        if fields is not None:
            yield number, _used(fields)


def _numbers(directory: Path) -> list[int]:
    try:
        return [int(name) for name in os.listdir(directory) if name.isdigit()]
    except OSError:  # it has ended
        return []


def _stat(directory: Path) -> list[str] | None:
    """What is behind the name in a process's or a thread's `stat`; None if it is not there."""
    try:
        fields = (directory / "stat").read_bytes().rpartition(b")")[2].decode().split()
    except OSError:
        return None
    return fields if len(fields) > _CPU else None


def _used(fields: list[str]) -> Used:
    return Used((int(fields[_USER]) + int(fields[_SYSTEM])) * TICK_NS, int(fields[_CPU]))


def _descends(pid: int, own: int, programs: Programs) -> bool:
    """Whether `pid` is `own` or descends from it. Parents may form a ring: they are not all of one
    moment.
    """
    passed = set[int]()
    while pid != own and pid in programs and pid not in passed:
        passed.add(pid)
        pid = programs[pid].parent
    return pid == own
