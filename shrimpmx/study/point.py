"""The parameters of one point of a sweep, by group, and the names that they are set by."""

from __future__ import annotations

import difflib
import os
import shlex
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from shrimpmx.cluster.nics.kind import Groups
from shrimpmx.cluster.nics.kinds import kind_of
from shrimpmx.errors import InputError
from shrimpmx.host.polling_ranks import move_problem, queue_problem
from shrimpmx.mx.binding import bound_cores, parse_binding
from shrimpmx.settings.core_lists import queue_affinities
from shrimpmx.settings.parameters import (
    HostParameters,
    LinkFaults,
    MxParameters,
    NicParameters,
    PlatformParameters,
    WaitParameters,
)
from shrimpmx.workloads.file_service.limits import BLOCK_BYTES, refusal

# The largest message that a workload sends: four fill a rank's heap as it is by default (ours).
MESSAGE_MAX_BYTES = 64 << 20
# So many of the heap's blocks hold the buffers of both directions and of one bounce, whatever
# else the rank has there; a block is the message rounded up to a power of two (ours).
HEAP_BLOCKS = 4


# What ranks can run on a vmmc NIC; all but the first and the last there only.
VMMC_WORKLOADS = ("pingpong", "flags", "arrivals", "ttcp", "file-service", "program")
# Those of them that send flags and nothing else.
ONE_WORD_WORKLOADS = ("pingpong", "flags", "arrivals")


class Declared(BaseModel):
    """Base of what a scenario declares: no unknown fields, no changes afterwards."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True, allow_inf_nan=False
    )


class ClusterParameters(Declared):
    """The emulated nodes and the CPUs they get."""

    nodes: int = Field(2, ge=1, le=64, description="emulated nodes")
    mode: Literal["two-node", "generator"] = Field(
        "two-node", description="'generator': one node under test, its peer played by the NIC"
    )
    cpus: tuple[int, ...] = Field((), description="CPUs to use; empty: all that are allowed")
    clock: Literal["tsc", "monotonic"] = Field("tsc", description="the clock agents read")
    realtime: bool = Field(True, description="ask for real-time priority for NIC and handlers")
    deadline_s: float = Field(20.0, gt=0, le=3600, description="before a run is given up, s")
    pairs: int = Field(
        1, ge=1, le=64, description="ranks of each node, each with a partner (waiting, Fig. 3)"
    )
    company: Literal["alone", "nice", "hog"] = Field(
        "alone",
        description="a process on each core of each node that burns CPU, at the ranks' priority "
        "or at niceness 19 (waiting, 5.2)",
    )

    rank_core: int = Field(
        0, ge=0, le=63, description="core of a node's first rank; those of further pairs follow"
    )
    distance: Literal["any", "SC", "S$", "SP", "OP"] = Field(
        "any",
        description="how far the CPU of a rank is from that of its interrupts: the same, one that "
        "shares a cache, one of the same package, one of another (multiqueue, 4.1)",
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


class WorkloadParameters(Declared):
    """What the ranks do."""

    kind: Literal[
        "pingpong", "stream", "anatomy", "flags", "arrivals", "ttcp", "file-service", "program"
    ] = Field(
        "pingpong",
        description="the loop that ranks run; 'anatomy': one message at a time, all counted; "
        "'program': one's own; with a vmmc NIC also 'flags': any of many, 'arrivals': waits of "
        "drawn length, 'ttcp': one way by sockets, 'file-service': blocks from the other node's "
        "cache",
    )
    program: str = Field(
        "", description="the Python file that ranks run with workload 'program', a path"
    )
    arguments: str = Field("", description="the program's arguments, as a shell takes them apart")
    size_bytes: int = Field(0, ge=0, le=MESSAGE_MAX_BYTES, description="bytes of a message")
    iterations: int = Field(
        200, ge=1, le=100_000_000, description="round trips, or messages of a stream"
    )
    warmup: int = Field(20, ge=0, le=10_000_000, description="iterations that are not counted")
    delay_us: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="computing before each send, us (waiting, Fig. 2); anatomy: quiet after each, "
        "up to half as long again",
    )
    delay_max_us: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="longest computing before a send, each drawn evenly from delay_us on, us; 0: "
        "always delay_us (waiting, Fig. 3: 0 to 300)",
    )
    arrivals: Literal["fixed", "uniform", "exponential", "bimodal", "adversary"] = Field(
        "uniform",
        description="how the arrival delays of workload 'arrivals' are distributed, with mean "
        "delay_us; 'adversary': each just beyond the spin limit",
    )
    move_every: int = Field(
        0,
        ge=0,
        le=100_000_000,
        description="round trips of a ping-pong after which a rank moves to its node's next core; "
        "0: it stays",
    )
    flags: int = Field(
        8, ge=1, le=4096, description="flags that the workload 'flags' waits for any one of"
    )
    threads: int = Field(
        4, ge=1, le=64, description="user-level threads of a process of the file service"
    )
    window: int = Field(
        256, ge=1, le=4096, description="messages of a stream in flight, receives posted"
    )
    frames: Literal["messages", "invalid"] = Field(
        "messages",
        description="what a generator sends; 'invalid': packets that the receive handler drops "
        "(coalescing, IV-B2)",
    )
    other_rate: int = Field(
        0,
        ge=0,
        le=10_000_000,
        description="packets per second of another protocol, unmarked, that a generator sends "
        "beside its stream; 0: none (coalescing, VI)",
    )
    other_bytes: int = Field(
        1000, ge=60, le=1500, description="bytes of a frame of the other protocol"
    )


class PointParameters(Declared):
    """All parameters of one point of a sweep, by group."""

    cluster: ClusterParameters = ClusterParameters()
    workload: WorkloadParameters = WorkloadParameters()
    nic: NicParameters = NicParameters()
    host: HostParameters = HostParameters()
    mx: MxParameters = MxParameters()
    wait: WaitParameters = WaitParameters()
    faults: LinkFaults = LinkFaults()
    platform: PlatformParameters = PlatformParameters()

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_kind()
        self._check_program()
        self._check_vmmc()
        self._check_vmmc_workload()
        self._check_queues()
        self._check_steering()
        self._check_interrupts()
        self._check_ranks()
        if self.cluster.mode == "generator" and self.workload.kind != "stream":
            raise ValueError(
                f"mode 'generator' plays a stream only, not workload {self.workload.kind!r}"
            )
        if self.cluster.mode == "generator" and self.workload.size_bytes > 128:
            raise ValueError(
                "mode 'generator' sends messages of one packet: size_bytes must be 0 to 128, "
                f"not {self.workload.size_bytes}"
            )
        if self.cluster.mode != "generator" and self.workload.frames == "invalid":
            raise ValueError("frames 'invalid' needs mode 'generator', which sends them")
        if self.cluster.mode != "generator" and self.workload.other_rate:
            raise ValueError("other_rate needs mode 'generator', which sends those packets")
        if self.cluster.mode == "two-node" and self.cluster.nodes % 2:
            raise ValueError(
                f"mode 'two-node' pairs nodes: nodes must be even, not {self.cluster.nodes}"
            )
        least = HEAP_BLOCKS << (self.workload.size_bytes - 1).bit_length()
        if self.mx.memory in ("heap", "bounce") and self.mx.heap_bytes < least:
            raise ValueError(
                f"memory {self.mx.memory!r} has messages in the rank's heap: with size_bytes "
                f"{self.workload.size_bytes} heap_bytes must be at least {least}, "
                f"not {self.mx.heap_bytes}"
            )
        if self.host.copy_offload and self.nic.coalescing_row.ranks_poll:
            raise ValueError(
                f"coalescing {self.nic.coalescing!r} lets ranks poll rx rings, which copy_offload "
                "leaves to the dma agent: choose one of them"
            )
        return self

    def _check_kind(self) -> None:
        """What the kind of NIC does not go with."""
        groups = Groups(self.nic, self.host, self.mx, self.wait, self.faults)
        for problem in kind_of(self.nic).problems(groups):
            raise ValueError(problem)

    def _check_program(self) -> None:
        work = self.workload
        if work.kind == "program" and not work.program:
            raise ValueError("workload 'program' needs one: set program=FILE, a Python file")
        if work.kind != "program" and (work.program or work.arguments):
            raise ValueError(f"program and arguments need workload 'program', not {work.kind!r}")
        try:
            shlex.split(work.arguments)
        except ValueError as error:
            raise ValueError(f"arguments {work.arguments!r} cannot be read: {error}") from None

    def _check_vmmc(self) -> None:
        kind, vmmc = self.workload.kind, kind_of(self.nic).vmmc
        if vmmc and self.cluster.mode == "generator":
            raise ValueError("mode 'generator' has no vmmc NIC: use mode 'two-node'")
        if vmmc and kind not in VMMC_WORKLOADS:
            raise ValueError(
                f"workload {kind!r} needs the Open-MX library, which a vmmc NIC does not run; "
                f"workloads there are {', '.join(VMMC_WORKLOADS)}"
            )
        if not vmmc and kind in VMMC_WORKLOADS and kind not in ("pingpong", "program"):
            raise ValueError(f"workload {kind!r} needs a vmmc NIC: set nic=vmmc")
        if vmmc and self.cluster.nodes != 2:
            raise ValueError(f"a vmmc NIC's workloads run on 2 nodes, not {self.cluster.nodes}")

    def _check_queues(self) -> None:
        nic, host = self.nic, self.host
        queue_affinities(host.irq_binding, nic.rx_queues, host.cores)
        if problem := queue_problem(nic):
            raise ValueError(problem)

    def _check_steering(self) -> None:
        nic, host = self.nic, self.host
        if nic.steering == "rps" and host.copy_offload:
            raise ValueError(
                "steering 'rps' hands frames to other cores, copy_offload leaves them to the dma "
                "agent: choose one of them"
            )
        if nic.steering == "rps" and nic.coalescing_row.ranks_poll:
            raise ValueError(
                f"steering 'rps' hands frames to other cores, coalescing {nic.coalescing!r} leaves "
                "them to ranks that poll: choose one of them"
            )
        if host.rps_cpus and nic.steering != "rps":
            raise ValueError("rps_cpus needs steering 'rps', which hands packets to those cores")
        if nic.steering in ("rps", "arfs") and self.cluster.distance != "any":
            raise ValueError(
                f"distance is that from a rank to its interrupts, which steering {nic.steering!r} "
                "moves: set distance=any"
            )

    def _check_interrupts(self) -> None:
        """What asks for a handler, or for how far it is."""
        if kind_of(self.nic).interrupts:
            return
        alone = f"nic {self.nic.nic_kind!r} handles packets itself, without interrupts"
        if self.workload.frames == "invalid" or self.workload.other_rate:
            raise ValueError(
                f"{alone}: frames 'invalid' and other_rate, which measure a handler, need nic "
                "'ethernet'"
            )
        if self.cluster.distance != "any":
            raise ValueError(f"{alone}: distance, which is that to them, needs nic 'ethernet'")

    def _check_ranks(self) -> None:
        cluster, work, cores = self.cluster, self.workload, self.host.cores
        if cluster.rank_core >= cores:
            raise ValueError(
                f"rank_core is {cluster.rank_core}, but a node's cores are 0 to {cores - 1}: set "
                f"cores to at least {cluster.rank_core + 1}"
            )
        if cluster.pairs > 1 and cluster.mode == "generator":
            raise ValueError("mode 'generator' has one rank: pairs must be 1")
        if cluster.pairs > 1 and cluster.nodes != 2:
            raise ValueError(f"pairs are on 2 nodes, not {cluster.nodes}: set nodes=2 or pairs=1")
        if cluster.pairs > 1 and work.kind == "anatomy":
            raise ValueError(
                "workload 'anatomy' counts what one message at a time costs: pairs must be 1, not "
                f"{cluster.pairs}"
            )
        binding = parse_binding(self.mx.process_binding)  # its file is read for what is to run
        for endpoint in range(cluster.pairs):
            bound_cores(binding, 0, endpoint, cores)
        if work.move_every:
            self._check_moves()

    def _check_moves(self) -> None:
        if self.workload.kind != "pingpong" or kind_of(self.nic).vmmc:
            raise ValueError(
                "move_every needs workload 'pingpong' and nic 'ethernet' or 'mx': only its ranks "
                "move"
            )
        if self.host.cores == 1:
            raise ValueError("move_every needs cores to move to: set cores to at least 2, not 1")
        if self.cluster.distance != "any":
            raise ValueError("move_every changes how far ranks are: set distance=any")
        if problem := move_problem(self.nic, self.workload.move_every):
            raise ValueError(problem)

    def _check_vmmc_workload(self) -> None:
        work, vmmc = self.workload, kind_of(self.nic).vmmc
        if vmmc and work.kind in ONE_WORD_WORKLOADS and work.size_bytes:
            raise ValueError(
                f"workload {work.kind!r} sends one word on a vmmc NIC: size_bytes must be 0, not "
                f"{work.size_bytes}"
            )
        if work.kind == "ttcp" and work.size_bytes == 0:
            raise ValueError("workload 'ttcp' sends bytes: size_bytes must be at least 1")
        file = (work.iterations + work.warmup, work.size_bytes or BLOCK_BYTES)
        if work.kind == "file-service" and (problem := refusal(*file)):
            raise ValueError(problem)
        if work.delay_max_us and not (vmmc and work.kind == "pingpong"):
            raise ValueError("delay_max_us needs workload 'pingpong' and a vmmc NIC: set nic=vmmc")
        if 0 < work.delay_max_us < work.delay_us:
            raise ValueError(
                f"delay_max_us must be 0 or at least delay_us, {work.delay_us}, not "
                f"{work.delay_max_us}"
            )


GROUPS: dict[str, type[BaseModel]] = {
    "cluster": ClusterParameters,
    "workload": WorkloadParameters,
    "nic": NicParameters,
    "host": HostParameters,
    "mx": MxParameters,
    "wait": WaitParameters,
    "faults": LinkFaults,
    "platform": PlatformParameters,
}


def _parameter_names() -> dict[str, tuple[str, str]]:
    """Every name a parameter can be set by, and its group and field.

    'rx_usecs' and 'nic.rx_usecs' mean the same; 'wait' is the waiting strategy, and the
    seed of the faults is 'faults.seed' only, since `--seed` is the sweep's.
    """
    names: dict[str, tuple[str, str]] = {}
    for group, model in GROUPS.items():
        for field in model.model_fields:
            names[f"{group}.{field}"] = (group, field)
            if field not in ("seed", "kind", "strategy", "profile"):
                names[field] = (group, field)
    names["wait"] = ("wait", "strategy")
    names["nic"] = ("nic", "nic_kind")
    names["workload"] = ("workload", "kind")
    names["platform"] = ("platform", "profile")
    return names


PARAMETER_NAMES = _parameter_names()
# Fields that go by another name where they are set.
SHOWN_NAMES = {"strategy": "wait", "nic_kind": "nic", "kind": "workload", "profile": "platform"}


def parameter_name(given: str) -> str:
    """The parameter that `given` names ('rx-usecs' is 'rx_usecs'); InputError if none does."""
    name = given.strip().replace("-", "_")
    if name in PARAMETER_NAMES:
        return name
    near = [full for full in PARAMETER_NAMES if full.endswith(f".{name}")]
    near = near or difflib.get_close_matches(name, PARAMETER_NAMES, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise InputError(
        f"there is no parameter {given!r}{hint} (shrimpmx list --parameters shows them)"
    )
