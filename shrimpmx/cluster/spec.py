"""What a run is made of: nodes, ranks, NIC, host, waiting, faults, company.

A ClusterSpec is plain data. It says what is emulated; placement.py decides where it
runs, supervisor.py runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from shrimpmx.cluster.runner import EARLY_WAKE_NS
from shrimpmx.errors import InputError
from shrimpmx.params import HostParameters, LinkFaults, MxParameters, NicParameters, WaitParameters

Mode = Literal["two-node", "generator"]
MODES: tuple[str, ...] = ("two-node", "generator")
COMPANION_KINDS: tuple[str, ...] = ("hog", "nice", "spinner")
FAULT_ACTIONS: tuple[str, ...] = ("kill", "stop")


@dataclass(frozen=True)
class RankSpec:
    """One rank: where it lives, what it does and how it waits.

    `workload` is a name of `shrimpmx.cluster.workloads.WORKLOADS`, or with a vmmc NIC of
    `shrimpmx.cluster.vmmc_workloads.VMMC_WORKLOADS`; `options` are its keyword arguments; `wait`
    overrides the cluster's waiting for this rank.
    """

    node: int
    workload: str
    core: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    wait: WaitParameters | None = None


@dataclass(frozen=True)
class CompanionSpec:
    """A process that only burns CPU beside the ranks.

    "hog"; "nice" at niceness 19; "spinner" in the idle class, which keeps the core from sleeping.
    """

    node: int
    core: int = 0
    kind: str = "hog"


@dataclass(frozen=True)
class AgentFault:
    """A fault of a process: at `after_s` seconds from the start it is killed or stopped.

    `process` is a process name as the placement map shows it; `stop_for_s` is how long a
    stopped process stays so (0: until the run ends).
    """

    process: str
    action: str = "kill"
    after_s: float = 0.1
    stop_for_s: float = 0.0


@dataclass(frozen=True)
class GeneratorSpec:
    """The far node of a one-node run, played by the NIC's own process.

    `count` messages of `size_bytes` (0: until the run ends), at most `window` unacknowledged;
    when nothing was acknowledged for `resend_delay_ns` it goes back to the first of them. `frames`
    "invalid": `count` packets that the receive handler drops, instead. Beside them it sends
    `other_rate` packets per second of another protocol, frames of `other_bytes`.
    """

    size_bytes: int = 128
    count: int = 0
    window: int = 512
    match: int = 0
    resend_delay_ns: int = MxParameters().resend_delay_ns
    frames: Literal["messages", "invalid"] = "messages"
    other_rate: float = 0.0
    other_bytes: int = 1000


@dataclass(frozen=True)
class ClusterSpec:
    """One run of an emulated cluster.

    `mode`: "two-node" runs every node in full; "generator" runs node 0 in full and lets the
    NIC's process play node 1. `cpus` fixes CPUs by name, e.g. {"nic": 0, "node0.core0": 3}.
    `nic_wait` and `irq_wait` override how those processes wait, `policy` makes a user's
    coalescing policy for node `index`. `realtime` False asks for normal priority everywhere.
    `survive`: a rank that dies or fails does not end the run; its endpoint is closed, which its
    partners learn from the protocol, and the result says who it was. `dilation`: how much longer
    the hardware's times are than those of what they emulate, for policies that reckon in rates.
    """

    ranks: tuple[RankSpec, ...]
    nodes: int = 2
    mode: Mode = "two-node"
    nic: NicParameters = field(default_factory=NicParameters)
    host: HostParameters = field(default_factory=HostParameters)
    mx: MxParameters = field(default_factory=MxParameters)
    wait: WaitParameters = field(default_factory=WaitParameters)
    link_faults: LinkFaults | None = None
    agent_faults: tuple[AgentFault, ...] = ()
    companions: tuple[CompanionSpec, ...] = ()
    generator: GeneratorSpec = field(default_factory=GeneratorSpec)
    cpus: Mapping[str, int] = field(default_factory=dict)
    nic_wait: WaitParameters | None = None
    irq_wait: WaitParameters | None = None
    policy: Callable[[int], Any] | None = None
    realtime: bool = True
    survive: bool = False
    clock: Literal["tsc", "monotonic"] = "tsc"
    trace_entries: int = 0
    early_wake_ns: int = EARLY_WAKE_NS
    dilation: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        _check(self)

    @property
    def full_nodes(self) -> int:
        """Nodes with interrupt handlers and ranks of their own."""
        return 1 if self.mode == "generator" else self.nodes

    @property
    def endpoints(self) -> list[int]:
        """For each rank, its endpoint on its node: counted up per node."""
        taken: dict[int, int] = {}
        numbers = []
        for rank in self.ranks:
            numbers.append(taken.get(rank.node, 0))
            taken[rank.node] = numbers[-1] + 1
        return numbers

    def endpoints_on(self, node: int) -> int:
        """Endpoints that `node` must have room for (at least one)."""
        return max(1, sum(rank.node == node for rank in self.ranks))

    def wait_of(self, rank: int) -> WaitParameters:
        """How rank `rank` waits."""
        return self.ranks[rank].wait or self.wait


def _check(spec: ClusterSpec) -> None:
    if spec.mode not in MODES:
        raise InputError(f"mode must be one of {', '.join(MODES)}, not {spec.mode!r}")
    if not 1 <= spec.nodes <= 1024:
        raise InputError(f"a cluster has 1 to 1024 nodes, not {spec.nodes}")
    if spec.mode == "generator" and spec.nodes != 2:
        raise InputError(
            f"generator mode has 2 nodes, one under test and the generator, not {spec.nodes}"
        )
    if not spec.ranks:
        raise InputError("a cluster needs at least one rank")
    if spec.trace_entries < 0:
        raise InputError(f"trace_entries must not be negative, but is {spec.trace_entries}")
    for number, rank in enumerate(spec.ranks):
        _check_place(spec, f"rank {number}", rank.node, rank.core)
    for node in range(spec.full_nodes):
        if spec.endpoints_on(node) > 255:
            raise InputError(f"node {node} has {spec.endpoints_on(node)} ranks; 255 is the most")
    for companion in spec.companions:
        _check_place(spec, f"companion {companion.kind!r}", companion.node, companion.core)
        if companion.kind not in COMPANION_KINDS:
            raise InputError(
                f"a companion is one of {', '.join(COMPANION_KINDS)}, not {companion.kind!r}"
            )
    for fault in spec.agent_faults:
        if fault.action not in FAULT_ACTIONS:
            raise InputError(
                f"an agent fault is one of {', '.join(FAULT_ACTIONS)}, not {fault.action!r}"
            )


def _check_place(spec: ClusterSpec, what: str, node: int, core: int) -> None:
    if not 0 <= node < spec.full_nodes:
        raise InputError(
            f"{what} is on node {node}; the nodes that run ranks are 0 to {spec.full_nodes - 1}"
        )
    if not 0 <= core < spec.host.cores:
        raise InputError(
            f"{what} is on core {core}; each node has cores 0 to {spec.host.cores - 1}"
        )
