"""The clusters that points of a sweep describe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.launch import own_mpi_hint
from shrimpmx.cluster.nics.kind import kind_of
from shrimpmx.cluster.place.placement import Placement, place
from shrimpmx.cluster.place.topology import Topology
from shrimpmx.cluster.rules import program_problems
from shrimpmx.cluster.spec import CaptureRoom, ClusterSpec, GeneratorSpec, check_workloads
from shrimpmx.errors import AgentError, InputError, PlacementError
from shrimpmx.experiment.platform import Costs, Emulated, emulated, platform_of
from shrimpmx.experiment.point import Point, PointParameters
from shrimpmx.experiment.program import CORES_MAX
from shrimpmx.experiment.ranks import (
    INTERRUPT,
    T_BLOCK,
    companions_of,
    needs_t_block,
    ranks_of,
    ranks_of_node,
    resolved_wait,
)
from shrimpmx.native.copy import process_memory_permitted
from shrimpmx.native.drawing import seed_of
from shrimpmx.native.records import replace
from shrimpmx.nic.policy import Policy
from shrimpmx.results.words import place_words
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.user_code import OwnClass
from shrimpmx.settings.workload import PROGRAMS, WorkloadParameters
from shrimpmx.wait.waiting_strategy import WaitingStrategy

# Trace records kept per agent with --trace: the last 64 Ki of them, 2 MiB.
TRACE_ENTRIES = 65536


class Clusters:
    """Makes the clusters that points describe, and places them by an engine.

    `policies` are a scenario's own coalescing policies by name, `waits` its waiting strategies.
    `costs` are this machine's, for points that emulate a platform.
    """

    def __init__(
        self,
        engine: Engine,
        policies: Mapping[str, Callable[[], Any]] | None = None,
        costs: Costs | None = None,
        waits: Mapping[str, Callable[[], WaitingStrategy]] | None = None,
    ) -> None:
        self._engine = engine
        self._waits = dict(waits or {})
        self._policies = dict(policies or {})
        self._costs = costs

    def emulated(self, point: Point) -> Emulated:
        """The point's NIC, host, waiting and dilation, as the run is made with them."""
        return _emulated(point.parameters, self._costs, real=self._engine.is_real)

    def spec_of(
        self,
        point: Point,
        seed: int,
        *,
        traced: bool = False,
        capture: CaptureRoom | None = None,
    ) -> ClusterSpec:
        """The cluster that a point describes."""
        policy = self._policies.get(point.policy)
        made = self.emulated(point)
        if point.wait:
            wait = made.wait.model_copy(update={"strategy": point.wait})
            made = replace(made, wait=wait)
        spec = cluster_spec(
            point.parameters,
            seed,
            policy=None if policy is None else (lambda _node: _made(point.policy, policy)),
            trace_entries=TRACE_ENTRIES if traced else 0,
            made=made,
            waits=self._waits,
            capture=capture,
        )
        return replace(spec, policy_name=point.policy) if point.policy else spec

    def placement_of(self, point: Point, topology: Topology | None = None) -> Placement:
        """Where the processes of a point run, on this machine or on another `topology`.

        PlacementError if there are no CPUs for it.
        """
        spec, cpus = self.spec_of(point, 1), point.parameters.cluster.cpus
        if topology is not None:
            return place(spec, topology.only(cpus) if cpus else topology)
        return self._engine.place(spec)

    def placement_maps(
        self, points: Sequence[Point], topology: Topology | None = None
    ) -> list[str]:
        """The distinct placement maps of the points, as text, each headed by whose it is; why there
        is none where this machine, or another `topology`, has no CPUs for them.
        """
        tables: dict[str, list[Point]] = {}
        for point in points:
            try:
                table = self.placement_of(point, topology).table()
            except PlacementError as error:
                table = f"no placement: {error}"
            tables.setdefault(table, []).append(point)
        return [f"{_whose(some, points)}:\n{table}" for table, some in tables.items()]


def _whose(some: Sequence[Point], points: Sequence[Point]) -> str:
    """What tells `some` of the points from the others; their mode in every case."""
    words = []
    for axis, value in some[0].shown.items():
        shared = all(point.shown[axis] == value for point in some)
        telling = any(point.shown[axis] != value for point in points)
        if shared and telling and not axis.endswith("mode"):
            words.append(place_words(axis, value))
    return ", ".join([place_words("mode", some[0].parameters.cluster.mode), *words])


def _made(name: str, policy: Callable[[], Any]) -> Policy:
    """A user's policy for one NIC; what it raises shows its own traceback."""
    made = policy()
    if not isinstance(made, Policy):
        raise InputError(
            f"policies[{name!r}] must make a shrimpmx.nic.policy.Policy, "
            f"not {type(made).__name__}; derive it from Policy"
        )
    return made


def cluster_spec(
    parameters: PointParameters,
    seed: int,
    policy: Callable[[int], Any] | None = None,
    trace_entries: int = 0,
    made: Emulated | None = None,
    waits: Mapping[str, Callable[[], WaitingStrategy]] | None = None,
    capture: CaptureRoom | None = None,
) -> ClusterSpec:
    """What the cluster has to run for a point's parameters; `made` from them, where they emulate
    a platform.
    """
    made = made or _emulated(parameters, None)
    # A platform may say how many cores there are.
    parameters = parameters.model_copy(update={"host": made.host})
    cluster, faults = parameters.cluster, parameters.faults
    return ClusterSpec(
        ranks=ranks_of(parameters, made.wait),
        nodes=cluster.nodes,
        mode=cluster.mode,
        nic=made.nic,
        host=made.host,
        mx=made.mx,
        dilation=made.dilation,
        wait=made.wait,
        model=made.model,
        link_faults=_faults_of(faults, seed) if faults.active else None,
        companions=companions_of(parameters),
        generator=_generator(parameters.workload, made),
        policy=policy,
        waits=waits or {},
        realtime=cluster.realtime,
        clock=cluster.clock,
        trace_entries=trace_entries,
        capture=capture,
        distance=cluster.distance,
        hardware_counters=cluster.hardware_counters,
        seed=seed,
        # Dilated times let a run take longer.
        deadline_s=cluster.deadline_s * max(1.0, made.dilation),
        allowed_cpus=cluster.cpus,
        compute=cluster.compute,
        compute_factor=cluster.compute_factor,
    )


def _faults_of(faults: LinkFaults, seed: int) -> LinkFaults:
    """The faults of one run: the repeats of a point differ in them."""
    return faults.model_copy(update={"seed": seed_of("faults", faults.seed, seed)})


def check_points(points: Iterable[Point], costs: Costs) -> None:
    """InputError if a point's cluster could be run nowhere, its binding file cannot be used, or
    its messages do not fit into heaps, where this system leaves no other way to their data.
    """
    for point in points:
        parameters = point.parameters
        by_heap = parameters.mx.memory == "auto" and not kind_of(parameters.nic).vmmc
        problem = parameters.heap_problem() if by_heap else ""
        if problem and not process_memory_permitted():
            raise InputError(f"{problem}; this system forbids process_vm_readv and writev")
        if point.parameters.workload.kind == "program":
            for problem in program_problems(point.wait):
                raise InputError(problem)
        check_workloads(cluster_spec(point.parameters, 1, made=_emulated(point.parameters, costs)))


def shared_cores(points: Iterable[Point], *, real: bool) -> str:
    """A sentence if the ranks of a user's program are more than the cores of their node, at the
    point where they are most per core; "" if no core has two.
    """
    most: tuple[float, int, int] = 1.0, 0, 0
    for point in points:
        parameters = point.parameters
        if parameters.workload.kind in PROGRAMS:
            host = _without_costs(point, real=real).host
            ranks = ranks_of_node(parameters.model_copy(update={"host": host}))
            most = max(most, (ranks / host.cores, ranks, host.cores))
    share, ranks, cores = most
    if share <= 1:
        return ""
    way = f"--set cores={ranks} gives" if ranks <= CORES_MAX else "more nodes give"
    plural = "s" * (cores > 1)
    return f"{ranks} ranks take turns on {cores} core{plural} of their node: {way} each its own"


def unasked_policies(
    points: Iterable[Point], policies: Mapping[str, Callable[[], Any]], *, real: bool
) -> list[str]:
    """A sentence for each of a user's policies that says nothing to completed sends, by which all
    others interrupt at these points.
    """
    asked = {
        point.policy
        for point in points
        if point.policy in policies
        and _ignores_sends(policies[point.policy])
        and _without_costs(point, real=real).nic.tx_interrupts
    }
    return [
        f"policy {name} has no on_send_complete, so completed sends never interrupt under it, "
        "unlike under shrimpmx's own strategies: define it, or compare with tx_interrupts=false"
        for name in policies
        if name in asked
    ]


def _ignores_sends(policy: Callable[[], Any]) -> bool:
    kind = policy.kind() if isinstance(policy, OwnClass) else policy
    # What another callable makes is seen only when it is called.
    if not (isinstance(kind, type) and issubclass(kind, Policy)):
        return False
    return kind.on_send_complete is Policy.on_send_complete


def _without_costs(point: Point, *, real: bool) -> Emulated:
    """What a run is made with on a machine whose own costs are none."""
    none = {name: {"median": 0.0} for name in needed_costs([point])}
    return _emulated(point.parameters, none, real=real)


def _emulated(parameters: PointParameters, costs: Costs | None, *, real: bool = True) -> Emulated:
    """What a run is made with, spin limit included."""
    made = emulated(parameters, costs, real=real)
    return replace(made, wait=resolved_wait(made, costs))


def _generator(work: WorkloadParameters, made: Emulated) -> GeneratorSpec:
    """What the generator sends: an endless stream, or so many invalid packets."""
    return GeneratorSpec(
        size_bytes=work.size_bytes,
        count=work.warmup + work.iterations if work.frames == "invalid" else 0,
        window=work.window,
        resend_delay_ns=made.mx.resend_delay_ns,
        frames=work.frames,
        other_rate=work.other_rate / made.dilation,
        other_bytes=work.other_bytes,
        other_window=work.other_window,
    )


def never_joined(spec: ClusterSpec, rank: str = "") -> AgentError:
    """That the program of MPI ranks, of this one say, is none."""
    command = spec.ranks[0].command[0]
    error = AgentError(
        f"{command} never called MPI_Init of shrimpmx's library{own_mpi_hint(command)}", rank
    )
    error.at_start = True
    return error


def needed_costs(points: Iterable[Point]) -> set[str]:
    """The machine's own costs that points need, by the names that their platforms use, and T_block
    with the interrupt in it if a point depends on that.
    """
    parameters = [point.parameters for point in points]
    platforms = [found for found in map(platform_of, parameters) if found is not None]
    used = {name for platform in platforms for name in platform.costs}
    if any(map(needs_t_block, parameters)):
        used |= {T_BLOCK, INTERRUPT}
    return used
