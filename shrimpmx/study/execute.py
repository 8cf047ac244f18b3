"""From a point of a sweep to a run of the cluster, and from its result to an Outcome."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shrimpmx.bench import calibration
from shrimpmx.bench.calibration import metric
from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.nics.kinds import kind_of
from shrimpmx.cluster.place.placement import Placement, place
from shrimpmx.cluster.place.topology import Topology
from shrimpmx.cluster.rules import program_problems
from shrimpmx.cluster.spec import ClusterSpec, GeneratorSpec, check_workloads
from shrimpmx.errors import AgentError, InputError, PlacementError
from shrimpmx.native.files import write_whole
from shrimpmx.native.process_memory import process_memory_permitted
from shrimpmx.nic.policy import Policy
from shrimpmx.report.timeline import Timeline, message_timeline, write_chrome
from shrimpmx.results.environment import unavailable
from shrimpmx.results.metrics import Outcome, total
from shrimpmx.results.statistics import Samples
from shrimpmx.results.words import place_words
from shrimpmx.settings.workload import WorkloadParameters
from shrimpmx.study.platform import PLATFORMS, Costs, Emulated, emulated
from shrimpmx.study.point import PointParameters
from shrimpmx.study.ranks import (
    INTERRUPT,
    T_BLOCK,
    companions_of,
    needs_t_block,
    ranks_of,
    resolved_wait,
    t_block_ns,
)
from shrimpmx.study.scenario import Point
from shrimpmx.wait.waiting_strategy import WaitingStrategy
from shrimpmx.wire.tables import WireGeometry, wire_geometry
from shrimpmx.workloads.anatomy import COUNTED

# What a ping-pong's samples are called.
HALF_ROUND_TRIP = "half_round_trip_ns"
# What the moments of an anatomy's messages are called.
SENT, RECEIVED = "sent_ns", "received_ns"
# Trace records kept per agent with --trace: the last 64 Ki of them, 2 MiB.
TRACE_ENTRIES = 65536
# Of them, the last that a Chrome trace holds: more than 20 MB open slowly (ours).
CHROME_RECORDS = 100_000
# Messages of a run whose last one is shown: the first one connects, and finds cold caches.
TIMELINE_MESSAGES = 4
# Messages that a handler's cost is taken over: many polls, well below a second.
HANDLER_MESSAGES = 100_000


class ClusterExecutor:
    """Runs points on emulated clusters, by an engine.

    `policies` are a scenario's own coalescing policies by name, `waits` its waiting strategies;
    with `traces` the binary trace of each run is kept there, as text and for Perfetto. `costs` are
    this machine's, for points that emulate a platform.
    """

    def __init__(
        self,
        engine: Engine,
        policies: Mapping[str, Callable[[], Any]] | None = None,
        traces: Path | None = None,
        costs: Costs | None = None,
        waits: Mapping[str, Callable[[], WaitingStrategy]] | None = None,
    ) -> None:
        self._engine = engine
        self._waits = dict(waits or {})
        self._policies = dict(policies or {})
        self._traces = traces
        self._costs = costs

    def __call__(self, point: Point, seed: int) -> Outcome:
        """Run one point in fresh processes. Raises AgentError, MachineError or InputError."""
        spec = self.spec_of(point, seed)
        result = self._engine.run(spec)
        if result.absent:
            raise AgentError(never_joined(spec), result.absent[0])
        if self._traces is not None:
            self._keep_trace(point, seed, result)
        return outcome_of(spec, result, self._t_block_ns(point))

    def _t_block_ns(self, point: Point) -> float | None:
        """Of a point that depends on it, whatever else the costs are for."""
        if not needs_t_block(point.parameters):
            return None
        return t_block_ns(self.emulated(point), self._costs)

    def emulated(self, point: Point) -> Emulated:
        """The point's NIC, host, waiting and dilation, as the run is made with them."""
        return _emulated(point.parameters, self._costs)

    def spec_of(self, point: Point, seed: int) -> ClusterSpec:
        """The cluster that a point describes."""
        return self._spec(point, point.parameters, seed, self._traces is not None)

    def _spec(
        self, point: Point, parameters: PointParameters, seed: int, traced: bool
    ) -> ClusterSpec:
        policy = self._policies.get(point.policy)
        made = self.emulated(point)
        if point.wait:
            wait = made.wait.model_copy(update={"strategy": point.wait})
            made = dataclasses.replace(made, wait=wait)
        spec = cluster_spec(
            parameters,
            seed,
            policy=None if policy is None else (lambda _node: _made(point.policy, policy)),
            trace_entries=TRACE_ENTRIES if traced else 0,
            made=made,
            waits=self._waits,
        )
        return dataclasses.replace(spec, policy_name=point.policy) if point.policy else spec

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

    def _keep_trace(self, point: Point, seed: int, result: ClusterResult) -> None:
        assert self._traces is not None
        path = self._traces / f"point{point.index:04d}-seed{seed}.txt"
        write_whole(path, result.trace)
        last = result.records[-CHROME_RECORDS:]
        whole = Timeline(last, result.agents, _geometry(point), result.processes)
        write_chrome(whole, path.with_suffix(".json"))

    def timeline(self, point: Point, seed: int) -> Timeline:
        """The timeline of one message of a point, in a run of its own: tracing takes time."""
        few = {"iterations": TIMELINE_MESSAGES, "warmup": 0}
        work = point.parameters.workload.model_copy(update=few)
        parameters = point.parameters.model_copy(update={"workload": work})
        result = self._engine.run(self._spec(point, parameters, seed, traced=True))
        geometry, processes = _geometry(point), result.processes
        return message_timeline(result.records, result.agents, geometry, processes=processes)


def _geometry(point: Point) -> WireGeometry:
    return wire_geometry(point.parameters.nic.mtu, point.parameters.nic.wire_format)


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
) -> ClusterSpec:
    """What the cluster has to run for a point's parameters; `made` from them, where they emulate
    a platform.
    """
    made = made or _emulated(parameters, None)
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
        link_faults=faults if faults.active else None,
        companions=companions_of(parameters),
        generator=_generator(parameters.workload, made.dilation),
        policy=policy,
        waits=waits or {},
        realtime=cluster.realtime,
        clock=cluster.clock,
        trace_entries=trace_entries,
        distance=cluster.distance,
        hardware_counters=cluster.hardware_counters,
        seed=seed,
        # Dilated times let a run take longer.
        deadline_s=cluster.deadline_s * max(1.0, made.dilation),
        allowed_cpus=cluster.cpus,
    )


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


def _emulated(parameters: PointParameters, costs: Costs | None) -> Emulated:
    """What a run is made with, spin limit included."""
    made = emulated(parameters, costs)
    return dataclasses.replace(made, wait=resolved_wait(made, costs))


def _generator(work: WorkloadParameters, dilation: float) -> GeneratorSpec:
    """What the generator sends: an endless stream, or so many invalid packets."""
    return GeneratorSpec(
        size_bytes=work.size_bytes,
        count=work.warmup + work.iterations if work.frames == "invalid" else 0,
        frames=work.frames,
        other_rate=work.other_rate / dilation,
        other_bytes=work.other_bytes,
    )


def machine_costs(points: Iterable[Point], engine: Engine) -> Costs | None:
    """This machine's own costs, by the names that the points' platforms use, and T_block with the
    interrupt in it if a point depends on that; None if no point needs any.

    They come from the calibration; this takes one if there is none.
    """
    parameters = [point.parameters for point in points]
    profiles = {wanted.platform.profile for wanted in parameters}
    used = {name for profile in profiles & PLATFORMS.keys() for name in PLATFORMS[profile].costs}
    if any(map(needs_t_block, parameters)):
        used |= {T_BLOCK, INTERRUPT}
    if not used:
        return None
    known = calibration.for_platforms(partial(handler_cost, engine))
    return {name: known[name] for name in sorted(used & known.keys())}


def outcome_of(
    spec: ClusterSpec, result: ClusterResult, t_block_ns: float | None = None
) -> Outcome:
    """What a run gave, from the moment when its ranks began to work; of an MPI program that marks
    sections, in these.

    `t_block_ns` is what blocking costs all in all there; None: not known.
    """
    work = spec.ranks[0].options
    program = bool(spec.ranks[0].command)
    return Outcome(
        samples=_of_program(result) if program else _samples(spec, result),
        per_message={} if program else _per_message(result),
        counters={agent: result.worked(agent) for agent in result.counters},
        accounts=result.accounts,
        usage=result.usage | {name: _usage(section) for name, section in result.sections.items()},
        placement=result.placement.as_dict(),
        ranks=tuple(f"rank{number}" for number in range(len(spec.ranks))),
        mis_ordering=mis_ordering(spec),
        iterations=work["iterations"] + work["warmup"],
        elapsed_ns=result.elapsed_ns
        | {name: section["elapsed_ns"] for name, section in result.sections.items()},
        figures={} if program else _figures(result),
        program=result.samples if program else {},
        hardware=result.hardware,
        hardware_absent=result.hardware_absent,
        t_block_ns=t_block_ns,
        message_bytes=work["size_bytes"],
        steered=tuple(result.steered),
        pauses=result.pauses,
        in_sections=bool(result.sections),
        dilation=spec.dilation,
        host_costs_ns={
            "interrupt": spec.host.interrupt_time_ns,
            "packet": spec.host.packet_cost_ns,
            "event": spec.mx.event_cost_ns,
            "reschedule": spec.wait.reschedule_cost_ns,
            "notification": spec.wait.handler_cost_ns,
        },
    )


def _usage(section: Mapping[str, int]) -> dict[str, int]:
    """The kernel's view of a section."""
    return {name: value for name, value in section.items() if name != "elapsed_ns"}


def never_joined(spec: ClusterSpec) -> str:
    """That the program of MPI ranks is none."""
    return f"{spec.ranks[0].command[0]} never called MPI_Init of shrimpmx's library"


def mis_ordering(spec: ClusterSpec) -> int:
    """How many fragments of a long medium message come behind the one that is marked."""
    early = spec.host.mark_early
    overtake = spec.link_faults.overtake if spec.link_faults is not None else 0
    if early == 0:
        return overtake
    # An early mark that is itself overtaken has the last fragment ahead of it.
    return early - 1 if early <= overtake else early


def _samples(spec: ClusterSpec, result: ClusterResult) -> Samples:
    """ns per half round trip as its initiator saw it, per message at each receiver, or from send
    to receive.
    """
    first = result.samples.get("rank0", {})
    if HALF_ROUND_TRIP in first:
        of_ranks = [result.samples[name] for name in _beginners(spec)]
        began = [found[HALF_ROUND_TRIP] for found in of_ranks if HALF_ROUND_TRIP in found]
        return np.concatenate(began).astype(np.float64)
    if SENT in first:
        return _transfers(result)
    warmup = int(spec.ranks[0].options["warmup"])
    parts = [
        per_message_ns(arrays["timestamps_ns"], int(arrays["batch"][0]), warmup)
        for arrays in result.samples.values()
        if "timestamps_ns" in arrays
    ]
    return np.concatenate(parts) if parts else np.empty(0)


def _of_program(result: ClusterResult) -> Samples:
    """ns per half round trip, of the ranks whose program measured that."""
    found = _figures(result).get(HALF_ROUND_TRIP)
    return np.empty(0) if found is None else found


def _beginners(spec: ClusterSpec) -> list[str]:
    """The ranks that begin round trips: those of node 0; with a vmmc NIC the first one counts."""
    if spec.kind.vmmc:
        return ["rank0"]
    return [f"rank{number}" for number, rank in enumerate(spec.ranks) if rank.node == 0]


def _figures(result: ClusterResult) -> dict[str, Samples]:
    """What workloads give, of all ranks one after another."""
    found: dict[str, list[Samples]] = {}
    for arrays in result.samples.values():
        for name, values in arrays.items():
            if values.dtype.kind in "US":
                continue
            found.setdefault(name, []).append(np.ravel(values).astype(np.float64))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _transfers(result: ClusterResult) -> Samples:
    """ns from each send to the end of its receive; one clock for all processes."""
    ends = [arrays for arrays in result.samples.values() if RECEIVED in arrays]
    starts = [arrays for arrays in result.samples.values() if SENT in arrays]
    parts = [
        (end[RECEIVED] - start[SENT]).astype(np.float64)
        for start, end in zip(starts, ends, strict=True)
    ]
    return np.concatenate(parts)


def _per_message(result: ClusterResult) -> dict[str, dict[str, Samples]]:
    """What each message moved, by agent and counter, as the first sender read it."""
    found: dict[str, dict[str, Samples]] = {}
    for name, values in result.samples.get("rank0", {}).items():
        kind, _, rest = name.partition(":")
        if kind == COUNTED:
            agent, _, counter = rest.partition(":")
            found.setdefault(agent, {})[counter] = values.astype(np.float64)
    return found


def per_message_ns(timestamps_ns: NDArray[np.int64], batch: int, warmup: int) -> Samples:
    """ns per message behind the warm-up, the last batch's if that covers all: one figure.

    `timestamps_ns` has one stamp at the first message and one after each `batch` messages; with
    fewer than two there is no figure. Batches are not told apart: they follow each other, and
    a burst makes some of them fast at the cost of the next.
    """
    if timestamps_ns.size < 2:
        return np.empty(0)
    skipped = min(-(-warmup // batch), timestamps_ns.size - 2)
    messages = batch * (timestamps_ns.size - 1 - skipped)
    return np.array([(timestamps_ns[-1] - timestamps_ns[skipped]) / messages])


def handler_cost(engine: Engine, seconds: float) -> dict[str, Any]:
    """CPU time of the interrupt handler per packet of a stream of 128 B messages, ns.

    One node under test, the traffic generator as its peer, no link limit, Stream coalescing.
    """
    meaning = "CPU time of the receive handler per packet, in a stream"
    parameters = PointParameters.model_validate(
        {
            "cluster": {"mode": "generator", "deadline_s": 20 + 100 * seconds},
            "workload": {"kind": "stream", "size_bytes": 128, "iterations": HANDLER_MESSAGES},
            "nic": {"coalescing": "stream", "link_bits_per_second": 0},
            "wait": {"strategy": "block"},
        }
    )
    costs = []
    for seed in range(1, 6):
        spec = cluster_spec(parameters, seed)
        result = engine.run(spec)
        packets = total({"irq": result.counters["node0.irq0"]}, "recv_packets")
        used_ns = result.usage.get("node0.irq0", {}).get("task_clock_ns")
        if not packets or used_ns is None:
            return {**unavailable("the kernel gave no CPU time of the handler"), "meaning": meaning}
        costs.append(used_ns / packets)
    return metric(np.array(costs), meaning)
