"""The CPUs of simulated hosts: their cores lie as the platform's do."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.clusters import generator_stream, pingpong_pair

from shrimpmx.cluster.place.topology import Distance
from shrimpmx.cluster.spec import ClusterSpec, CompanionSpec, RankSpec
from shrimpmx.errors import PlacementError
from shrimpmx.mx.binding import board_of
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.simulation.hosts import HostSeats, host_of

EIGHT = HostParameters(cores=8, irq_binding="round-robin")
# Of a host of eight cores: its CPUs, that of its NIC, that of its dma agent.
SIZE = 10


def eight(**changes: object) -> HostParameters:
    return EIGHT.model_copy(update=changes)


def test_eight_cores_fill_two_packages_of_four_in_their_order() -> None:
    seats = HostSeats(pingpong_pair(5, host=EIGHT))
    for node in range(2):
        cpus = [seats.core_cpus[node, core] for core in range(8)]
        apart = [seats.topology.distance(cpus[0], cpu) for cpu in cpus[1:]]
        same, other = Distance.SAME_PACKAGE, Distance.OTHER_PACKAGE
        assert apart == [Distance.SHARED_CACHE, same, same, other, other, other, other]
        assert cpus == list(range(node * SIZE, node * SIZE + 8))


def test_where_a_core_lies_does_not_depend_on_what_others_do() -> None:
    busy = HostSeats(pingpong_pair(5, host=EIGHT))
    assert HostSeats(pingpong_pair(5, host=eight(irq_binding="5"))).core_cpus == busy.core_cpus


def test_smt_siblings_come_last() -> None:
    model = HostModelParameters(host_topology="package:2 l2:1 core:2 pu:2")
    seats = HostSeats(pingpong_pair(5, host=HostParameters(cores=4), model=model))
    cpus = [seats.core_cpus[0, core] for core in range(4)]
    assert not any(set(seats.topology.siblings(cpu)) & (set(cpus) - {cpu}) for cpu in cpus)


def test_the_nic_and_the_dma_agent_share_nothing_with_a_core() -> None:
    seats = HostSeats(pingpong_pair(5, host=eight(copy_offload=True)))
    assert seats.nic_cpus == [8, SIZE + 8]
    assert seats.dma_cpus == {0: 9, 1: SIZE + 9}
    cores = set(seats.core_cpus.values())
    for cpu in (*seats.nic_cpus, *seats.dma_cpus.values()):
        assert {seats.topology.distance(cpu, core) for core in cores} == {Distance.OTHER_PACKAGE}


def test_a_generator_has_the_cpu_of_the_nic() -> None:
    seats = HostSeats(generator_stream(host=eight(copy_offload=True)))
    assert (seats.nic_cpus, seats.dma_cpus) == ([8], {0: 9})
    assert seats.core_cpus == {(0, core): core for core in range(8)}


def test_cpus_whose_numbers_have_gaps_are_no_others() -> None:
    topology = "package:1 l2:2 core:2 pu:1(indexes=1,2,3,8)"
    model = HostModelParameters(host_topology=topology)
    host = HostParameters(cores=4, copy_offload=True)
    seats = HostSeats(pingpong_pair(5, host=host, model=model))
    cpus = [*seats.core_cpus.values(), *seats.nic_cpus, *seats.dma_cpus.values()]
    assert sorted(cpus) == sorted(seats.topology.numbers)


@pytest.mark.parametrize(("cores", "packages"), [(1, 2), (8, 2), (9, 3)])
def test_a_host_has_as_many_packages_as_its_cores_need(cores: int, packages: int) -> None:
    spec = pingpong_pair(5, host=HostParameters(cores=cores))
    host = host_of(spec)
    assert host.packages_count == packages + 2
    assert len(host.cpus) == 4 * packages + 2


def test_nodes_of_a_binding_file_have_a_host_each(tmp_path: Path) -> None:
    file = tmp_path / "bindings"
    file.write_text(f"board {board_of(1)} ep 0 irq 1 mask 04\n")
    mx = MxParameters(process_binding=f"file:{file}")
    seats = HostSeats(pingpong_pair(5, host=EIGHT, mx=mx))
    assert seats.busy == {(0, 0), (1, 2)}
    assert (seats.core_cpus[0, 0], seats.core_cpus[1, 2]) == (0, SIZE + 2)


# Where the other core lies in order is another distance than the one that is asked for.
@pytest.mark.parametrize(("distance", "core"), [("SC", 1), ("S$", 2), ("SP", 1), ("OP", 1)])
def test_a_rank_and_its_interrupts_are_at_the_distance(distance: str, core: int) -> None:
    seats = HostSeats(pingpong_pair(5, host=eight(irq_binding=str(core)), distance=distance))
    for node in range(2):
        first, second = seats.core_cpus[node, 0], seats.core_cpus[node, core]
        assert seats.topology.distance(first, second).value == distance
        rank, handler = (seats.spot.get((node, each), ()) for each in (0, core))
        assert (rank == handler) == (distance == "SC")
    assert len(set(seats.core_cpus.values())) == (14 if distance == "SC" else 16)
    assert (seats.oversubscribed, seats.otherwise) == (False, "")


def test_nodes_that_differ_are_each_at_the_distance() -> None:
    options = {"iterations": 1, "warmup": 0, "size_bytes": 0}
    ranks = (RankSpec(0, "pingpong", 0, options), RankSpec(2, "pingpong", 3, options))
    company = (CompanionSpec(1, 4),)
    host = eight(irq_binding="5")
    seats = HostSeats(ClusterSpec(ranks, nodes=3, host=host, companions=company, distance="S$"))
    for node, core in ((0, 0), (2, 3)):
        cpus = seats.core_cpus[node, core], seats.core_cpus[node, 5]
        assert seats.topology.distance(*cpus) is Distance.SHARED_CACHE
    assert [seats.core_cpus[1, core] for core in range(8)] == list(range(SIZE, SIZE + 8))
    assert len(set(seats.core_cpus.values())) == 24


def test_the_package_of_a_nic_is_none_of_the_host() -> None:
    model = HostModelParameters(host_topology="package:1 l2:2 core:2 pu:1")
    host = HostParameters(cores=2, irq_binding="1")
    with pytest.raises(PlacementError, match="needs CPUs of two packages"):
        HostSeats(pingpong_pair(5, host=host, model=model, distance="OP"))
