"""What a live run does per second: rates from two readings of its counters. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from shrimpmx.cluster.engine.engine import names_words

# What a received packet was dropped for: in the host, in the NIC, for a full ring or backlog.
DROPS = (
    *("drop_*", "rx_drop_*", "rx_bad_*", "tx_bad_*", "tx_no_route"),
    *("*_eventq_full", "*_backlog_full"),
)
Counts = Mapping[str, int]


@dataclass(frozen=True)
class ProcessReading:
    """A process: CPU, state, account of waiting, and what the kernel says of its time, ns.

    `ran_ns` and `queued_ns`: on a CPU, and ready for one; None before the process begins and
    once it is gone. `wait`: the call that an MPI rank waits in for long, what for, and for how many
    seconds.
    """

    name: str
    pid: int
    cpu: int
    state: str
    account: Counts
    ran_ns: int | None
    queued_ns: int | None
    wait: tuple[str, float] | None = None


@dataclass(frozen=True)
class EndpointReading:
    """An open endpoint: its process, the core that this runs on (None: not told), its rx queue."""

    process: str
    core: int | None
    queue: int


@dataclass(frozen=True)
class NodeReading:
    """A node: interrupts [core][vector], and per vector the affinity and the rx ring's depth.

    `affinities` is empty where there are no rx queues (nic mx or vmmc).
    """

    interrupts: tuple[tuple[int, ...], ...]
    affinities: tuple[tuple[int, ...], ...]
    depths: tuple[int, ...]
    endpoints: tuple[EndpointReading, ...]


@dataclass(frozen=True)
class AgentReading:
    """An agent: its kind ("nic", "irq", "rank", ...), the process that drives it, its counters."""

    kind: str
    process: str
    counters: Counts


@dataclass(frozen=True)
class Reading:
    """A run at `now_ns` of its clock; agents by name, nodes by index."""

    now_ns: int
    processes: tuple[ProcessReading, ...]
    agents: Mapping[str, AgentReading]
    nodes: Mapping[int, NodeReading]


@dataclass(frozen=True)
class CoreView:
    """A core that takes interrupts, per second. `at_process`: the share of events that were
    written where their process runs, None without any; `busy`: of its CPU, by its handler."""

    node: int
    core: int
    pid: int
    cpu: int
    busy: float | None
    interrupts: float
    by_vector: Mapping[int, float]
    packets: float
    handovers: float
    at_process: float | None


@dataclass(frozen=True)
class QueueView:
    """An rx queue: frames that wait in it, interrupts per second, and where its frames go."""

    node: int
    queue: int
    depth: int
    interrupts: float
    affinity: tuple[int, ...]
    endpoints: tuple[EndpointReading, ...]


@dataclass(frozen=True)
class ProcessView:
    """A process. `busy`, `queued`, `spinning`, `asleep`: shares of the time; None if it is gone.

    `received`: messages of ranks, frames of NICs, per second; `waits` per second. `waits_for`: the
    call that an MPI rank waits in, and what for, since `waits_s` seconds; "" where that is not
    known.
    """

    name: str
    kind: str
    pid: int
    cpu: int
    state: str
    busy: float | None
    queued: float | None
    spinning: float
    asleep: float | None
    waits: float
    received: float
    waits_for: str = ""
    waits_s: float = 0.0


@dataclass(frozen=True)
class LiveView:
    """What a run did in `seconds`; `drops` per second by counter, those that went up. `awaited`:
    ranks that others wait for, to be ready or to finish; "" if there are none.
    """

    seconds: float
    cores: tuple[CoreView, ...]
    queues: tuple[QueueView, ...]
    processes: tuple[ProcessView, ...]
    drops: Mapping[str, float]
    awaited: str = ""


def live_view(before: Reading, after: Reading) -> LiveView:
    """The rates between two readings of one run; ValueError if no time has passed."""
    if after.now_ns <= before.now_ns:
        raise ValueError("no time has passed between the two readings, so there is no rate")
    between = _Between(before, after)
    return LiveView(
        between.seconds,
        tuple(between.cores()),
        tuple(between.queues()),
        tuple(between.processes()),
        between.drops(),
        awaited_words(after),
    )


def awaited_words(reading: Reading) -> str:
    """The ranks that a run waits for, and to do what; "" if all are at work."""
    ranks = {agent.process for agent in reading.agents.values() if agent.kind == "rank"}
    states = {each.name: each.state for each in reading.processes if each.name in ranks}
    for others, lag, to in (((), "starting", "be ready"), (("done",), "running", "finish")):
        names = [name for name, state in states.items() if state == lag]
        if names and (not others or any(state in others for state in states.values())):
            return f"{names_words(names)} to {to}"
    return ""


def is_drop(counter: str) -> bool:
    """Whether a counter counts packets that were dropped."""
    return any(fnmatchcase(counter, pattern) for pattern in DROPS)


class _Between:
    """Two readings."""

    def __init__(self, before: Reading, after: Reading) -> None:
        self.before, self.after = before, after
        self.seconds = (after.now_ns - before.now_ns) / 1e9
        self.earlier = {process.name: process for process in before.processes}
        self.later = {process.name: process for process in after.processes}

    def rate(self, agent: str, *counters: str) -> float:
        """How often per second counters of `agent` went up; those that its kind has not: 0."""
        old, new = self.before.agents[agent].counters, self.after.agents[agent].counters
        return sum(new.get(name, 0) - old.get(name, 0) for name in counters) / self.seconds

    def share(self, earlier: int | None, later: int | None) -> float | None:
        """The share of the time that went to what two clocks, ns, have measured.

        A process without the earlier one has begun meanwhile: its clock began at 0.
        """
        if later is None:
            return None
        return (later - (earlier or 0)) / 1e9 / self.seconds

    def cores(self) -> Iterator[CoreView]:
        for index, node in self.after.nodes.items():
            earlier = self.before.nodes[index].interrupts
            for core, counts in enumerate(node.interrupts):
                agent = f"node{index}.irq{core}"
                if agent not in self.after.agents:
                    continue  # no agent takes interrupts there: a generator's node, or nic mx
                vectors = {
                    vector: (count - earlier[core][vector]) / self.seconds
                    for vector, count in enumerate(counts)
                }
                yield self._core(index, core, agent, vectors)

    def _core(self, node: int, core: int, agent: str, vectors: Mapping[int, float]) -> CoreView:
        process = self.after.agents[agent].process
        there, elsewhere = self.rate(agent, "recv_at_process"), self.rate(agent, "handover_event")
        return CoreView(
            node,
            core,
            self.later[process].pid,
            self.later[process].cpu,
            self.share(self.earlier[process].ran_ns, self.later[process].ran_ns),
            sum(vectors.values()),
            {vector: rate for vector, rate in vectors.items() if rate},
            self.rate(agent, "recv_packets", "recv_other"),
            self.rate(agent, "handover_endpoint", "handover_pull", "handover_event"),
            there / (there + elsewhere) if there + elsewhere else None,
        )

    def queues(self) -> Iterator[QueueView]:
        for index, node in self.after.nodes.items():
            earlier = self.before.nodes[index].interrupts
            for queue, affinity in enumerate(node.affinities):
                taken = sum(row[queue] for row in node.interrupts)
                yield QueueView(
                    index,
                    queue,
                    node.depths[queue],
                    (taken - sum(row[queue] for row in earlier)) / self.seconds,
                    affinity,
                    tuple(seat for seat in node.endpoints if seat.queue == queue),
                )

    def processes(self) -> Iterator[ProcessView]:
        """Ranks first, then the others, but for handlers, which are their cores' matter."""
        found = [view for view in self._processes(self.after.processes) if view.kind != "irq"]
        yield from sorted(found, key=lambda view: view.kind != "rank")

    def _processes(self, processes: Iterable[ProcessReading]) -> Iterator[ProcessView]:
        for now in processes:
            earlier = self.earlier[now.name]
            agents = [
                name for name, agent in self.after.agents.items() if agent.process == now.name
            ]
            kinds = {self.after.agents[agent].kind for agent in agents}
            spun = now.account.get("spin_ns", 0) - earlier.account.get("spin_ns", 0)
            waits = now.account.get("waits", 0) - earlier.account.get("waits", 0)
            busy = self.share(earlier.ran_ns, now.ran_ns)
            queued = self.share(earlier.queued_ns, now.queued_ns)
            yield ProcessView(
                now.name,
                min(kinds - {"irq"}, default="irq"),
                now.pid,
                now.cpu,
                now.state,
                busy,
                queued,
                spun / 1e9 / self.seconds,
                None if busy is None or queued is None else max(0.0, 1 - busy - queued),
                waits / self.seconds,
                sum(self._received(agent) for agent in agents),
                *(now.wait or ()),
            )

    def _received(self, agent: str) -> float:
        if self.after.agents[agent].kind == "rank":
            return self.rate(agent, "recv_messages")
        # A native MX NIC handles frames itself: they come to no rx ring.
        return max(self.rate(agent, "rx_packets"), self.rate(agent, "mx_handled"))

    def drops(self) -> dict[str, float]:
        sums: dict[str, float] = {}
        for agent, reading in self.after.agents.items():
            for counter in filter(is_drop, reading.counters):
                sums[counter] = sums.get(counter, 0) + self.rate(agent, counter)
        rising = [(name, rate) for name, rate in sums.items() if rate > 0]
        return dict(sorted(rising, key=lambda one: -one[1]))
