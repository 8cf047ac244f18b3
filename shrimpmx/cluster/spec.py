"""What a run is made of: nodes, ranks, NIC, host, waiting, faults, company.

A ClusterSpec is plain data. It says what is emulated; `cluster.place` decides where it runs, an
engine runs it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, get_args

from shrimpmx.cluster import rules
from shrimpmx.cluster.launch import Launch
from shrimpmx.cluster.nics.kind import Groups, NicKind, kind_of
from shrimpmx.errors import InputError
from shrimpmx.link.links import link_called
from shrimpmx.mx.binding import ENDPOINTS_MAX, Binding, bound_cores, parse_binding
from shrimpmx.native.records import dataclass, field
from shrimpmx.settings.cluster import NODES_MAX, DistanceName, Mode
from shrimpmx.settings.core_lists import format_core_list
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.workload import WorkloadParameters
from shrimpmx.wait.waiting_strategy import WaitingStrategy

# Of a workload that is not told otherwise.
WORK = WorkloadParameters()
# Longer than any run takes: a finite number of seconds, which a rank's clock can count in ns.
FOREVER_S = 1e9
# A timer wakes a sleeper so late: 10 to 15 us in a virtual machine (ours).
EARLY_WAKE_NS = 15_000

DISTANCES: tuple[str, ...] = get_args(DistanceName)
MODES: tuple[str, ...] = get_args(Mode)
COMPANION_KINDS: tuple[str, ...] = ("hog", "nice", "spinner")
FAULT_ACTIONS: tuple[str, ...] = ("kill", "stop")


@dataclass(frozen=True)
class RankSpec:
    """One rank: where it lives, what it does and how it waits.

    `workload` is the name of one that the NIC's library runs; `options` are what differs from
    WorkloadParameters().options, and what it has beside them;
    `wait` overrides the cluster's waiting for this rank. `function`, called with the Rank, is run
    instead of a workload of the library; its arrays by name, or None, are the rank's samples.
    `command` is a program and its arguments, which joins the run by itself: by shrimpmx.join(), or
    in MPI_Init if there is a `launch`, which says how it is started. A rank that is not `bound` to
    its core runs on all cores of its node. Below 0, `niceness` is a higher priority than others'. A
    `spare` one is a slot for MPI_Comm_spawn, and no process until that fills it; spare ranks are
    the last.
    """

    node: int
    workload: str
    core: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    wait: WaitParameters | None = None
    function: Callable[[Any], Any] | None = None
    command: tuple[str, ...] = ()
    launch: Launch | None = None
    bound: bool = True
    niceness: int = 0
    spare: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", {**WORK.options, **self.options})


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
    `other_rate` packets per second of another protocol, frames of `other_bytes`, or as many as an
    `other_window` of them that may be unanswered allows.
    """

    size_bytes: int = WORK.size_bytes
    count: int = 0
    window: int = WORK.window
    match: int = 0
    resend_delay_ns: int = MxParameters().resend_delay_ns
    frames: Literal["messages", "invalid"] = "messages"
    other_rate: float = WORK.other_rate
    other_window: int = WORK.other_window
    other_bytes: int = WORK.other_bytes


@dataclass(frozen=True)
class CaptureRoom:
    """What a capture keeps: the last frames of each end of a link, in `end_bytes` of memory, and of
    each frame the first `snap_bytes`; None: all of it.
    """

    end_bytes: int = 16 << 20
    snap_bytes: int | None = None


@dataclass(frozen=True)
class ClusterSpec:
    """One run of an emulated cluster.

    `mode`: "two-node" runs every node in full; "generator" runs node 0 in full and lets the
    NIC's process play node 1. `cpus` fixes CPUs by name, e.g. {"nic": 0, "node0.core0": 3}.
    `nic_wait` and `irq_wait` override how those processes wait, `policy` makes a user's
    coalescing policy for node `index`, called `policy_name`, and `waits` makes user's waiting
    strategies, by the names that they have in `wait`. `realtime` False asks for normal priority
    everywhere. `link`: what is between the nodes, a name in LINKS.
    `survive`: a rank that dies or fails does not end the run; its endpoint is closed, which its
    partners learn from the protocol, and the result names it. `dilation`: how much longer
    the hardware's times are than those of what they emulate, for policies that reckon in rates.
    `distance`: how far a rank's CPU is to be from that of its interrupts. `hardware_counters`: each
    process counts cache references and misses, where the CPU does. `binding` is the
    `process_binding` of `mx`, whose file is read here only: all of a run goes by the same lines.
    `model`: the hosts of a simulated run. `capture`: the frames that pass the ends of links are
    kept.
    `deadline_s`: seconds after which the run is given up; FOREVER_S: never. `silence_s`: seconds
    after which MPI ranks that all wait are reported; 0: never. `grace_s`: seconds that
    programs have to end after a signal. `profiles`: the directory for profiles of MPI ranks; "":
    none. `allowed_cpus`: CPUs of the machine that it may use; empty:
    all that the caller may. `compute`: what programs compute between their calls on simulated
    hosts: "none", "measured", times `compute_factor`, or ns for each call.
    """

    ranks: tuple[RankSpec, ...]
    nodes: int = 2
    mode: Mode = "two-node"
    nic: NicParameters = field(default_factory=NicParameters)
    host: HostParameters = field(default_factory=HostParameters)
    mx: MxParameters = field(default_factory=MxParameters)
    wait: WaitParameters = field(default_factory=WaitParameters)
    model: HostModelParameters = field(default_factory=HostModelParameters)
    link: str = "rings"
    link_faults: LinkFaults | None = None
    agent_faults: tuple[AgentFault, ...] = ()
    companions: tuple[CompanionSpec, ...] = ()
    generator: GeneratorSpec = field(default_factory=GeneratorSpec)
    cpus: Mapping[str, int] = field(default_factory=dict)
    nic_wait: WaitParameters | None = None
    irq_wait: WaitParameters | None = None
    policy: Callable[[int], Any] | None = None
    policy_name: str = ""
    waits: Mapping[str, Callable[[], WaitingStrategy]] = field(default_factory=dict)
    realtime: bool = True
    survive: bool = False
    clock: Literal["tsc", "monotonic"] = "tsc"
    trace_entries: int = 0
    capture: CaptureRoom | None = None
    early_wake_ns: int = EARLY_WAKE_NS
    distance: DistanceName = "any"
    hardware_counters: bool = False
    dilation: float = 1.0
    seed: int = 1
    deadline_s: float = 60.0
    silence_s: float = 0.0
    grace_s: float = 5.0
    profiles: str = ""
    allowed_cpus: tuple[int, ...] = ()
    compute: str | int = "none"
    compute_factor: float = 1.0
    binding: Binding = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "binding", _binding(self))
        _check(self)

    @property
    def host_costs_ns(self) -> dict[str, int]:
        """What hosts are charged, ns, by what for."""
        return {
            "interrupt": self.host.interrupt_time_ns,
            "packet": self.host.packet_cost_ns,
            "event": self.mx.event_cost_ns,
            "send": self.mx.send_cost_ns,
            "reschedule": self.wait.reschedule_cost_ns,
            "notification": self.wait.handler_cost_ns,
        }

    @property
    def kind(self) -> NicKind:
        """The kind of its NICs."""
        return kind_of(self.nic)

    @property
    def link_ends(self) -> tuple[str, ...]:
        """The names of all ends of links, by which a capture numbers them: NICs, then switches."""
        nodes = (f"node{number}" for number in range(self.nodes))
        return (*nodes, *self.nic.switches(self.nodes))

    @property
    def groups(self) -> Groups:
        """The parameters that the kind of NIC has rules about."""
        return Groups(self.nic, self.host, self.mx, self.wait, self.link_faults)

    @property
    def full_nodes(self) -> int:
        """Nodes with interrupt handlers and ranks of their own."""
        return 1 if self.mode == "generator" else self.nodes

    @cached_property
    def endpoints(self) -> list[int]:
        """For each rank, its endpoint on its node: counted up per node."""
        taken: dict[int, int] = {}
        numbers = []
        for rank in self.ranks:
            numbers.append(taken.get(rank.node, 0))
            taken[rank.node] = numbers[-1] + 1
        return numbers

    @property
    def first_ranks(self) -> int:
        """The number of ranks that the run begins with; slots of spawned ones follow."""
        return sum(not rank.spare for rank in self.ranks)

    def endpoints_on(self, node: int) -> int:
        """Endpoints that `node` must have room for (at least one)."""
        return max(1, self._ranks_on[node])

    @cached_property
    def _ranks_on(self) -> Counter[int]:
        return Counter(rank.node for rank in self.ranks)

    def interrupt_cores(self, rank: int) -> tuple[int, ...]:
        """The cores of its node on which what comes for a rank is handled, in turn.

        With steering 'arfs' those at first; none where the NIC handles packets itself.
        """
        return self.kind.interrupt_cores(self.nic, self.host, self.endpoints[rank])

    def home_core(self, rank: int) -> int:
        """The first of the cores that a rank runs on."""
        return self.home_cores(rank)[0]

    def home_cores(self, rank: int) -> tuple[int, ...]:
        """The cores that a rank runs on: the one where it begins, or those where opening its
        endpoint moves it; with process_binding "auto" by the driver's hint, the core that handles
        what comes for the endpoint (multiqueue, 3.3).
        """
        node, begins, endpoint = self.ranks[rank].node, self.ranks[rank].core, self.endpoints[rank]
        if not self.ranks[rank].bound:
            return (begins, *(core for core in range(self.host.cores) if core != begins))
        if not self.kind.binds:
            return (begins,)
        if self.binding.kind == "auto":
            # With steering 'arfs' the queue follows the process.
            hint = () if self.nic.steering == "arfs" else self.interrupt_cores(rank)[:1]
            return hint or (begins,)
        return bound_cores(self.binding, node, endpoint, self.host.cores) or (begins,)

    def wait_of(self, rank: int) -> WaitParameters:
        """How rank `rank` waits."""
        return self.ranks[rank].wait or self.wait


def _check(spec: ClusterSpec) -> None:
    if spec.mode not in MODES:
        raise InputError(f"mode must be one of {', '.join(MODES)}, not {spec.mode!r}")
    if not 1 <= spec.nodes <= NODES_MAX:
        raise InputError(f"a cluster has 1 to {NODES_MAX} nodes, not {spec.nodes}")
    if spec.distance not in DISTANCES:
        raise InputError(f"distance is one of {', '.join(DISTANCES)}, not {spec.distance!r}")
    link_called(spec.link)
    if not spec.ranks:
        raise InputError("a cluster needs at least one rank")
    if spec.trace_entries < 0:
        raise InputError(f"trace_entries must not be negative, but is {spec.trace_entries}")
    for number, rank in enumerate(spec.ranks):
        _check_place(spec, f"rank {number}", rank.node, rank.core)
    for node in range(spec.full_nodes):
        if spec.endpoints_on(node) > ENDPOINTS_MAX:
            raise InputError(
                f"node {node} has {spec.endpoints_on(node)} ranks; {ENDPOINTS_MAX} is the most: "
                "take more nodes"
            )
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
    for problem in _problems(spec):
        raise InputError(problem)
    _check_distance(spec)


def _problems(spec: ClusterSpec) -> Iterator[str]:
    """Which of its parameters do not go together."""
    yield from rules.mode_problems(spec.mode, spec.nodes, spec.nic)
    yield from rules.group_problems(spec.groups)
    for number, rank in enumerate(spec.ranks):
        move_every = rank.options["move_every"]
        yield from rules.binding_problems(spec.nic, number, spec.home_cores(number))
        yield from rules.move_problems(spec.nic, spec.host.cores, move_every)
        yield from rules.distance_problems(spec.distance, spec.nic, move_every)


def check_workloads(spec: ClusterSpec) -> None:
    """InputError if a rank's workload is none of those that its NIC's library has."""
    for rank in spec.ranks:
        if rank.function is None and not rank.command:
            for problem in rules.workload_problems(rank.workload, spec.nic):
                raise InputError(problem)


def _binding(spec: ClusterSpec) -> Binding:
    try:
        binding = parse_binding(spec.mx.process_binding)
    except ValueError as error:
        raise InputError(str(error)) from None
    return binding.read() if spec.kind.binds else binding


def _check_distance(spec: ClusterSpec) -> None:
    """A distance is between a rank and the one core of its interrupts."""
    if spec.distance == "any":
        return
    for number, rank in enumerate(spec.ranks):
        cores, home = spec.interrupt_cores(number), spec.home_core(number)
        if len(cores) != 1:
            raise InputError(
                f"distance {spec.distance} needs all interrupts of a rank on one core, but those "
                f"of rank {number} go to cores {format_core_list(cores)} in turn; bind them with "
                "irq_binding"
            )
        if spec.distance != "SC" and cores[0] == home:
            raise InputError(
                f"distance {spec.distance} needs a rank and its interrupts on two cores, but "
                f"rank {number} and its interrupts are both on core {home} of node {rank.node}; "
                "set rank_core or irq_binding"
            )


def _check_place(spec: ClusterSpec, what: str, node: int, core: int) -> None:
    if not 0 <= node < spec.full_nodes:
        raise InputError(f"{what} is on node {node}; ranks run on nodes 0 to {spec.full_nodes - 1}")
    if not 0 <= core < spec.host.cores:
        raise InputError(
            f"{what} is on core {core}; each node has cores 0 to {spec.host.cores - 1}"
        )
