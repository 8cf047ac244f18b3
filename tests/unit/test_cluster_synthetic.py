"""hwloc's synthetic form: what it says, and what is refused."""

from __future__ import annotations

import pytest

from shrimpmx.cluster.place.topology import CPUS_MAX, Distance, Topology
from shrimpmx.errors import InputError

NUMBERED = "package:2 l2:2 core:2 pu:1(indexes=0,4,2,6,1,5,3,7)"
# As lstopo exports a machine.
EXPORTED = (
    "Package:1 [NUMANode(memory=134228295680)] Die:2 L3Cache:1(size=100663296) "
    "L2Cache:6(size=1048576) L1dCache:1(size=32768) L1iCache:1(size=32768) Core:1 "
    "PU:2(indexes=2*12:1*2)"
)


def test_levels_multiply_and_cpus_count_up() -> None:
    machine = Topology.from_synthetic("package:2 l2:2 core:2 pu:1")
    assert machine.numbers == tuple(range(8))
    assert (machine.packages_count, machine.cores_count) == (2, 8)
    assert machine.caches == tuple(frozenset({n, n + 1}) for n in (0, 2, 4, 6))
    assert machine.source == "package:2 l2:2 core:2 pu:1"


def test_indexes_number_the_cpus_from_left_to_right() -> None:
    machine = Topology.from_synthetic(NUMBERED)
    assert set(machine.caches) == {frozenset(pair) for pair in ((0, 4), (2, 6), (1, 5), (3, 7))}
    assert [cpu.package for cpu in machine.cpus] == [0, 1, 0, 1, 0, 1, 0, 1]
    loops = Topology.from_synthetic("package:2 l2:2 core:2 pu:1(indexes=4*2:2*2:1*2)")
    assert (loops.cpus, set(loops.caches)) == (machine.cpus, set(machine.caches))


def test_what_lstopo_exports_is_read() -> None:
    machine = Topology.from_synthetic(EXPORTED)
    assert len(machine.cpus) == 24
    assert machine.siblings(0) == (0, 12)
    assert machine.distance(0, 5) is Distance.SHARED_CACHE
    assert machine.distance(0, 6) is Distance.SAME_PACKAGE


@pytest.mark.parametrize(
    "text",
    [
        "socket:2 l2:2(size=4MB) core:2 pu:1",
        "numa:2(memory=1GB) pack:1 l2u:2 co:2 pu:1",
        "package:2 group:1 l2:2 l1i:1 core:2 [numa(memory=1GB)] pu:1",
        "PACKAGE:2  L2Cache:2(size=4194304 foo=1)  Core:2 PU:1",
    ],
)
def test_names_can_be_cut_short_and_what_says_nothing_has_no_effect(text: str) -> None:
    plain = Topology.from_synthetic("package:2 l2:2 core:2 pu:1")
    machine = Topology.from_synthetic(text)
    assert (machine.cpus, machine.caches) == (plain.cpus, plain.caches)


def test_without_packages_there_is_one_and_without_cores_each_cpu_is_one() -> None:
    machine = Topology.from_synthetic("l3:1 pu:4")
    assert (machine.packages_count, machine.cores_count) == (1, 4)
    assert machine.distance(0, 3) is Distance.SHARED_CACHE
    assert Topology.from_synthetic("core:1 pu:2").distance(0, 1) is Distance.SHARED_CACHE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the last level must be pu"),
        ("package:2 core:2", "the last level must be pu"),
        ("pu:2 core:2", "the last level must be pu"),
        ("2 2 2", "'2' is not a level of a topology"),
        ("package: core:2 pu:1", "'package:' is not a level"),
        ("package:2 pu:1(", r"'\(' is not a level"),
        ("package:2 tile:2 pu:1", "'tile' is not a kind of level: use package, l1 to l5"),
        ("package:2 socket:2 pu:1", "more than one level 'package'"),
        ("l2:2 l2:2 pu:1", "the topology names a level twice: l2, l2, pu"),
        ("core:2 package:2 pu:1", "cores are in packages"),
        ("pu:0", f"has 0 CPUs; it may have 1 to {CPUS_MAX}"),
        ("package:1000 pu:1000", "has 1000000 CPUs"),
        ("pu:4(indexes=0,1,2)", "each of 4 CPUs a number of its own; it gives 3 different numbers"),
        ("pu:4(indexes=0,1,2,2)", "it gives 3 different numbers"),
        ("pu:4(indexes=2*2)", "it gives 2 different numbers"),
        ("pu:4(indexes=0*2:1*2)", "step or count 0"),
        ("pu:4(indexes=core)", "neither a list of CPUs such as 0,2,1,3 nor of loops"),
    ],
)
def test_what_is_no_topology_is_refused_in_one_sentence(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Topology.from_synthetic(text)
