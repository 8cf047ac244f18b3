"""Machines to place processes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shrimpmx.cluster.place.topology import Cpu, Topology


def described(description: Mapping[str, Any]) -> Topology:
    """A machine from nested lists.

    `{"packages": [[[0], [1]], [[2, 3]]]}` has two packages, the first with two cores of one CPU
    each, the second with one core of two SMT siblings; `"caches": [[0, 1]]` lists the CPUs that
    share a cache (siblings always do).
    """
    packages = enumerate(description["packages"])
    cores = [(package, siblings) for package, cores in packages for siblings in cores]
    cpus = [Cpu(number, package, min(core)) for package, core in cores for number in core]
    caches = [frozenset(shared) for shared in description.get("caches", [])]
    caches += [frozenset(core) for _, core in cores if len(core) > 1]
    return Topology(tuple(sorted(cpus, key=lambda cpu: cpu.number)), tuple(caches))
