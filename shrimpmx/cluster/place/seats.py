"""Which CPU each emulated core, each NIC and each dma agent gets.

How many CPUs the NICs have depends on how many CPUs, nodes and emulated cores there are, and on how
many of the cores ranks can keep busy: neither on bindings nor on distances, which are compared.
Busy cores come first, each on a CPU of its own where possible; then those that take a rank's
interrupts, each on a CPU that no core of its node has, if there is one; then the rest. Simulated
hosts seat otherwise (simulation.hosts).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

from shrimpmx.cluster.place.distances import Apart, Core, pairs_of, seat_apart
from shrimpmx.cluster.place.topology import Topology
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.errors import InputError, did_you_mean
from shrimpmx.settings.cluster import DistanceName
from shrimpmx.settings.core_lists import affinities, format_core_list

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
    nodes = {rank.node for rank in spec.ranks if rank.options["move_every"]}
    return {(node, core) for node in nodes for core in range(spec.host.cores)}


def interrupted_cores(spec: ClusterSpec) -> set[Core]:
    """The cores that what comes for ranks is handled on, or goes through."""
    found = {
        (rank.node, core)
        for number, rank in enumerate(spec.ranks)
        for core in spec.interrupt_cores(number)
    }
    if not spec.kind.interrupts:
        return found
    queues = affinities(spec.host.irq_binding, spec.nic.rx_queues, spec.host.cores)
    # A hash spreads another protocol over all queues; RPS hands on what one queue gets.
    others = spec.generator.other_rate > 0 or spec.generator.other_window > 0
    every = others and spec.mode == "generator"
    through = queues if every else queues[:1] if spec.nic.steering == "rps" else ()
    nodes = range(spec.full_nodes)
    return found | {(node, core) for node in nodes for cores in through for core in cores}


def nic_cpus_count(spec: ClusterSpec, cpus: int) -> int:
    """How many of `cpus` CPUs the NICs have for themselves: one each, one for all, or none."""
    nics, cores = spec.nodes, spec.host.cores
    if spec.mode == "generator":
        return 1 if cpus > 1 else 0
    if cpus >= nics * (1 + cores):
        return nics
    return 1 if cpus > max(cores, _kept_busy(spec)) else 0


def _kept_busy(spec: ClusterSpec) -> int:
    """How many cores ranks and company can keep busy, wherever a binding moves the ranks."""
    ranks = Counter(rank.node for rank in spec.ranks)
    begun = {(rank.node, rank.core) for rank in spec.ranks}
    begun |= {(companion.node, companion.core) for companion in spec.companions}
    places = Counter(node for node, _ in begun | visited_cores(spec))
    return sum(min(spec.host.cores, max(ranks[node], places[node])) for node in places)


class Seats:
    """The seats of a run. `oversubscribed`: times mean nothing, since two busy cores share a CPU,
    or two cores of one node of which one takes interrupts. `otherwise`: what the distance has
    seated otherwise than runs are that ask for none, with which it is compared; "" if nothing.
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
        self.dma_cpus: dict[int, int] = {}
        self.nics_apart = nic_cpus_count(spec, len(self.cpus))
        found = self._apart(spec, spec.distance)
        self.core_cpus, self.nic_cpus = dict(found.cores), found.nics
        # A rank and its interrupts share a CPU where that was asked for.
        self.spot = {core: spot for spot in found.spots for core in spot}
        self.reason = self._nics_words()
        of_nics = set(found.nics)
        self._seat_others([cpu for cpu in self.cpus if cpu not in of_nics])
        self.nic_cpus = found.nics or [self.cpus[0]]
        self.otherwise = self._otherwise(spec, found)
        self.core_cpus = {core: self.core_cpus[core] for core in self.cores}
        self._seat_dma(spec)
        self._apply_wishes(spec)
        _check_distances(spec, self)
        self.nic_alone = not set(self.nic_cpus) & set(self.core_cpus.values())
        self.oversubscribed = self._is_oversubscribed()

    def _apart(self, spec: ClusterSpec, distance: DistanceName) -> Apart:
        busy = self.busy | self.visited
        return seat_apart(pairs_of(spec, distance), distance, self.topology, busy, self.nics_apart)

    def _nics_words(self) -> str:
        if not self.nic_cpus:
            count = len(self.cpus)
            only = f"only {count} CPU{'s' if count > 1 else ''}"
            if self.nics_apart:
                only = "no CPU is left"
            return f"{only}: the NICs share CPU {self.cpus[0]} with a core"
        if len(self.nic_cpus) < self.nics_count:
            return "all NICs share one CPU, which nothing else uses"
        if len(self.cpus) < len(self.cores) + self.nics_count:
            return "each NIC has a CPU of its own"
        return "each NIC and each core has a CPU of its own"

    def _otherwise(self, spec: ClusterSpec, found: Apart) -> str:
        if spec.distance == "any":
            return ""
        usual = self._apart(spec, "any")
        words = []
        if len(found.nics) != len(usual.nics):
            words.append("the NICs have fewer CPUs")
        now, then = (self._between_nodes(spec, each) for each in (found, usual))
        if now != then:
            words.append(f"the nodes' first ranks are {now} apart, not {then}")
        return " and ".join(words)

    def _between_nodes(self, spec: ClusterSpec, found: Apart) -> str:
        """The distances from the first node's first rank to that of each other node."""
        first = {
            rank.node: found.cores[rank.node, spec.home_core(number)]
            for number, rank in reversed(list(enumerate(spec.ranks)))
        }
        cpus = [first[node] for node in sorted(first)]
        far = [self.topology.distance(cpus[0], cpu).value for cpu in cpus[1:]]
        return ", ".join(dict.fromkeys(far))

    def _seat_others(self, cpus: list[int]) -> None:
        """Cores without a seat: where the fewest of their node are, then the fewest at all; of
        CPUs that are alike in that, those in the package of their node's first core.
        """
        crowd = Counter(self.core_cpus.values())
        own = Counter((node, cpu) for (node, _), cpu in self.core_cpus.items())
        busy = {cpu for core, cpu in self.core_cpus.items() if core in self.busy}
        home = {node: self._package(cpu) for (node, _), cpu in reversed(self.core_cpus.items())}

        def order(node: int, cpu: int) -> tuple[int, int, bool, bool]:
            away = home.get(node) != self._package(cpu)
            return (own[node, cpu], crowd[cpu], cpu in busy, away)

        left = [core for core in self.cores if core not in self.core_cpus]
        for core in sorted(left, key=lambda core: core not in self.active):
            node = core[0]
            cpu = min(cpus, key=lambda cpu: order(node, cpu))
            self.core_cpus[core] = cpu
            crowd[cpu] += 1
            own[node, cpu] += 1

    def _package(self, cpu: int) -> int:
        return self.topology.cpu(cpu).package

    def _is_oversubscribed(self) -> bool:
        busy = [self.core_cpus[core] for core in sorted(self.busy | self.visited)]
        if len(set(busy)) < len(busy):
            return True
        # Of each node the CPUs of active cores, each spot once.
        spots = {
            (core[0], self.spot.get(core, (core,))): self.core_cpus[core] for core in self.active
        }
        seats = [(node, cpu) for (node, _), cpu in spots.items()]
        return len(set(seats)) < len(seats)

    def guests(self) -> Iterator[tuple[Core, int]]:
        """The cores that take interrupts and are not busy, on a CPU with active cores beside those
        that they share it with as was asked for.
        """
        there: dict[int, set[Core]] = defaultdict(set)
        for core in self.active:
            there[self.core_cpus[core]].add(core)
        for core in sorted(self.active - self.busy - self.visited):
            cpu = self.core_cpus[core]
            if there[cpu] - set(self.spot.get(core, (core,))):
                yield core, cpu

    def use_of(self, core: Core) -> str:
        """What happens on a core and beside it: BUSY, ALONE, or that it shares its CPU."""
        cpu = self.core_cpus[core]
        if core in self.busy or core in self.visited:
            return BUSY
        return ALONE if self.count_on(cpu) == 1 else f"interrupts only, shares CPU {cpu}"

    def _seat_dma(self, spec: ClusterSpec) -> None:
        """The dma agents: on CPUs that are left over, else with their nodes' core 0."""
        if not spec.host.copy_offload or not spec.kind.interrupts:
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
        return self._crowd[cpu]

    @cached_property
    def _crowd(self) -> Counter[int]:
        return Counter((*self.core_cpus.values(), *self.nic_cpus, *self.dma_cpus.values()))

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
                places = ["nic", *nics, *names, *dma_names]
                raise InputError(
                    f"there is no agent {name!r} to place on a CPU; there are {', '.join(places)}"
                    f"{did_you_mean(name, places)}"
                )

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
                f"cpus puts rank {number} on CPU {home} and its interrupts on CPU {taker}, at "
                f"distance {found}, but distance={spec.distance} is set: change one of them"
            )


def places_words(places: Sequence[tuple[Core, int]]) -> str:
    """Cores and their CPUs, "node 0 core 1 on CPU 1"; of many, how many there are."""
    if len(places) > CORES_NAMED:
        return f"{len(places)} cores without ranks on CPUs {format_core_list(c for _, c in places)}"
    return ", ".join(f"node {node} core {core} on CPU {cpu}" for (node, core), cpu in places)
