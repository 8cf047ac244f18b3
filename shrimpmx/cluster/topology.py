"""The machine's CPUs: packages, shared caches, SMT, and how far apart two CPUs are.

Read from sysfs on the machine at hand, or made from a description (a dict) so that any
machine can be reasoned about.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from shrimpmx.errors import InputError

SYSFS_CPUS = Path("/sys/devices/system/cpu")


class Distance(Enum):
    """How far apart two CPUs are (multiqueue paper, section IV)."""

    SAME_CORE = "SC"
    SHARED_CACHE = "S$"
    SAME_PACKAGE = "SP"
    OTHER_PACKAGE = "OP"


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """The CPUs of a list as the kernel writes it: "0-3,8" -> (0, 1, 2, 3, 8)."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if part:
            cpus.extend(range(int(first), int(last or first) + 1))
    return tuple(cpus)


def format_cpu_list(cpus: Iterable[int]) -> str:
    """The reverse of parse_cpu_list: (0, 1, 2, 3, 8) -> "0-3,8"."""
    ranges: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


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
    def from_description(cls, description: Mapping[str, Any]) -> Topology:
        """A machine from nested lists.

        `{"packages": [[[0], [1]], [[2, 3]]]}` has two packages, the first with two cores of
        one CPU each, the second with one core of two SMT siblings; `"caches": [[0, 1]]` lists
        the CPUs that share a cache (siblings always do).
        """
        cpus: list[Cpu] = []
        caches = [frozenset(shared) for shared in description.get("caches", [])]
        for package, cores in enumerate(description["packages"]):
            for siblings in cores:
                cpus.extend(Cpu(number, package, min(siblings)) for number in siblings)
                if len(siblings) > 1:
                    caches.append(frozenset(siblings))
        cpus.sort(key=lambda cpu: cpu.number)
        return cls(tuple(cpus), tuple(caches), "description")

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
                f"{format_cpu_list(self.numbers)}"
            ) from None

    def distance(self, first: int, second: int) -> Distance:
        """How far apart two CPUs are. SMT siblings share every cache: S$."""
        one, other = self.cpu(first), self.cpu(second)
        if first == second:
            return Distance.SAME_CORE
        if any(first in cache and second in cache for cache in self.caches):
            return Distance.SHARED_CACHE
        if one.package == other.package:
            return Distance.SAME_PACKAGE
        return Distance.OTHER_PACKAGE

    def siblings(self, number: int) -> tuple[int, ...]:
        """All CPUs on the physical core of CPU `number`, itself included."""
        one = self.cpu(number)
        return tuple(
            cpu.number for cpu in self.cpus if (cpu.package, cpu.core) == (one.package, one.core)
        )

    def by_preference(self) -> tuple[int, ...]:
        """All CPUs in the order to use them: package by package, SMT siblings last.

        Two busy siblings halve each other's speed, so one CPU of every core comes first.
        """

        def order(cpu: Cpu) -> tuple[int, int, int]:
            return (self.siblings(cpu.number).index(cpu.number), cpu.package, cpu.number)

        return tuple(cpu.number for cpu in sorted(self.cpus, key=order))

    def describe(self) -> str:
        """One line: how many CPUs, cores and packages, and what is shared."""
        shared = "; ".join(format_cpu_list(cache) for cache in self.caches) or "none"
        return (
            f"{_count(len(self.cpus), 'CPU')} ({format_cpu_list(self.numbers)}), "
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
    return parse_cpu_list(text) if text else default
