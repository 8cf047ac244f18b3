"""Which CPU each emulated core, each NIC and each dma agent gets.

Busy cores come first, each on a CPU of its own where possible; then those that take a rank's
interrupts, each on a CPU that no core of its node has, if there is one; then the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from shrimpmx.cluster.distances import Core, seat_apart
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.cluster.topology import Topology
from shrimpmx.core_lists import affinities, format_core_list
from shrimpmx.errors import InputError

# So many cores are named in a note; of more it says how many there are.
CORES_NAMED = 4
# What a core has to do; a third answer names the CPU that it shares.
BUSY, ALONE = "busy", "interrupts only, alone on its CPU"


def busy_cores(spec: ClusterSpec) -> set[Core]:
    """The cores with ranks or company."""
    ranks = {(rank.node, spec.home_core(number)) for number, rank in enumerate(spec.ranks)}
    return ranks | {(companion.node, companion.core) for companion in spec.companions}


def visited_cores(spec: ClusterSpec) -> set[Core]:
    """All cores of the nodes whose ranks go from core to core while they run."""
    nodes = {rank.node for rank in spec.ranks if rank.options.get("move_every", 0)}
    return {(node, core) for node in nodes for core in range(spec.host.cores)}


def interrupted_cores(spec: ClusterSpec) -> set[Core]:
    """The cores that what comes for ranks is handled on, or goes through."""
    found = {
        (rank.node, core)
        for number, rank in enumerate(spec.ranks)
        for core in spec.interrupt_cores(number)
    }
    if spec.nic.nic_kind == "mx":
        return found
    queues = affinities(spec.host.irq_binding, spec.nic.rx_queues, spec.host.cores)
    # A hash spreads another protocol over all queues; RPS hands on what one queue gets.
    every = spec.generator.other_rate > 0 and spec.mode == "generator"
    through = queues if every else queues[:1] if spec.nic.steering == "rps" else ()
    nodes = range(spec.full_nodes)
    return found | {(node, core) for node in nodes for cores in through for core in cores}


class Seats:
    """The seats of a run. `oversubscribed`: times mean nothing, since two busy cores share a CPU,
    or two cores of one node of which one takes interrupts.
    """

    def __init__(self, spec: ClusterSpec, topology: Topology) -> None:
        self.cores = [
            (node, core) for node in range(spec.full_nodes) for core in range(spec.host.cores)
        ]
        self.topology = topology
        self.cpus = list(topology.by_preference())
        self.nics_count = 1 if spec.mode == "generator" else spec.nodes
        self.busy = busy_cores(spec)
        self.visited = visited_cores(spec)
        self.active = self.busy | self.visited | interrupted_cores(spec)
        self.core_cpus: dict[Core, int] = {}
        self.nic_cpus: list[int] = []
        self.dma_cpus: dict[int, int] = {}
        self.reason = ""
        # A rank and its interrupts share a CPU where that was asked for.
        self.together = spec.distance == "SC"
        if spec.distance == "any":
            self._assign(spec)
        else:
            self._assign_apart(spec)
        self.core_cpus = {core: self.core_cpus[core] for core in self.cores}
        self._seat_dma(spec)
        self._apply_wishes(spec)
        _check_distances(spec, self)
        self.nic_alone = not set(self.nic_cpus) & set(self.core_cpus.values())
        self.oversubscribed = self._is_oversubscribed()

    def _assign(self, spec: ClusterSpec) -> None:
        count, cores = len(self.cpus), self.cores
        if count >= len(cores) + self.nics_count:
            self.reason = "each NIC and each core has a CPU of its own"
            free = iter(self.cpus)
            for node in range(spec.full_nodes):
                self.nic_cpus.append(next(free))
                self.core_cpus.update({(node, c): next(free) for c in range(spec.host.cores)})
        elif self._can_spare_one(spec):
            self.reason = "all NICs share one CPU, which nothing else uses"
            self.nic_cpus = [self.cpus[0]]
            self._share_out(self.cpus[1:])
        else:
            self._share_with_nics()
            self._share_out(self.cpus)

    def _share_with_nics(self) -> None:
        count = len(self.cpus)
        self.nic_cpus = [self.cpus[0]]
        self.reason = f"only {count} CPU{'s' if count > 1 else ''}: the NICs share CPU "
        self.reason += f"{self.cpus[0]} with a core"

    def _can_spare_one(self, spec: ClusterSpec) -> bool:
        """Whether the NICs can have a CPU that cores then lack."""
        if spec.mode == "generator":
            return len(self.cpus) > 1
        of_a_node = Counter(node for node, _ in self.active)
        return len(self.cpus) > max(len(self.busy | self.visited), *of_a_node.values())

    def _share_out(self, cpus: list[int]) -> None:
        # In turn, so that nodes 0 and 1 are on different CPUs, and a node's cores too.
        enough = len(cpus) >= len(self.cores)
        first = self.cores if enough else [core for core in self.cores if core in self.busy]
        for position, core in enumerate(first):
            self.core_cpus[core] = cpus[position % len(cpus)]
        self._seat_others(cpus)

    def _seat_others(self, cpus: list[int]) -> None:
        """Cores without a seat: where the fewest of their node are, then the fewest at all."""
        crowd = Counter(self.core_cpus.values())
        own = Counter((node, cpu) for (node, _), cpu in self.core_cpus.items())
        busy = {cpu for core, cpu in self.core_cpus.items() if core in self.busy}
        left = [core for core in self.cores if core not in self.core_cpus]
        for core in sorted(left, key=lambda core: core not in self.active):
            node = core[0]
            cpu = min(cpus, key=lambda cpu: (own[node, cpu], crowd[cpu], cpu in busy))
            self.core_cpus[core] = cpu
            crowd[cpu] += 1
            own[node, cpu] += 1

    def _assign_apart(self, spec: ClusterSpec) -> None:
        found = seat_apart(spec, self.topology, self.busy, self.nics_count)
        self.core_cpus, self.nic_cpus = dict(found.cores), found.nics
        alone = not set(found.nics) & set(found.cores.values())
        if not alone:
            self._share_with_nics()
        elif len(found.nics) < self.nics_count:
            self.reason = "all NICs share one CPU, which nothing else uses"
        else:
            self.reason = "each NIC has a CPU of its own"
        self._seat_others([cpu for cpu in self.cpus if not (alone and cpu in found.nics)])

    def _is_oversubscribed(self) -> bool:
        busy = [self.core_cpus[core] for core in sorted(self.busy | self.visited)]
        if len(set(busy)) < len(busy):
            return True
        if self.together:
            return False
        seats = [(node, self.core_cpus[node, core]) for node, core in sorted(self.active)]
        return len(set(seats)) < len(seats)

    def guests(self) -> Iterator[tuple[Core, int]]:
        """The cores that take interrupts and are not busy, on a CPU with active cores beside those
        that they share it with as was asked for.
        """
        for core in sorted(self.active - self.busy - self.visited):
            cpu = self.core_cpus[core]
            beside = [other for other in self.active - {core} if self.core_cpus[other] == cpu]
            if any(not self.together or node != core[0] for node, _ in beside):
                yield core, cpu

    def use_of(self, core: Core) -> str:
        """What happens on a core and beside it: BUSY, ALONE, or that it shares its CPU."""
        cpu = self.core_cpus[core]
        if core in self.busy | self.visited:
            return BUSY
        return ALONE if self.count_on(cpu) == 1 else f"interrupts only, shares CPU {cpu}"

    def _seat_dma(self, spec: ClusterSpec) -> None:
        """The dma agents: on CPUs that are left over, else with their nodes' core 0."""
        if not spec.host.copy_offload or spec.nic.nic_kind == "mx":
            return
        used = {*self.core_cpus.values(), *self.nic_cpus}
        free = [cpu for cpu in self.cpus if cpu not in used]
        for node in range(spec.full_nodes):
            self.dma_cpus[node] = free.pop(0) if free else self.core_cpus[node, 0]

    def dma_alone(self, node: int) -> bool:
        """Whether nothing else uses the CPU of the node's dma agent."""
        return self.count_on(self.dma_cpus[node]) == 1

    def count_on(self, cpu: int) -> int:
        """How many cores, NICs and dma agents are on a CPU."""
        return [*self.core_cpus.values(), *self.nic_cpus, *self.dma_cpus.values()].count(cpu)

    def _apply_wishes(self, spec: ClusterSpec) -> None:
        names = {f"node{node}.core{core}": (node, core) for node, core in self.cores}
        dma_names = {f"node{node}.dma": node for node in self.dma_cpus}
        for name, wished in spec.cpus.items():
            cpu = self.topology.cpu(wished).number
            if name in names:
                self.core_cpus[names[name]] = cpu
            elif name in dma_names:
                self.dma_cpus[dma_names[name]] = cpu
            elif name == "nic":
                self.nic_cpus = [cpu]
            elif name.endswith(".nic") and name[4:-4].isdigit() and self._has_nic(name):
                self._part_nics()
                self.nic_cpus[int(name[4:-4])] = cpu
            else:
                nics = [f"node{node}.nic" for node in range(self.nics_count)]
                places = ", ".join(["nic", *nics, *names, *dma_names])
                raise InputError(f"there is no place {name!r} to put on a CPU; places: {places}")

    def _has_nic(self, name: str) -> bool:
        return name.startswith("node") and int(name[4:-4]) < self.nics_count

    def _part_nics(self) -> None:
        """One NIC process per node, also where one for all was chosen."""
        if len(self.nic_cpus) < self.nics_count:
            self.nic_cpus = self.nic_cpus * self.nics_count


def _check_distances(spec: ClusterSpec, seats: Seats) -> None:
    """InputError if CPUs that were chosen by name are not at the distance that was asked for."""
    for number, rank in enumerate(spec.ranks) if spec.distance != "any" else ():
        home = seats.core_cpus[rank.node, spec.home_core(number)]
        taker = seats.core_cpus[rank.node, spec.interrupt_cores(number)[0]]
        found = seats.topology.distance(home, taker).value
        if found != spec.distance:
            raise InputError(
                f"cpus puts rank {number} on CPU {home} and its interrupts on CPU {taker}, which "
                f"are at distance {found}, but {spec.distance} is asked for"
            )


def places_words(places: Sequence[tuple[Core, int]]) -> str:
    """Cores and their CPUs, "node 0 core 1 on CPU 1"; of many, how many there are."""
    if len(places) > CORES_NAMED:
        return f"{len(places)} cores without ranks on CPUs {format_core_list(c for _, c in places)}"
    return ", ".join(f"node {node} core {core} on CPU {cpu}" for (node, core), cpu in places)
