"""The emulated nodes, their ranks, and the CPUs that they get."""

from __future__ import annotations

import os
from typing import Literal, Self

from pydantic import Field, model_validator

from shrimpmx.settings.declared import Declared, Nanoseconds

NODES_MAX = 4096
DEADLINE_MAX_S = 3600.0
Mode = Literal["two-node", "generator"]
# How far a process is from its interrupts (multiqueue, 4.1), by the names of topology.Distance.
DistanceName = Literal["any", "SC", "S$", "SP", "OP"]


class ClusterParameters(Declared):
    """The emulated nodes and the CPUs they get."""

    nodes: int = Field(2, ge=1, le=NODES_MAX, description="emulated nodes")
    mode: Mode = Field(
        "two-node", description="'generator': one node under test, its peer played by the NIC"
    )
    cpus: tuple[int, ...] = Field((), description="CPUs to use; empty: all that are allowed")
    clock: Literal["tsc", "monotonic"] = Field("tsc", description="the clock agents read")
    realtime: bool = Field(True, description="ask for real-time priority for NIC and handlers")
    deadline_s: float = Field(
        20.0,
        gt=0,
        le=DEADLINE_MAX_S,
        description="limit of a run, s; longer by the dilation",
    )
    pairs: int = Field(
        1, ge=1, le=64, description="ranks of each node, each with a partner (waiting, Fig. 3)"
    )
    company: Literal["alone", "nice", "raised", "hog"] = Field(
        "alone",
        description="a process on each core of each node that burns CPU, at the ranks' priority "
        "('hog'), at niceness 19 ('nice'), or beside ranks at niceness -20 ('raised', as waiting, "
        "5.2)",
    )

    ranks: int = Field(2, ge=1, le=NODES_MAX * 255, description="ranks of an MPI program")
    map_by: Literal["slot", "core", "node"] = Field(
        "slot",
        description="nodes of an MPI program's ranks: 'slot', blocks of one size; 'core', as many "
        "on a node as it has cores before the next; 'node', in turn",
    )
    bind_to: Literal["core", "none"] = Field(
        "core",
        description="cores of an MPI program's rank: 'core', one; 'none', all of its node",
    )
    rank_core: int = Field(
        0, ge=0, le=63, description="core of a node's first rank; those of further pairs follow"
    )
    distance: DistanceName = Field(
        "any",
        description="how far the CPU of a rank is from that of its interrupts: the same, one that "
        "shares a cache, one of the same package, one of another (multiqueue, 4.1)",
    )
    compute: Literal["none", "measured"] | Nanoseconds = Field(
        "none",
        description="what a program computes between its calls, on simulated hosts: nothing, the "
        "CPU time of its thread, which differs from run to run, or so many ns for each call",
    )
    compute_factor: float = Field(
        1.0, gt=0, le=1e6, description="CPU time of a simulated host for one measured here"
    )
    hardware_counters: bool = Field(
        False, description="count cache references and misses of each process, where the CPU does"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        allowed = sorted(os.sched_getaffinity(0))
        for cpu in self.cpus:
            if cpu not in allowed:
                listed = ", ".join(map(str, allowed))
                raise ValueError(f"cpus names CPU {cpu}, but this process may use only {listed}")
        if len(set(self.cpus)) != len(self.cpus):
            raise ValueError(f"cpus names a CPU twice: {', '.join(map(str, self.cpus))}")
        return self
