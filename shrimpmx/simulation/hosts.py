"""Where everything runs on simulated hosts: those that are alike are seated once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Set
from dataclasses import replace

from shrimpmx.cluster.place.distances import Core
from shrimpmx.cluster.place.seats import (
    Seats,
    busy_cores,
    interrupted_cores,
    visited_cores,
)
from shrimpmx.cluster.place.topology import Cpu, Topology
from shrimpmx.cluster.spec import ClusterSpec, CompanionSpec, RankSpec
from shrimpmx.settings.model import HostModelParameters, packages_of


def host_of(spec: ClusterSpec) -> Topology:
    """One emulated host: as its model says, or of more packages, with a CPU for each core, for the
    NIC and for the dma agent, which need one of no real host.
    """
    count, inside = packages_of(spec.model.host_topology)
    each = Topology.from_synthetic(f"package:1 {inside}").cores_count
    packages = max(count, -(-(spec.host.cores + 2) // each))
    return Topology.from_synthetic(f"package:{packages} {inside}")


def hosts_of(host: Topology, count: int) -> Topology:
    """So many hosts like this one; the CPUs of each are numbered on behind those before."""
    size = max(host.numbers) + 1
    packages = max(cpu.package for cpu in host.cpus) + 1
    cpus = [
        Cpu(cpu.number + index * size, cpu.package + index * packages, cpu.core)
        for index in range(count)
        for cpu in host.cpus
    ]
    caches = [
        frozenset(number + index * size for number in cache)
        for index in range(count)
        for cache in host.caches
    ]
    return Topology(tuple(cpus), tuple(caches), f"{count} hosts: {host.source}")


def asleep_of(model: HostModelParameters, hosts: Topology) -> Callable[[int], Set[int]]:
    """Gives, by a CPU's number, the numbers of the others that it sleeps with."""
    found: dict[int, set[int]] = defaultdict(set)
    for cache in hosts.caches if model.sleeps_with == "cache" else ():
        for number in cache:
            found[number] |= cache - {number}
    return lambda number: found[number]


def seats_of(spec: ClusterSpec) -> Seats:
    """The seats of a simulated run."""
    host = host_of(spec)
    # A binding file tells nodes apart, and in generator mode only one has cores.
    if spec.binding.kind == "file" or spec.mode == "generator":
        return Seats(spec, hosts_of(host, spec.nodes))
    return HostSeats(spec, host)


class HostSeats(Seats):
    """The seats of all nodes, each on a host of its own like `host`."""

    def __init__(self, spec: ClusterSpec, host: Topology) -> None:
        self.cores = [(node, core) for node in range(spec.nodes) for core in range(spec.host.cores)]
        self.topology = hosts_of(host, spec.nodes)
        self.cpus = list(self.topology.by_preference())
        self.nics_count = self.nics_apart = spec.nodes
        self.busy, self.visited = busy_cores(spec), visited_cores(spec)
        self.active = self.busy | self.visited | interrupted_cores(spec)
        self.core_cpus: dict[Core, int] = {}
        self.nic_cpus: list[int] = []
        self.dma_cpus: dict[int, int] = {}
        self.spot: dict[Core, tuple[Core, ...]] = {}
        self.otherwise = ""
        size = max(host.numbers) + 1
        seated: dict[object, Seats] = {}
        for node, (ranks, company) in enumerate(_people(spec)):
            alike = tuple(_needs(rank) for rank in ranks), tuple(each.core for each in company)
            if alike not in seated:
                alone = replace(spec, nodes=1, ranks=ranks or (_NOBODY,), companions=company)
                seated[alike] = Seats(alone, host)
            self._seat(node, seated[alike], node * size)
        self.reason = self._nics_words()
        self.nic_alone = all(seats.nic_alone for seats in seated.values())
        self.oversubscribed = any(seats.oversubscribed for seats in seated.values())

    def _seat(self, node: int, one: Seats, first_cpu: int) -> None:
        """The seats of a node: those of a host alike, whose CPUs begin there."""
        for (_, core), cpu in one.core_cpus.items():
            self.core_cpus[node, core] = first_cpu + cpu
        for (_, core), spot in one.spot.items():
            self.spot[node, core] = tuple((node, other) for _, other in spot)
        self.nic_cpus += [first_cpu + cpu for cpu in one.nic_cpus]
        for cpu in one.dma_cpus.values():
            self.dma_cpus[node] = first_cpu + cpu
        self.otherwise = self.otherwise or one.otherwise


# A cluster needs a rank; of a node without any the seats are those of an idle one.
_NOBODY = RankSpec(0, "idle")


def _people(spec: ClusterSpec) -> list[tuple[tuple[RankSpec, ...], tuple[CompanionSpec, ...]]]:
    """The ranks and the company of each node, as if it were node 0."""
    ranks: dict[int, list[RankSpec]] = defaultdict(list)
    company: dict[int, list[CompanionSpec]] = defaultdict(list)
    for rank in spec.ranks:
        ranks[rank.node].append(replace(rank, node=0))
    for companion in spec.companions:
        company[companion.node].append(replace(companion, node=0))
    return [(tuple(ranks[node]), tuple(company[node])) for node in range(spec.nodes)]


def _needs(rank: RankSpec) -> tuple[int, bool, bool]:
    """All of a rank that its seat depends on."""
    return rank.core, rank.bound, rank.options["move_every"] > 0
