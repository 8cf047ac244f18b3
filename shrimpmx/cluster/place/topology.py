"""The machine's CPUs: packages, shared caches, SMT, and how far apart two CPUs are;
machines by name.

Read from sysfs on the machine at hand, or made from hwloc's synthetic form, so that any machine
can be reasoned about.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from enum import Enum
from functools import cache, cached_property
from pathlib import Path

from shrimpmx.errors import InputError, did_you_mean
from shrimpmx.native.records import dataclass, field, replace
from shrimpmx.settings.core_lists import format_core_list, parse_core_list

# -- Machines in hwloc's synthetic form: "package:2 l2:2 core:2 pu:1", a level and how many of it
# each object of the level before has.
#
# Memory, sizes and levels that say nothing about distances (NUMA nodes, dies, groups, instruction
# caches) are read and have no effect. Source: hwloc's manual, chapter "Synthetic topologies".

# More CPUs than any list of cores can name.
CPUS_MAX = 4096
EXAMPLE = 'a synthetic topology is written as "package:2 l2:2 core:2 pu:1"'
# What a level is, by how its name begins; hwloc takes names that are cut short as well.
_KINDS = {
    r"pa\w*|so\w*": "package",
    r"l[1-5](u|d)?(cache)?": "cache",
    r"co\w*": "core",
    r"pu": "pu",
    r"l[1-5]i(cache)?|nu\w*|no\w*|di\w*|gr\w*|cl\w*": "other",
}
_LEVEL = r"(?i)(?P<name>[a-z]\w*):(?P<count>\d+)(\((?P<attributes>[^()]*)\))?"
# What is attached to a level, which hwloc writes in brackets: "[numa(memory=1GB)]".
_ATTACHED = r"\[[^\[\]]*\]"
_TOKEN = r"[^\s()]+(\([^()]*\))?|\S"
_LOOP = r"(\d+)\*(\d+)"


@dataclass(frozen=True)
class _Level:
    name: str
    kind: str
    count: int
    attributes: str


@dataclass(frozen=True)
class Described:
    """What a description says: number, package and core of each CPU, and the CPUs of each cache
    that several share.
    """

    cpus: tuple[tuple[int, int, int], ...]
    caches: tuple[frozenset[int], ...]


def parse_synthetic(text: str) -> Described:
    """The machine that `text` describes. InputError, which says what is wrong with it."""
    levels = [_level(match[0]) for match in re.finditer(_TOKEN, re.sub(_ATTACHED, " ", text))]
    _check(levels)
    total = math.prod(level.count for level in levels)
    if not 1 <= total <= CPUS_MAX:
        raise InputError(
            f"synthetic topology {text!r} has {total} CPUs; it may have 1 to {CPUS_MAX}"
        )
    numbers = _indexes(levels[-1], total)
    # How many CPUs an object of each level has: all below it.
    under = [
        math.prod(below.count for below in levels[place + 1 :]) for place in range(len(levels))
    ]
    sizes = {level.kind: size for level, size in zip(levels, under, strict=True)}
    package, core = sizes.get("package", total), sizes.get("core", 1)
    shares = {size for level, size in zip(levels, under, strict=True) if level.kind == "cache"}
    return Described(
        cpus=tuple(
            (number, place // package, min(numbers[place // core * core :][:core]))
            for place, number in enumerate(numbers)
        ),
        # Siblings share what their core has.
        caches=tuple(
            frozenset(numbers[first : first + size])
            for size in sorted(shares | {core})
            if size > 1
            for first in range(0, total, size)
        ),
    )


def _level(token: str) -> _Level:
    match = re.fullmatch(_LEVEL, token)
    if match is None:
        raise InputError(f"{token!r} is not a level of a topology: {EXAMPLE}")
    name = match["name"].lower()
    for pattern, kind in _KINDS.items():
        if re.fullmatch(pattern, name):
            return _Level(name, kind, int(match["count"]), match["attributes"] or "")
    raise InputError(
        f"{match['name']!r} is not a kind of level: use package, l1 to l5, core or pu; numa, die "
        "and group are accepted without effect"
    )


def _check(levels: list[_Level]) -> None:
    if not levels or levels[-1].kind != "pu":
        raise InputError(f"the last level must be pu, the CPUs of a core: {EXAMPLE}")
    for kind in ("package", "core", "pu"):
        if sum(level.kind == kind for level in levels) > 1:
            raise InputError(f"there is more than one level {kind!r}: {EXAMPLE}")
    names = [level.name for level in levels]
    if len(set(names)) < len(names):
        raise InputError(f"the topology names a level twice: {', '.join(names)}")
    kinds = [level.kind for level in levels if level.kind in ("package", "core")]
    if kinds == ["core", "package"]:
        raise InputError(f"cores are in packages, not packages in cores: {EXAMPLE}")


def _indexes(level: _Level, total: int) -> list[int]:
    """The numbers of the CPUs from left to right, as the level's attribute `indexes` has them."""
    given = re.search(r"indexes=([^\s)]*)", level.attributes)
    if given is None:
        return list(range(total))
    if re.fullmatch(r"\d+(,\d+)*", given[1]):
        numbers = [int(number) for number in given[1].split(",")]
    elif re.fullmatch(rf"{_LOOP}(:{_LOOP})*", given[1]):
        numbers = _interleaved([(int(s), int(n)) for s, n in re.findall(_LOOP, given[1])], total)
    else:
        raise InputError(
            f"indexes={given[1]} is neither a list of CPUs such as 0,2,1,3 nor of loops "
            "such as 2*2:1*2, each with its step*count"
        )
    if len(numbers) != total or len(set(numbers)) != total:
        raise InputError(
            f"indexes={given[1]} must give each of {total} CPUs a number of its own; it gives "
            f"{len(set(numbers))} different numbers"
        )
    return numbers


def _interleaved(loops: list[tuple[int, int]], total: int) -> list[int]:
    """Numbers that count up through the loops, the first of them fastest."""
    numbers, worth = [0] * total, 1
    for step, count in loops:
        if step == 0 or count == 0:
            raise InputError(
                "the topology's indexes have a loop with step or count 0: both are at least 1"
            )
        numbers = [known + place // step % count * worth for place, known in enumerate(numbers)]
        worth *= count
    return numbers


# So many caches are listed one by one; more are counted.
CACHES_LISTED = 8
SYSFS_CPUS = Path("/sys/devices/system/cpu")


class Distance(Enum):
    """How far apart two CPUs are (multiqueue paper, section IV)."""

    SAME_CORE = "SC"
    SHARED_CACHE = "S$"
    SAME_PACKAGE = "SP"
    OTHER_PACKAGE = "OP"


# What a cache line from so far away costs (costs/table.py); within a core it is free.
LINE_COSTS = {
    Distance.SHARED_CACHE: "line_cache_ns",
    Distance.SAME_PACKAGE: "line_package_ns",
    Distance.OTHER_PACKAGE: "line_system_ns",
}


@dataclass(frozen=True)
class Cpu:
    """One logical CPU. `core` is unique in its package; SMT siblings share it."""

    number: int
    package: int
    core: int


@dataclass(frozen=True)
class Topology:
    """The usable CPUs of a machine. `caches`: for each data cache, the CPUs that share it."""

    cpus: tuple[Cpu, ...]
    caches: tuple[frozenset[int], ...] = ()
    source: str = "description"
    _by_number: dict[int, Cpu] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.cpus:
            raise InputError("a topology needs at least one CPU")
        self._by_number.update({cpu.number: cpu for cpu in self.cpus})

    @classmethod
    def of_this_machine(cls, sysfs: Path = SYSFS_CPUS) -> Topology:
        """The CPUs that this process may run on, as sysfs describes them."""
        return _of_this_machine(sysfs, tuple(sorted(os.sched_getaffinity(0))))

    @classmethod
    def from_sysfs(cls, sysfs: Path, usable: Iterable[int]) -> Topology:
        """The CPUs `usable` as described below `sysfs`; what is missing counts as unshared."""
        cpus: list[Cpu] = []
        caches: set[frozenset[int]] = set()
        numbers = tuple(usable)
        for number in numbers:
            folder = sysfs / f"cpu{number}"
            package = _read_number(folder / "topology" / "physical_package_id", 0)
            siblings = _read_list(folder / "topology" / "thread_siblings_list", (number,))
            cpus.append(Cpu(number, package, min(siblings)))
            for index in sorted(folder.glob("cache/index*")):
                if _read_text(index / "type") != "Instruction":
                    shared = _read_list(index / "shared_cpu_list", (number,))
                    caches.add(frozenset(shared) & frozenset(numbers))
        shared_caches = sorted((c for c in caches if len(c) > 1), key=lambda c: (len(c), sorted(c)))
        return cls(tuple(cpus), tuple(shared_caches), "sysfs")

    @classmethod
    def from_synthetic(cls, text: str) -> Topology:
        """A machine in hwloc's form, "package:2 l2:2 core:2 pu:1"; InputError if it is none."""
        found = parse_synthetic(text)
        cpus = sorted((Cpu(*each) for each in found.cpus), key=lambda cpu: cpu.number)
        return cls(tuple(cpus), found.caches, text)

    def only(self, numbers: Iterable[int]) -> Topology:
        """The same machine, of which no other CPUs may be used. InputError if one is not there."""
        kept = tuple(sorted({self.cpu(number) for number in numbers}, key=lambda cpu: cpu.number))
        left = frozenset(cpu.number for cpu in kept)
        caches = tuple(cache & left for cache in self.caches if len(cache & left) > 1)
        return Topology(kept, caches, self.source)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The CPUs' numbers, ascending."""
        return tuple(cpu.number for cpu in self.cpus)

    @property
    def packages_count(self) -> int:
        """Number of packages (sockets)."""
        return len({cpu.package for cpu in self.cpus})

    @property
    def cores_count(self) -> int:
        """Number of physical cores."""
        return len({(cpu.package, cpu.core) for cpu in self.cpus})

    def cpu(self, number: int) -> Cpu:
        """The CPU `number`; InputError naming those there are if it is not one."""
        try:
            return self._by_number[number]
        except KeyError:
            raise InputError(
                f"there is no CPU {number} here; the usable CPUs are "
                f"{format_core_list(self.numbers)}"
            ) from None

    def distance(self, first: int, second: int) -> Distance:
        """How far apart two CPUs are. SMT siblings share every cache: S$."""
        one, other = self.cpu(first), self.cpu(second)
        if first == second:
            return Distance.SAME_CORE
        if any(second in cache for cache in self._caches_of.get(first, ())):
            return Distance.SHARED_CACHE
        if one.package == other.package:
            return Distance.SAME_PACKAGE
        return Distance.OTHER_PACKAGE

    def shared_by(self, first: int, second: int) -> int:
        """How many CPUs share the smallest cache that two CPUs share; 0 if they share none."""
        caches = self._caches_of.get(first, ())
        return min((len(cache) for cache in caches if second in cache), default=0)

    @cached_property
    def _caches_of(self) -> dict[int, list[frozenset[int]]]:
        """The caches that each CPU has."""
        found: dict[int, list[frozenset[int]]] = {}
        for shared in self.caches:
            for cpu in shared:
                found.setdefault(cpu, []).append(shared)
        return found

    def examples(self) -> dict[Distance, tuple[int, int]]:
        """For each distance that there is, two CPUs that are so far apart; the first such pair."""
        found: dict[Distance, tuple[int, int]] = {}
        alike = set()
        for first in self.numbers:
            caches = self._caches_of.get(first, [])
            # Of CPUs with the same package and caches each is as far from the others.
            kind = self.cpu(first).package, *map(id, caches)
            if kind in alike:
                continue
            alike.add(kind)
            near = set(self._of_packages[kind[0]]).union(*caches)
            if not found.keys() >= {Distance.SHARED_CACHE, Distance.SAME_PACKAGE}:
                for second in sorted(near):
                    found.setdefault(self.distance(first, second), (first, second))
            far = next((number for number in self.numbers if number not in near), None)
            if far is not None:
                found.setdefault(Distance.OTHER_PACKAGE, (first, far))
            if len(found) == len(Distance):
                break
        return {distance: found[distance] for distance in Distance if distance in found}

    @cached_property
    def _of_packages(self) -> dict[int, list[int]]:
        """The CPUs of each package."""
        found: dict[int, list[int]] = {}
        for cpu in self.cpus:
            found.setdefault(cpu.package, []).append(cpu.number)
        return found

    def siblings(self, number: int) -> tuple[int, ...]:
        """All CPUs on the physical core of CPU `number`, itself included."""
        one = self.cpu(number)
        return self._of_cores[one.package, one.core]

    @cached_property
    def _of_cores(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """The CPUs of each physical core, by its package and number."""
        found: dict[tuple[int, int], tuple[int, ...]] = {}
        for cpu in self.cpus:
            core = cpu.package, cpu.core
            found[core] = (*found.get(core, ()), cpu.number)
        return found

    def by_preference(self) -> tuple[int, ...]:
        """All CPUs in the order to use them: package by package, SMT siblings last.

        Two busy siblings halve each other's speed, so one CPU of every core comes first.
        """

        def order(cpu: Cpu) -> tuple[int, int, int]:
            return (self.siblings(cpu.number).index(cpu.number), cpu.package, cpu.number)

        return tuple(cpu.number for cpu in sorted(self.cpus, key=order))

    def describe(self) -> str:
        """One line: how many CPUs, cores and packages, and what is shared."""
        shared = "; ".join(format_core_list(cache) for cache in self.caches) or "none"
        if len(self.caches) > CACHES_LISTED:
            sizes = sorted({len(cache) for cache in self.caches})
            counts = [sum(len(cache) == size for cache in self.caches) for size in sizes]
            pairs = zip(counts, sizes, strict=True)
            shared = ", ".join(f"{count} of {size} CPUs" for count, size in pairs)
        return (
            f"{_count(len(self.cpus), 'CPU')} ({format_core_list(self.numbers)}), "
            f"{_count(self.cores_count, 'core')}, {_count(self.packages_count, 'package')}, "
            f"shared caches: {shared}"
        )


@cache
def _of_this_machine(sysfs: Path, usable: tuple[int, ...]) -> Topology:
    return Topology.from_sysfs(sysfs, usable)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _read_text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _read_number(path: Path, default: int) -> int:
    text = _read_text(path)
    # A machine without the file, or with -1 in it, has one package.
    return int(text) if text.isdigit() else default


def _read_list(path: Path, default: tuple[int, ...]) -> tuple[int, ...]:
    text = _read_text(path)
    return parse_core_list(text) if text else default


@dataclass(frozen=True)
class Machine:
    """`synthetic` is its hwloc description, `what` says in a few words what it stands for.

    `cache_bytes`: a core's first level, for code and for data each, and the last level that it
    has (perhaps with others); None: not known, so that they cannot be simulated.
    """

    synthetic: str
    what: str
    cache_bytes: tuple[int, int] | None = None


MACHINES = {
    # hwloc's test machine 8em64t-2s2ca2c, an E5345 as in the paper, has these numbers on Linux.
    "clovertown-2007": Machine(
        "package:2 l2:2(size=4MB) core:2 pu:1(indexes=0,4,2,6,1,5,3,7)",
        "2 quad-core Xeon E5345, an L2 for each two cores (multiqueue, Figure 4)",
        cache_bytes=(32 << 10, 4 << 20),
    ),
    "one-l3-8": Machine("package:1 l3:1 core:8 pu:1", "8 cores that share an L3, no SMT"),
    "two-socket-32": Machine(
        "package:2 l3:1 core:16 pu:2(indexes=2*32:1*2)",
        "2 packages of 16 cores with SMT, an L3 each; siblings are 0 and 32, 1 and 33, ...",
    ),
    "chiplets-16": Machine(
        "package:1 l3:2 core:8 pu:2(indexes=2*16:1*2)",
        "a package of 16 cores with SMT, an L3 for each 8 of them",
    ),
}


def topology_of(text: str) -> Topology:
    """The topology of the machine of that name, or of that synthetic description.

    InputError that lists the names if it is neither.
    """
    if ":" in text:
        return Topology.from_synthetic(text)
    if text not in MACHINES:
        raise InputError(
            f"there is no machine {text!r}; there are {', '.join(MACHINES)}, or give a synthetic "
            f'topology such as "package:2 l2:2 core:2 pu:1"{did_you_mean(text, MACHINES)}'
        )
    return replace(Topology.from_synthetic(MACHINES[text].synthetic), source=text)
