"""Topologies: described machines, sysfs trees, distances and orders of use."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.machines import described

from shrimpmx.cluster.place.topology import Distance, Topology
from shrimpmx.errors import InputError
from shrimpmx.settings.core_lists import format_core_list, parse_core_list

# The multiqueue paper's hosts: two quad-core Xeon 5345 (Clovertown), an L2 for each two cores.
CLOVERTOWNS = {
    "packages": [[[0], [1], [2], [3]], [[4], [5], [6], [7]]],
    "caches": [[0, 1], [2, 3], [4, 5], [6, 7]],
}
SMT_MACHINE = {"packages": [[[0, 4], [1, 5], [2, 6], [3, 7]]], "caches": [[0, 1, 2, 3, 4, 5, 6, 7]]}
TWO_CPUS = {"packages": [[[0], [1]]], "caches": [[0, 1]]}
ONE_CPU = {"packages": [[[0]]]}


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0", (0,)), ("0-3", (0, 1, 2, 3)), ("0,2-3,9\n", (0, 2, 3, 9)), ("", ())],
)
def test_cpu_lists(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_core_list(text) == cpus
    assert format_core_list(reversed(cpus)) == text.strip()


def test_distances_on_the_papers_machine() -> None:
    machine = described(CLOVERTOWNS)
    assert machine.distance(0, 0) is Distance.SAME_CORE
    assert machine.distance(0, 1) is Distance.SHARED_CACHE
    assert machine.distance(0, 2) is Distance.SAME_PACKAGE
    assert machine.distance(0, 4) is Distance.OTHER_PACKAGE
    assert machine.packages_count == 2
    assert machine.cores_count == 8


def test_smt_siblings_come_last() -> None:
    machine = described(SMT_MACHINE)
    assert machine.by_preference() == (0, 1, 2, 3, 4, 5, 6, 7)
    assert machine.siblings(5) == (1, 5)
    assert machine.cores_count == 4
    assert machine.distance(1, 5) is Distance.SHARED_CACHE
    interleaved = described({"packages": [[[0, 1], [2, 3]]]})
    assert interleaved.by_preference() == (0, 2, 1, 3)


def test_a_cpu_that_is_not_there() -> None:
    with pytest.raises(InputError, match=r"no CPU 99 here; the usable CPUs are 0-1"):
        described(TWO_CPUS).cpu(99)


def test_a_topology_needs_a_cpu() -> None:
    with pytest.raises(InputError, match="at least one CPU"):
        described({"packages": []})


def write_cpu(root: Path, number: int, package: int, siblings: str, cache: str) -> None:
    for name, text in {
        "topology/physical_package_id": str(package),
        "topology/thread_siblings_list": siblings,
        "cache/index0/type": "Data",
        "cache/index0/shared_cpu_list": siblings,
        "cache/index1/type": "Instruction",
        "cache/index1/shared_cpu_list": "0-7",
        "cache/index2/type": "Unified",
        "cache/index2/shared_cpu_list": cache,
    }.items():
        path = root / f"cpu{number}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


def test_sysfs_gives_the_same_as_a_description(tmp_path: Path) -> None:
    for number in range(8):
        pair = number // 2 * 2
        write_cpu(tmp_path, number, number // 4, str(number), f"{pair}-{pair + 1}")
    machine = Topology.from_sysfs(tmp_path, range(8))
    other = described(CLOVERTOWNS)
    for first in range(8):
        for second in range(8):
            assert machine.distance(first, second) is other.distance(first, second)


def test_sysfs_with_nothing_in_it_is_one_package_of_unshared_cores(tmp_path: Path) -> None:
    machine = Topology.from_sysfs(tmp_path, [2, 5])
    assert machine.numbers == (2, 5)
    assert machine.distance(2, 5) is Distance.SAME_PACKAGE
    assert "2 CPUs (2,5), 2 cores, 1 package, shared caches: none" in machine.describe()


def test_only_usable_cpus_count(tmp_path: Path) -> None:
    for number in range(4):
        write_cpu(tmp_path, number, 0, str(number), "0-3")
    assert Topology.from_sysfs(tmp_path, [1, 3]).caches == (frozenset({1, 3}),)


def test_this_machine_has_a_topology() -> None:
    machine = Topology.of_this_machine()
    assert machine.source == "sysfs"
    assert machine.cpu(machine.numbers[0]).number == machine.numbers[0]


def test_the_smallest_cache_that_two_cpus_share() -> None:
    machine = Topology.from_synthetic("package:2 l3:1 l2:2 core:2 pu:1")
    assert [machine.shared_by(0, other) for other in (1, 2, 4)] == [2, 4, 0]


def test_a_part_of_a_machine_has_its_distances() -> None:
    machine = described(CLOVERTOWNS)
    part = machine.only([5, 0, 1])
    assert part.numbers == (0, 1, 5)
    assert part.caches == (frozenset({0, 1}),)
    assert part.distance(0, 5) is Distance.OTHER_PACKAGE
    with pytest.raises(InputError, match="no CPU 9 here"):
        machine.only([9])


def test_examples_are_the_first_pairs_of_each_distance_that_there_is() -> None:
    assert described(ONE_CPU).examples() == {Distance.SAME_CORE: (0, 0)}
    assert described(TWO_CPUS).examples() == {
        Distance.SAME_CORE: (0, 0),
        Distance.SHARED_CACHE: (0, 1),
    }


def test_of_many_caches_the_sizes_are_told() -> None:
    words = Topology.from_synthetic("package:2 l3:1 core:8 pu:2").describe()
    assert words.endswith("shared caches: 16 of 2 CPUs, 2 of 16 CPUs")


@pytest.mark.parametrize(
    "text",
    [
        "package:1 core:1 pu:1",
        "package:1 core:6 pu:2",
        "package:3 core:1 pu:1",
        "package:2 l3:2 l2:2 core:2 pu:1",
        "package:2 l2:1 core:3 pu:2",
        "package:1 l2:3 core:2 pu:1",
    ],
)
def test_an_example_of_a_distance_is_the_first_pair_that_is_so_far_apart(text: str) -> None:
    machine = Topology.from_synthetic(text)
    pairs: dict[Distance, tuple[int, int]] = {}
    for first in machine.numbers:
        for second in machine.numbers:
            pairs.setdefault(machine.distance(first, second), (first, second))
    assert machine.examples() == pairs
