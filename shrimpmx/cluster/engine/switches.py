"""Which process had which CPU in a traced run, from the context switches that the kernel records.

The supervisor reads the kernel's rings in its ordinary turns; the processes of the run do nothing
for it.
"""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path

from shrimpmx.cluster.engine.memory import RunParts
from shrimpmx.cluster.place.placement import Placement
from shrimpmx.native.perf import IDLE, UNKNOWN, SwitchLog, SwitchRing
from shrimpmx.native.records import dataclass, field
from shrimpmx.native.streams import shown_name

# Readings of two clocks; the pair whose bracket is shortest counts.
CLOCK_ATTEMPTS = 8
# The first pid namespace of a machine: its inode number is fixed in the kernel.
FIRST_NAMESPACE = "pid:[4026531836]"
SUPERVISOR = "the supervisor"
NOT_RECORDED = "not recorded"

Begins = Mapping[int, Sequence[tuple[int, int]]]


@dataclass(frozen=True)
class Switches:
    """Which process had which CPU of a run when.

    `begins`: of each CPU when which process got it, pairs of time, ns, and its number. `names`:
    those of processes by number. `process_of`: the process of each agent. `lost`: so many records
    of the kernel found no room. `absent`: why there are none.
    """

    begins: Begins = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)
    process_of: Mapping[str, str] = field(default_factory=dict)
    lost: int = 0
    absent: str = ""


def switches_of(
    log: SwitchLog,
    placement: Placement,
    own: Mapping[int, str],
    others: Mapping[int, str] | None = None,
    lost: int = 0,
) -> Switches:
    """What a log tells; `own`: the names of the run's processes by number, `others`: of more."""
    begins = log.begins()
    there = {process for some in begins.values() for _, process in some}
    names = {**(others or {}), IDLE: idle_words(), **own, UNKNOWN: NOT_RECORDED}
    process_of = {agent.name: each.name for each in placement.processes for agent in each.agents}
    return Switches(begins, {each: names[each] for each in sorted(there)}, process_of, lost)


def cpus_of(placement: Placement, without: Container[str] = ()) -> set[int]:
    """The CPUs that processes of a run may have; `without`: roles that need none."""
    processes = [plan for plan in placement.processes if plan.role not in without]
    return {plan.cpu for plan in processes} | set(placement.core_cpus.values())


class SwitchWatch:
    """The kernel's record of the switches on the CPUs of a run, from now on: the last ones of each.

    A ring that fills up ends the sleep of `selector`. Where the kernel does not permit it there is
    no record, and result() says why.
    """

    def __init__(self, parts: RunParts, selector: selectors.BaseSelector) -> None:
        self._parts = parts
        self._log = SwitchLog(cpus_of(parts.placement), parts.spec.trace_entries)
        self._names: dict[int, str] = {}
        self._absent = ""
        self._rings: list[SwitchRing] = []
        try:
            for cpu in self._log.cpus:
                self._rings.append(SwitchRing(cpu))
        except OSError as error:
            self._absent = error.strerror or str(error)
            self.close()
        for ring in self._rings:
            selector.register(ring, selectors.EVENT_READ, None)

    def drain(self) -> None:
        """Take over what the kernel has recorded since the last time."""
        if self._rings:
            ahead_ns = ahead_of_monotonic_ns(self._parts.memory.control.now_ns)
            for ring in self._rings:
                for pid in ring.drain(self._log, ahead_ns):
                    # At once, while it lives.
                    self._names[pid] = stranger(pid)

    def result(self, pids: Sequence[int]) -> Switches:
        """All that was recorded; `pids`: of the processes that the supervisor has started."""
        if self._absent:
            return Switches(absent=self._absent)
        self.drain()
        placement, control = self._parts.placement, self._parts.memory.control
        self._log.end(control.now_ns())
        own = {os.getpid(): SUPERVISOR}
        for index, (plan, pid) in enumerate(zip(placement.processes, pids, strict=True)):
            # A rank's program may be a child of the process that was started, as of a shell.
            own[control.runner_info(index)["pid"] or pid] = own[pid] = plan.name
        lost = sum(ring.lost for ring in self._rings)
        return switches_of(self._log, placement, own, self._names, lost)

    def close(self) -> None:
        """Stop recording."""
        for ring in self._rings:
            ring.close()
        self._rings.clear()


def ahead_of_monotonic_ns(now_ns: Callable[[], int]) -> int:
    """How far a clock is ahead of the monotonic one at the moment."""
    pairs = []
    for _ in range(CLOCK_ATTEMPTS):
        before = time.monotonic_ns()
        there = now_ns()
        after = time.monotonic_ns()
        pairs.append((after - before, there - (before + after) // 2))
    return min(pairs)[1]


def stranger(pid: int, root: Path = Path("/proc")) -> str:
    """A process that is not of the run, as far as the kernel shows it to this user."""
    try:
        name = (root / str(pid) / "comm").read_text(errors="replace").strip()
    except OSError:  # it has ended, or is hidden
        name = ""
    return f"another program (pid {pid}{f', {shown_name(name)}' if name else ''})"


def in_first_namespace(root: Path = Path("/")) -> bool:
    """Whether this process is in the machine's first pid namespace, not in a container's."""
    try:
        return os.readlink(root / "proc/self/ns/pid") == FIRST_NAMESPACE
    except OSError:
        return False


def idle_words() -> str:
    """A CPU without a process of this pid namespace. The kernel tells no other namespace's apart
    from none."""
    return "idle" if in_first_namespace() else "idle, or a process outside this container"
