"""CPUs for ranks and for the cores that take their interrupts, so far apart as was asked for.

What must share a CPU is one spot. Spots are given CPUs one after another, and taken back where it
does not work out; at first each spot and each NIC is to have a CPU of its own, then less is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.cluster.topology import Distance, Topology
from shrimpmx.core_lists import format_core_list
from shrimpmx.errors import PlacementError

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
    """CPUs of cores and of NICs, of which there is one CPU, or one for each."""

    cores: dict[Core, int]
    nics: list[int]


@dataclass(frozen=True)
class _Wish:
    """How much is asked for: spots apart ("all", those that are "busy", or "none"), so many CPUs
    left to NICs, and how close CPUs at distance S$ are (None: all the same).
    """

    apart: str
    nics: int
    closeness: tuple[bool, int] | None = None


def seat_apart(spec: ClusterSpec, topology: Topology, busy: set[Core], nics: int) -> Apart:
    """CPUs for all busy cores and those that take ranks' interrupts, at the spec's distance.

    Raises PlacementError if the topology has none.
    """
    wished = Distance(spec.distance)
    there = topology.examples()
    if wished not in there:
        raise PlacementError(
            f"distance {wished.value} needs {NEEDS[wished]}; {_cpus_words(topology)} "
            f"only {', '.join(distance.value for distance in there)}"
        )
    search = _Search(topology, wished, _pairs(spec), busy)
    for wish in _wishes(wished, topology, nics):
        if search.fits(wish):
            return Apart(search.core_cpus(), search.nic_cpus(wish.nics))
    raise PlacementError(
        f"distance {wished.value} cannot be had for {len(spec.ranks)} ranks at once: "
        f"{_cpus_words(topology)} it for fewer"
    )


def _cpus_words(topology: Topology) -> str:
    listed = format_core_list(topology.numbers)
    return f"CPUs {listed} have" if len(topology.cpus) > 1 else f"CPU {listed} has"


def _pairs(spec: ClusterSpec) -> list[tuple[Core, Core]]:
    """For each rank the core that it runs on and the one of its interrupts."""
    return [
        ((rank.node, spec.home_core(number)), (rank.node, spec.interrupt_cores(number)[0]))
        for number, rank in enumerate(spec.ranks)
    ]


def _wishes(wished: Distance, topology: Topology, nics: int) -> Iterator[_Wish]:
    """From what is best to what will do."""
    sizes = sorted({len(cache) for cache in topology.caches})
    # SMT siblings slow each other, so they come last, whatever they share.
    closest = [*((False, size) for size in sizes), None] if wished is Distance.SHARED_CACHE else ()
    for apart, left in dict.fromkeys(
        (("all", nics), ("all", 1), ("busy", 1), ("all", 0), ("busy", 0), ("none", 0))
    ):
        for closeness in closest or (None,):
            yield _Wish(apart, left, closeness)


@dataclass
class _Search:
    """The search for CPUs of spots, with what it found last."""

    topology: Topology
    wished: Distance
    pairs: Sequence[tuple[Core, Core]]
    busy: set[Core]
    found: list[int] = field(default_factory=list)
    _known: dict[tuple[int, int], tuple[Distance, bool, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cpus = self.topology.by_preference()
        self.spots = _spots(self.pairs, sorted(self.busy), self.wished is Distance.SAME_CORE)
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
        """CPUs for NICs: of those that are left, in the package of the node; else the first."""
        chosen: list[int] = []
        for node in range(count):
            chosen.append(self._nic_cpu({*self.found, *chosen}, self._package_of(node)))
        return chosen or [self.cpus[0]]

    def _nic_cpu(self, used: set[int], package: int) -> int:
        def order(cpu: int) -> tuple[bool, bool]:
            siblings = set(self.topology.siblings(cpu))
            return (bool(siblings & used), self.topology.cpu(cpu).package != package)

        return min((cpu for cpu in self.cpus if cpu not in used), key=order)

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
        used = set(self.found)
        room = len(self.cpus) - wish.nics - len(used)
        taken = used if wish.apart == "all" else set()
        if wish.apart == "busy" and self._is_busy(number):
            taken = {cpu for other, cpu in enumerate(self.found) if self._is_busy(other)}
        partners = [self.found[other] for other in self.partners[number] if other < number]
        node = self.spots[number][0][0]
        seats = zip(self.spots, self.found, strict=False)
        others = [cpu for spot, cpu in seats if spot[0][0] != node]
        fit = [
            cpu
            for cpu in self.cpus
            if cpu not in taken
            and (room > 0 or cpu in used)
            and all(self._is_fit(cpu, partner, wish) for partner in partners)
        ]
        return sorted(fit, key=lambda cpu: self._order(cpu, partners, others, used))

    def _order(
        self, cpu: int, partners: Sequence[int], others: Sequence[int], used: set[int]
    ) -> tuple[object, ...]:
        far = [self._between(cpu, other)[0] for other in others]
        return (
            cpu in used,
            [self._between(cpu, partner)[1:] for partner in partners],
            far.count(Distance.SAME_CORE) + far.count(Distance.SHARED_CACHE),
            len(far) - far.count(Distance.OTHER_PACKAGE),
            bool(set(self.topology.siblings(cpu)) & used),
        )

    def _is_busy(self, number: int) -> bool:
        return any(core in self.busy for core in self.spots[number])

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
