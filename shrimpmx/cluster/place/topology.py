"""The machine's CPUs: packages, shared caches, SMT, and how far apart two CPUs are.

Read from sysfs on the machine at hand, or made from hwloc's synthetic form, so that any machine
can be reasoned about.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path

from shrimpmx.cluster.place.synthetic import parse_synthetic
from shrimpmx.errors import InputError
from shrimpmx.settings.core_lists import format_core_list, parse_core_list

# So many caches are listed one by one; more are counted.
CACHES_LISTED = 8
SYSFS_CPUS = Path("/sys/devices/system/cpu")


class Distance(Enum):
    """How far apart two CPUs are (multiqueue paper, section IV)."""

    SAME_CORE = "SC"
    SHARED_CACHE = "S$"
    SAME_PACKAGE = "SP"
    OTHER_PACKAGE = "OP"


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
        usable = sorted(os.sched_getaffinity(0))
        return cls.from_sysfs(sysfs, usable)

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
        for cache in self.caches:
            for cpu in cache:
                found.setdefault(cpu, []).append(cache)
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
