"""Machines by name, first of all the multiqueue paper's."""

from __future__ import annotations

import pytest

from shrimpmx.cluster.place.topology import MACHINES, Distance, topology_of
from shrimpmx.errors import InputError


def test_the_papers_machine_is_two_clovertowns_as_linux_numbers_them() -> None:
    clovertowns = topology_of("clovertown-2007")
    assert (clovertowns.packages_count, clovertowns.cores_count) == (2, 8)
    packages = {cpu.number: cpu.package for cpu in clovertowns.cpus}
    assert [number for number in packages if packages[number] == 0] == [0, 2, 4, 6]
    assert set(clovertowns.caches) == {frozenset(pair) for pair in ((0, 4), (2, 6), (1, 5), (3, 7))}
    # The four bindings of a process to an interrupt on core 0 (4.1).
    assert clovertowns.examples() == {
        Distance.SAME_CORE: (0, 0),
        Distance.SHARED_CACHE: (0, 4),
        Distance.SAME_PACKAGE: (0, 2),
        Distance.OTHER_PACKAGE: (0, 1),
    }
    assert clovertowns.source == "clovertown-2007"


@pytest.mark.parametrize(
    ("name", "distances", "cpus"),
    [
        ("one-l3-8", "SC S$", 8),
        ("two-socket-32", "SC S$ OP", 64),
        ("chiplets-16", "SC S$ SP", 32),
    ],
)
def test_machines_of_today(name: str, distances: str, cpus: int) -> None:
    assert [each.value for each in topology_of(name).examples()] == distances.split()
    assert len(topology_of(name).cpus) == cpus


def test_every_machine_can_be_read() -> None:
    assert all(topology_of(name).cpus for name in MACHINES)


def test_a_synthetic_topology_is_a_machine_as_well() -> None:
    assert topology_of("core:3 pu:1").numbers == (0, 1, 2)


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"no machine 'clovertown'; there are clovertown-2007, "):
        topology_of("clovertown")
    with pytest.raises(InputError, match="did you mean 'clovertown-2007'"):
        topology_of("clovertown-2008")
    with pytest.raises(InputError, match=r"no machine ''; there are clovertown-2007, "):
        topology_of("")
