"""CPUs for busy cores and, so far from them as was asked for, the cores of their interrupts.

What must share a CPU is one spot. Spots are given CPUs one after another, and taken back where it
does not work out; at first each spot is to have a CPU of its own, then less is asked. Busy cores
of different nodes are as far apart as they can be, whatever the distance.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from shrimpmx.cluster.place.topology import Distance, Topology
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.errors import PlacementError
from shrimpmx.native.records import dataclass, field
from shrimpmx.settings.cluster import DistanceName
from shrimpmx.settings.core_lists import format_core_list

# An emulated core: node and number.
Core = tuple[int, int]
# Spots that are tried before a way to seat them is given up (ours).
TRIES_MAX = 5000
# What a machine lacks that has not this distance.
NEEDS = {
    Distance.SHARED_CACHE: "two CPUs that share a cache",
    Distance.SAME_PACKAGE: "two CPUs of one package that share no cache",
    Distance.OTHER_PACKAGE: "CPUs of two packages",
}


@dataclass(frozen=True)
class Apart:
    """CPUs of cores and of NICs: one for each NIC, one for all, or none. `spots`: the cores that
    were seated, those together that must share a CPU.
    """

    cores: dict[Core, int]
    nics: list[int]
    spots: list[tuple[Core, ...]]


@dataclass(frozen=True)
class _Wish:
    """How much is asked for: spots apart ("all", those that are "busy", or "none"), so many CPUs
    left to NICs, and how close CPUs at distance S$ are (None: all the same).
    """

    apart: str
    nics: int
    closeness: tuple[bool, int] | None = None


def pairs_of(spec: ClusterSpec, distance: DistanceName) -> list[tuple[Core, Core]]:
    """What `distance` is about: each rank's core and the one of its interrupts; none if "any"."""
    if distance == "any":
        return []
    return [
        ((rank.node, spec.home_core(number)), (rank.node, spec.interrupt_cores(number)[0]))
        for number, rank in enumerate(spec.ranks)
    ]


def seat_apart(
    pairs: Sequence[tuple[Core, Core]],
    distance: DistanceName,
    topology: Topology,
    busy: Set[Core],
    nics: int,
) -> Apart:
    """CPUs for all busy cores and for the `pairs`, which are at that distance; `nics` CPUs are left
    to the NICs, or fewer if it must be.

    Raises PlacementError if the topology has none.
    """
    wished = None if distance == "any" else Distance(distance)
    there = topology.examples()
    if wished is not None and wished not in there:
        raise PlacementError(
            f"distance {wished.value} needs {NEEDS[wished]}; {_cpus_words(topology)} "
            f"only {', '.join(distance.value for distance in there)}"
        )
    search = _Search(topology, wished, pairs, busy, nics)
    for wish in _wishes(wished, topology, nics):
        if search.fits(wish):
            return Apart(search.core_cpus(), search.nic_cpus(wish.nics), search.spots)
    raise PlacementError(
        f"distance {distance} is not available for {len(pairs)} ranks at once: "
        f"{_cpus_words(topology)} room for fewer"
    )


def _cpus_words(topology: Topology) -> str:
    listed = format_core_list(topology.numbers)
    return f"CPUs {listed} have" if len(topology.cpus) > 1 else f"CPU {listed} has"


def _wishes(wished: Distance | None, topology: Topology, nics: int) -> Iterator[_Wish]:
    """From what is best to what will do. The NICs' CPUs are the last to be given up, since runs at
    different distances are compared.
    """
    sizes = sorted({len(cache) for cache in topology.caches})
    # SMT siblings slow each other, so they come last, whatever they share.
    closest = [*((False, size) for size in sizes), None] if wished is Distance.SHARED_CACHE else ()
    lefts = dict.fromkeys((nics, min(nics, 1), 0))
    steps = [(apart, left) for left in lefts for apart in ("all", "busy")]
    for apart, left in (*steps, ("none", 0)):
        for closeness in closest or (None,):
            yield _Wish(apart, left, closeness)


@dataclass
class _Search:
    """The search for CPUs of spots, with what it found last."""

    topology: Topology
    wished: Distance | None
    pairs: Sequence[tuple[Core, Core]]
    busy: Set[Core]
    nics: int
    found: list[int] = field(default_factory=list)
    _known: dict[tuple[int, int], tuple[Distance, bool, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        by_preference = self.topology.by_preference()
        # A CPU that all NICs share is the first one.
        ahead = int(self.nics == 1)
        self.cpus = (*by_preference[ahead:], *by_preference[:ahead])
        self.spots = _spots(self.pairs, sorted(self.busy), self.wished is Distance.SAME_CORE)
        self.are_busy = [not self.busy.isdisjoint(spot) for spot in self.spots]
        place = {core: number for number, spot in enumerate(self.spots) for core in spot}
        self.place: Mapping[Core, int] = place
        self.partners: list[set[int]] = [set() for _ in self.spots]
        for first, second in self.pairs:
            if place[first] != place[second]:
                self.partners[place[first]].add(place[second])
                self.partners[place[second]].add(place[first])

    def core_cpus(self) -> dict[Core, int]:
        """The CPU of each core that has a spot."""
        return {core: self.found[number] for core, number in self.place.items()}

    def nic_cpus(self, count: int) -> list[int]:
        """CPUs for NICs, of those that are left, in the package of the node; first for one NIC."""
        chosen: list[int] = []
        for node in range(count):
            chosen.append(self._nic_cpu({*self.found, *chosen}, self._package_of(node)))
        return chosen

    def _nic_cpu(self, used: set[int], package: int) -> int:
        def order(cpu: int) -> tuple[bool, bool]:
            siblings = set(self.topology.siblings(cpu))
            away = self.nics > 1 and self.topology.cpu(cpu).package != package
            return (bool(siblings & used), away)

        left = (cpu for cpu in self.topology.by_preference() if cpu not in used)
        return min(left, key=order)

    def _package_of(self, node: int) -> int:
        """Where a node's first rank is; without one, where the first node's is."""
        seats = zip(self.spots, self.found, strict=True)
        cpu = next((cpu for spot, cpu in seats if spot[0][0] == node), self.found[0])
        return self.topology.cpu(cpu).package

    def fits(self, wish: _Wish) -> bool:
        """Whether all spots can be seated so."""
        self.found = []
        if wish.apart == "all" and len(self.spots) + wish.nics > len(self.cpus):
            return False
        tries = max(TRIES_MAX, 4 * len(self.spots))
        # For each spot that has a CPU, and the next one, the CPUs that are left to be tried.
        left = [iter(self._candidates(0, wish))]
        while left and tries:
            cpu = next(left[-1], None)
            if cpu is None:
                left.pop()
                self.found = self.found[: len(left) - 1]
                continue
            tries -= 1
            self.found.append(cpu)
            if len(self.found) == len(self.spots):
                return True
            left.append(iter(self._candidates(len(self.found), wish)))
        return False

    def _candidates(self, number: int, wish: _Wish) -> list[int]:
        """The CPUs that a spot may have, those first that are farther from other nodes."""
        used = Counter(self.found)
        room = len(self.cpus) - wish.nics - len(used)
        busy = set(itertools.compress(self.found, self.are_busy))
        taken = set(used) if wish.apart == "all" else set()
        if wish.apart == "busy" and self.are_busy[number]:
            taken = busy
        partners = [self.found[other] for other in self.partners[number] if other < number]
        fit = [
            cpu
            for cpu in self.cpus
            if cpu not in taken
            and (room > 0 or cpu in used)
            and all(self._is_fit(cpu, partner, wish) for partner in partners)
        ]
        # The ranks' distance first: that must not depend on where interrupts went.
        others = self._others(number, only_busy=True), self._others(number, only_busy=False)
        siblings = {sibling for cpu in used for sibling in self.topology.siblings(cpu)}

        def order(cpu: int) -> tuple[object, ...]:
            close = [self._between(cpu, partner)[1:] for partner in partners]
            nearness = [self._nearness(cpu, each) for each in others]
            return (used[cpu], cpu in busy, close, nearness, cpu in siblings)

        return sorted(fit, key=order)

    def _others(self, number: int, only_busy: bool) -> Counter[int]:
        """The CPUs of other nodes' spots, and how many spots are on each."""
        node = self.spots[number][0][0]
        return Counter(
            cpu
            for other, cpu in enumerate(self.found)
            if self.spots[other][0][0] != node and (self.are_busy[other] or not only_busy)
        )

    def _nearness(self, cpu: int, others: Counter[int]) -> tuple[int, int, int]:
        """More is nearer: spots that share a cache with `cpu`, and those in its package; then,
        negative, how many CPUs share the smallest of these caches.
        """
        seen = [(*self._between(cpu, other), spots) for other, spots in others.items()]
        cached = (Distance.SAME_CORE, Distance.SHARED_CACHE)
        return (
            sum(spots for distance, *_, spots in seen if distance in cached),
            sum(spots for distance, *_, spots in seen if distance is not Distance.OTHER_PACKAGE),
            -sum(shared * spots for _, _, shared, spots in seen),
        )

    def _is_fit(self, cpu: int, partner: int, wish: _Wish) -> bool:
        distance, *closeness = self._between(cpu, partner)
        return distance is self.wished and wish.closeness in (None, tuple(closeness))

    def _between(self, first: int, second: int) -> tuple[Distance, bool, int]:
        """How far apart, whether on one physical core, and how many CPUs share a cache of both."""
        if (first, second) not in self._known:
            topology = self.topology
            self._known[first, second] = (
                topology.distance(first, second),
                second in topology.siblings(first),
                topology.shared_by(first, second),
            )
        return self._known[first, second]


def _spots(
    pairs: Sequence[tuple[Core, Core]], busy: Sequence[Core], together: bool
) -> list[tuple[Core, ...]]:
    """The cores that get CPUs, node by node, ranks before their interrupts; `together`: both in
    one spot.
    """
    spots: list[tuple[Core, ...]] = []
    parts = [part for pair in sorted(pairs) for part in ([pair] if together else _alone(pair))]
    for part in (*parts, *_alone(busy)):
        joined = [spot for spot in spots if set(spot) & set(part)]
        cores = tuple(dict.fromkeys(core for spot in (*joined, part) for core in spot))
        place = spots.index(joined[0]) if joined else len(spots)
        spots = [spot for spot in spots if spot not in joined]
        spots.insert(place, cores)
    return spots


def _alone(cores: Iterable[Core]) -> list[tuple[Core, ...]]:
    return [(core,) for core in cores]
