"""CPU time of the programs that run on this machine beside one's own, as /proc has it (proc(5)).

A program that began and ended between two looks is not seen, nor one that /proc hides.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

# Of /proc/PID/stat, counted from the state, the first one behind the name.
_PARENT, _USER, _SYSTEM, _BEGAN, _CPU = 1, 11, 12, 19, 36


class Program(NamedTuple):
    """A process; `began` tells it from an earlier one of the same number."""

    pid: int
    began: int


class Used(NamedTuple):
    """CPU time of all threads of a process so far, ns, and the CPU where its first one ran last."""

    cpu_ns: int
    cpu: int


def other_programs(root: Path = Path("/")) -> dict[Program, Used]:
    """All processes that there are, but this one and those that it or its own have started."""
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    parents, found = {}, {}
    for pid, fields in _processes(root / "proc"):
        parents[pid] = int(fields[_PARENT])
        used_ns = (int(fields[_USER]) + int(fields[_SYSTEM])) * tick_ns
        found[Program(pid, int(fields[_BEGAN]))] = Used(used_ns, int(fields[_CPU]))
    return {program: used for program, used in found.items() if not _is_own(program.pid, parents)}


def used_meanwhile(
    before: Mapping[Program, Used], after: Mapping[Program, Used]
) -> Mapping[int, int]:
    """The time that programs used between two looks, ns, by the CPU where they ran last."""
    taken = Counter[int]()
    for program, used in after.items():
        began_ns = before[program].cpu_ns if program in before else 0
        taken[used.cpu] += used.cpu_ns - began_ns
    return taken


def _processes(proc: Path) -> Iterator[tuple[int, list[str]]]:
    """The numbers of all processes, and what is behind their names in their `stat`."""
    for name in os.listdir(proc) if proc.exists() else ():
        if name.isdigit():
            try:
                text = (proc / name / "stat").read_bytes()
            except OSError:  # it has ended
                continue
            yield int(name), text[text.rindex(b")") + 2 :].decode().split()


def _is_own(pid: int, parents: Mapping[int, int]) -> bool:
    """Whether this process is the one, or an ancestor of it."""
    while pid in parents and pid != os.getpid():
        pid = parents[pid]
    return pid == os.getpid()
