"""Where everything runs on simulated hosts.

Emulated cores are a host's CPUs in their order, SMT siblings last, and lie as the platform says,
unless a distance is asked for. Behind the CPUs of a platform come two more, each in a package of
its own: those of the NIC and of the dma agent.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterator, Set

from shrimpmx.cluster.place.distances import Apart, Core, pairs_of, seat_apart
from shrimpmx.cluster.place.seats import Seats
from shrimpmx.cluster.place.topology import Cpu, Topology
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.settings.cluster import DistanceName
from shrimpmx.settings.model import HostModelParameters, packages_of


def cores_of(spec: ClusterSpec) -> Topology:
    """The CPUs of an emulated host's cores: as its model says, or of as many packages as they
    need.
    """
    count, inside = packages_of(spec.model.host_topology)
    each = Topology.from_synthetic(f"package:1 {inside}").cores_count
    packages = max(count, -(-spec.host.cores // each))
    return Topology.from_synthetic(f"package:{packages} {inside}")


def host_of(spec: ClusterSpec) -> Topology:
    """One emulated host: the CPUs of its cores, then that of its NIC and that of its dma agent."""
    cores = cores_of(spec)
    free, packages = max(cores.numbers) + 1, cores.packages_count
    more = Cpu(free, packages, 0), Cpu(free + 1, packages + 1, 0)
    return Topology((*cores.cpus, *more), cores.caches, cores.source)


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


class HostSeats(Seats):
    """The seats of all nodes, each on a host of its own."""

    def __init__(self, spec: ClusterSpec) -> None:
        host = host_of(spec)
        self._size = max(host.numbers) + 1
        super().__init__(spec, hosts_of(host, spec.nodes))

    def _apart(self, spec: ClusterSpec, distance: DistanceName) -> Apart:
        size = self._size
        apart = Apart({}, [(node + 1) * size - 2 for node in range(self.nics_count)], [])
        for node, one in enumerate(self._of_nodes(spec, distance)):
            for (_, core), cpu in one.cores.items():
                apart.cores[node, core] = node * size + cpu
            apart.spots.extend(tuple((node, core) for _, core in spot) for spot in one.spots)
        return apart

    def _of_nodes(self, spec: ClusterSpec, distance: DistanceName) -> Iterator[Apart]:
        """Each node's seats on its host, as if it were node 0; those that are alike once."""
        cores = cores_of(spec)
        pairs: dict[int, list[tuple[Core, Core]]] = defaultdict(list)
        for (node, home), (_, taker) in pairs_of(spec, distance):
            pairs[node].append(((0, home), (0, taker)))
        busy: dict[int, set[Core]] = defaultdict(set)
        for node, core in self.busy | self.visited:
            busy[node].add((0, core))

        @functools.cache
        def seated(pairs: tuple[tuple[Core, Core], ...], busy: frozenset[Core]) -> Apart:
            one = seat_apart(pairs, distance, cores, busy, 0) if pairs else Apart({}, [], [])
            left = (cpu for cpu in cores.by_preference() if cpu not in one.cores.values())
            for core in range(spec.host.cores):
                if (0, core) not in one.cores:
                    one.cores[0, core] = next(left)
            return one

        for node in range(spec.full_nodes):
            yield seated(tuple(pairs[node]), frozenset(busy[node]))

    def _seat_dma(self, spec: ClusterSpec) -> None:
        if spec.host.copy_offload and spec.kind.interrupts:
            self.dma_cpus = {node: (node + 1) * self._size - 1 for node in range(spec.full_nodes)}
