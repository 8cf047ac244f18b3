"""The CPUs of simulated hosts: their cores lie as the platform's do."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.clusters import pingpong_pair

from shrimpmx.cluster.place.topology import Distance
from shrimpmx.errors import PlacementError
from shrimpmx.mx.binding import board_of
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.simulation.hosts import HostSeats, host_of

EIGHT = HostParameters(cores=8, irq_binding="round-robin")


def test_eight_cores_fill_two_packages_of_four_in_their_order() -> None:
    seats = HostSeats(pingpong_pair(5, host=EIGHT))
    for node in range(2):
        cpus = [seats.core_cpus[node, core] for core in range(8)]
        apart = [seats.topology.distance(cpus[0], cpu) for cpu in cpus[1:]]
        same, other = Distance.SAME_PACKAGE, Distance.OTHER_PACKAGE
        assert apart == [Distance.SHARED_CACHE, same, same, other, other, other, other]


def test_where_a_core_lies_does_not_depend_on_what_others_do() -> None:
    idle = HostSeats(pingpong_pair(5, host=HostParameters(cores=8, irq_binding="5")))
    assert idle.core_cpus == HostSeats(pingpong_pair(5, host=EIGHT)).core_cpus


def test_the_nic_and_the_dma_agent_share_nothing_with_a_core() -> None:
    seats = HostSeats(pingpong_pair(5, host=EIGHT.model_copy(update={"copy_offload": True})))
    cores = set(seats.core_cpus.values())
    assert len(seats.nic_cpus) == len(seats.dma_cpus) == 2
    for cpu in (*seats.nic_cpus, *seats.dma_cpus.values()):
        assert {seats.topology.distance(cpu, core) for core in cores} == {Distance.OTHER_PACKAGE}


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
    assert seats.core_cpus[1, 2] - seats.core_cpus[0, 2] == len(host_of(pingpong_pair(5)).cpus)


@pytest.mark.parametrize("distance", [each for each in Distance if each.value != "SC"])
def test_a_rank_and_its_interrupts_are_at_the_distance(distance: Distance) -> None:
    host = HostParameters(cores=8, irq_binding="1")
    seats = HostSeats(pingpong_pair(5, host=host, distance=distance.value))
    for node in range(2):
        first, second = seats.core_cpus[node, 0], seats.core_cpus[node, 1]
        assert seats.topology.distance(first, second) is distance
    assert len(set(seats.core_cpus.values())) == 16


def test_the_package_of_a_nic_is_none_of_the_host() -> None:
    model = HostModelParameters(host_topology="package:1 l2:2 core:2 pu:1")
    host = HostParameters(cores=2, irq_binding="1")
    with pytest.raises(PlacementError, match="needs CPUs of two packages"):
        HostSeats(pingpong_pair(5, host=host, model=model, distance="OP"))
