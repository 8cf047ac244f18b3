"""The emulated nodes, their ranks, and the CPUs that they get."""

from __future__ import annotations

import os
from typing import Annotated, Literal

from shrimpmx.settings.core_lists import parse_core_list
from shrimpmx.settings.declared import Before, Declared, Field, Nanoseconds

NODES_MAX = 4096
DEADLINE_MAX_S = 3600.0
Mode = Literal["two-node", "generator"]
# How far a process is from its interrupts (multiqueue, 4.1), by the names of topology.Distance.
DistanceName = Literal["any", "SC", "S$", "SP", "OP"]


def _ranges_counted(value: object) -> object:
    """Of a list of CPUs: a range, such as "0-3", as its numbers."""
    if not isinstance(value, list | tuple):
        return value
    listed = (parse_core_list(part) if isinstance(part, str) else (part,) for part in value)
    try:
        return tuple(cpu for part in listed for cpu in part)
    except ValueError as error:
        raise ValueError(f"cpus: {error}") from None


class ClusterParameters(Declared):
    """The emulated nodes and their CPUs."""

    nodes: int = Field(2, ge=1, le=NODES_MAX, description="number of emulated nodes")
    mode: Mode = Field(
        "two-node",
        description="'two-node'; or 'generator': one node under test, its peer played by the NIC",
    )
    cpus: Annotated[tuple[int, ...], Before(_ranges_counted)] = Field(
        (), description="CPUs of the run, such as 0-3,8; empty: all CPUs that the process may use"
    )
    clock: Literal["tsc", "monotonic"] = Field("tsc", description="clock of all agents")
    realtime: bool = Field(True, description="request real-time priority for NICs and handlers")
    deadline_s: float = Field(
        20.0,
        gt=0,
        le=DEADLINE_MAX_S,
        description="time limit of a run, s, multiplied by the time dilation",
    )
    pairs: int = Field(
        1,
        ge=1,
        le=64,
        description="ranks per node, each with a partner on the other node (waiting, Fig. 3)",
    )
    company: Literal["alone", "nice", "raised", "hog"] = Field(
        "alone",
        description="computing process on each core of each node: 'hog', at the ranks' priority; "
        "'nice', at niceness 19; 'raised', with ranks at niceness -20 (waiting, 5.2); 'alone': "
        "none",
    )

    ranks: int = Field(2, ge=1, le=NODES_MAX * 255, description="ranks of an MPI program")
    slots: int = Field(
        0,
        ge=0,
        le=NODES_MAX * 255,
        description="most ranks of an MPI program, those that MPI_Comm_spawn starts included "
        "(MPI_UNIVERSE_SIZE); 0: as many as it begins with",
    )
    map_by: Literal["slot", "core", "node"] = Field(
        "slot",
        description="distribution of MPI ranks over nodes: 'slot', blocks of equal size; 'core', "
        "one per core of a node before the next node; 'node', in turn",
    )
    bind_to: Literal["core", "none"] = Field(
        "core",
        description="cores of an MPI rank: 'core', one; 'none', all of its node",
    )
    rank_core: int = Field(
        0,
        ge=0,
        le=63,
        description="core of a node's first rank; ranks of further pairs use the next cores",
    )
    distance: DistanceName = Field(
        "any",
        description="distance between a rank's CPU and that of its interrupts: 'SC', the same; "
        "'S$', shared cache; 'SP', same package; 'OP', other package (multiqueue, 4.1)",
    )
    compute: Literal["none", "measured"] | Nanoseconds = Field(
        "none",
        description="virtual time of a program's computing between library calls, on simulated "
        "hosts: 'none'; 'measured', its thread's CPU time, different in each run; or ns per call",
    )
    compute_factor: float = Field(
        1.0, gt=0, le=1e6, description="CPU time on a simulated host per CPU time measured here"
    )
    hardware_counters: bool = Field(
        False,
        description="count cache references and misses of each process, if the CPU has such "
        "counters",
    )

    def check(self) -> None:
        allowed = sorted(os.sched_getaffinity(0))
        for cpu in self.cpus:
            if cpu not in allowed:
                listed = ", ".join(map(str, allowed))
                raise ValueError(f"cpus names CPU {cpu}, but this process may use only {listed}")
        if len(set(self.cpus)) != len(self.cpus):
            raise ValueError(f"cpus names a CPU twice: {', '.join(map(str, self.cpus))}")
