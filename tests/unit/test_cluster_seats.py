"""Seats: busy and interrupted cores on few CPUs, and ranks at a distance from their interrupts."""

from __future__ import annotations

from typing import Any

import pytest

from shrimpmx.cluster.place.placement import Placement, place
from shrimpmx.cluster.place.topology import Topology, topology_of
from shrimpmx.cluster.spec import ClusterSpec, CompanionSpec, GeneratorSpec, RankSpec
from shrimpmx.errors import InputError, PlacementError
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters

CLOVERTOWNS = topology_of("clovertown-2007")
TWO_CPUS = Topology.from_synthetic("l3:1 core:2 pu:1")
THREE_CPUS = Topology.from_synthetic("l3:1 core:3 pu:1")
ONE_CPU = Topology.from_synthetic("pu:1")


def pair(cores: int = 2, irq_binding: str = "1", **more: Any) -> ClusterSpec:
    """Two nodes, a rank on core 0 of each, its interrupts on core 1."""
    more.setdefault("ranks", (RankSpec(0, "pingpong"), RankSpec(1, "pingpong")))
    host = HostParameters(cores=cores, irq_binding=irq_binding)
    return ClusterSpec(host=host, **more)


def seats(placement: Placement, *names: str) -> list[int]:
    cpus = {process.name: process.cpu for process in placement.processes}
    return [cpus[name] for name in names]


def far(placement: Placement) -> list[str]:
    """How far each node's core 0 is from its core 1."""
    return [placement.distance((node, 0), (node, 1)).value for node in (0, 1)]


@pytest.mark.parametrize(
    ("distance", "first", "second", "nics"),
    [
        ("SC", (0, 0), (1, 1), [2, 3]),
        ("S$", (0, 4), (1, 5), [2, 3]),
        ("SP", (0, 2), (1, 3), [4, 5]),
        ("OP", (0, 1), (3, 2), [4, 5]),
    ],
)
def test_the_papers_bindings_on_its_machine(
    distance: Any, first: tuple[int, int], second: tuple[int, int], nics: list[int]
) -> None:
    placement = place(pair(distance=distance), CLOVERTOWNS)
    assert (*seats(placement, "rank0", "node0.irq1"),) == first
    assert (*seats(placement, "rank1", "node1.irq1"),) == second
    assert seats(placement, "node0.nic", "node1.nic") == nics
    assert placement.nic_alone
    assert not placement.oversubscribed
    assert not placement.notes
    assert far(placement) == [distance] * 2
    assert place(pair(distance=distance), CLOVERTOWNS) == placement


def test_the_same_core_is_at_distance_sc() -> None:
    placement = place(pair(cores=1, irq_binding="0", distance="SC"), TWO_CPUS)
    assert seats(placement, "rank0", "node0.irq0", "rank1", "node1.irq0") == [0, 0, 1, 1]


def test_two_cpus_give_a_shared_cache_by_crossing() -> None:
    placement = place(pair(distance="S$"), TWO_CPUS)
    assert seats(placement, "rank0", "node0.irq1", "rank1", "node1.irq1") == [0, 1, 1, 0]
    assert not placement.oversubscribed
    (note,) = placement.notes
    assert "interrupts of node 0 core 1 on CPU 1, node 1 core 1 on CPU 0 preempt" in note
    assert "interrupts on CPU 1 (S$)" in " ".join(placement.table().split())
    together = place(pair(distance="SC"), TWO_CPUS)
    assert seats(together, "rank0", "node0.irq1", "rank1", "node1.irq1") == [0, 0, 1, 1]
    assert not together.oversubscribed
    assert not together.notes


def test_the_smallest_cache_comes_first_and_smt_siblings_last() -> None:
    nested = Topology.from_synthetic("l3:1 l2:4 core:2 pu:1")
    placement = place(pair(distance="S$"), nested)
    assert seats(placement, "rank0", "node0.irq1", "rank1", "node1.irq1") == [0, 1, 2, 3]
    smt = place(pair(distance="S$"), topology_of("two-socket-32"))
    assert seats(smt, "rank0", "node0.irq1", "rank1", "node1.irq1") == [0, 1, 16, 17]
    siblings = place(pair(distance="S$"), Topology.from_synthetic("core:1 pu:2"))
    assert far(siblings) == ["S$", "S$"]


def test_the_nics_keep_a_cpu_of_their_own_as_long_as_there_is_one() -> None:
    five = Topology.from_synthetic("l3:1 core:5 pu:1")
    placement = place(pair(distance="S$"), five)
    assert (placement.nic_cpus, placement.nic_alone) == ((0,), True)
    assert not placement.notes
    three = place(pair(distance="S$"), THREE_CPUS)
    assert three.nic_alone
    assert seats(three, "rank0", "node0.irq1", "rank1", "node1.irq1") == [1, 2, 2, 1]


@pytest.mark.parametrize(
    ("distance", "topology", "sentence"),
    [
        ("OP", TWO_CPUS, r"distance OP needs CPUs of two packages; CPUs 0-1 have only SC, S\$"),
        ("SP", TWO_CPUS, "distance SP needs two CPUs of one package that share no cache"),
        ("S$", ONE_CPU, r"distance S\$ needs two CPUs that share a cache; CPU 0 has only SC"),
        ("S$", Topology.from_synthetic("package:2 core:2 pu:1"), "have only SC, SP, OP"),
    ],
)
def test_a_machine_without_the_distance_says_so(
    distance: Any, topology: Topology, sentence: str
) -> None:
    with pytest.raises(PlacementError, match=sentence) as caught:
        place(pair(distance=distance), topology)
    assert caught.value.exit_code == 2


def test_a_wish_that_no_cpus_fit_at_once_is_refused() -> None:
    # Three cores that are each at OP from the two others need three packages.
    ranks = (RankSpec(0, "x", 0), RankSpec(0, "x", 1), RankSpec(0, "x", 2))
    nic = NicParameters(rx_queues=3)
    spec = pair(3, "1/2/0", ranks=ranks, nic=nic, distance="OP")
    with pytest.raises(PlacementError, match="is not available for 3 ranks at once"):
        place(spec, CLOVERTOWNS)
    three = Topology.from_synthetic("package:3 core:4 pu:1")
    used = place(spec, three).core_cpus
    assert {three.cpu(used[0, core]).package for core in range(3)} == {0, 1, 2}


def test_a_thousand_ranks_can_be_seated() -> None:
    ranks = tuple(RankSpec(node, "x", core) for node in range(64) for core in range(17))
    placement = place(pair(18, "17", ranks=ranks, nodes=64, distance="S$"), CLOVERTOWNS)
    assert placement.oversubscribed
    far_apart = {placement.distance((node, 3), (node, 17)).value for node in range(64)}
    assert far_apart == {"S$"}


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"irq_binding": "0", "distance": "S$"}, "rank 0 and its interrupts are both on core 0"),
        ({"irq_binding": "0-1", "distance": "SC"}, "those of rank 0 go to cores 0-1 in turn"),
        ({"distance": "XX"}, "distance is one of any, SC, S\\$, SP, OP, not 'XX'"),
        (
            {"irq_binding": "auto", "distance": "SC", "nic": NicParameters(nic_kind="mx")},
            "nic 'mx' has none",
        ),
        ({"distance": "SP", "nic": NicParameters(steering="arfs")}, "steering 'arfs' moves"),
        ({"distance": "SP", "mx": MxParameters(process_binding="auto")}, "both on core 1"),
        (
            {"distance": "SP", "ranks": (RankSpec(0, "x", options={"move_every": 9}),)},
            "move_every changes the distance",
        ),
        ({"nic": NicParameters(rx_queues=4)}, "rx_queues is 4, more than the node's 2 cores"),
        ({"irq_binding": "0/1"}, "irq_binding: '0/1' has 2 affinity lists"),
    ],
)
def test_what_cannot_be_meant_is_refused(spec: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        pair(**spec)


def test_cpus_chosen_by_name_must_be_at_the_distance() -> None:
    wishes = {"node0.core0": 0, "node0.core1": 2}
    assert far(place(pair(distance="SP", cpus=wishes), CLOVERTOWNS)) == ["SP", "SP"]
    with pytest.raises(InputError, match=r"CPU 0 and its interrupts on CPU 2, .* distance SP, but"):
        place(pair(distance="S$", cpus=wishes), CLOVERTOWNS)


def test_sixteen_cores_on_eight_cpus() -> None:
    """Counts hold; a node's cores are on CPUs of their own, so times of two nodes can be had."""
    placement = place(pair(8, "round-robin"), CLOVERTOWNS)
    for node in (0, 1):
        assert len({placement.core_cpus[node, core] for core in range(8)}) == 8
    assert placement.core_cpus[0, 0] != placement.core_cpus[1, 0]
    assert not placement.oversubscribed
    assert "interrupts of 14 cores without ranks on CPUs 0-7 preempt" in placement.notes[0]
    assert len(list(placement.agents())) == 2 + 16 + 2


def test_a_queue_for_each_core_leaves_the_other_cores_alone() -> None:
    placement = place(pair(8, "auto", nic=NicParameters(rx_queues=8)), CLOVERTOWNS)
    # Endpoint 0 of each node, queue 0, core 0: nothing happens on the others. The NICs have no CPU
    # all the same, since interrupts in turn leave none.
    assert not placement.nic_alone
    assert not placement.oversubscribed
    assert not placement.notes
    crowded = place(pair(8, "auto", nic=NicParameters(rx_queues=8)), TWO_CPUS)
    assert not crowded.oversubscribed
    assert not crowded.notes


def test_interrupts_in_turn_need_a_cpu_for_each_core_of_a_node() -> None:
    in_turn = place(pair(8, "round-robin"), TWO_CPUS)
    assert in_turn.oversubscribed
    assert "times cannot be measured" in in_turn.notes[0]
    assert not place(pair(8, "0"), TWO_CPUS).oversubscribed
    assert not place(pair(2, "round-robin"), TWO_CPUS).oversubscribed


def test_two_busy_cores_on_a_cpu_make_times_unmeasurable() -> None:
    company = (CompanionSpec(0, 1), CompanionSpec(1, 1))
    assert place(pair(companions=company), TWO_CPUS).oversubscribed
    assert not place(pair(companions=company), CLOVERTOWNS).oversubscribed


def test_ranks_that_move_are_on_all_cores() -> None:
    ranks = tuple(RankSpec(node, "pingpong", options={"move_every": 10}) for node in (0, 1))
    moving = place(pair(4, "0", ranks=ranks), TWO_CPUS)
    assert moving.oversubscribed
    assert set(moving.core_uses.values()) == {"busy"}
    assert not place(pair(4, "0", ranks=ranks), CLOVERTOWNS).oversubscribed


def test_a_rank_is_where_opening_its_endpoint_moves_it() -> None:
    placement = place(pair(4, "3", mx=MxParameters(process_binding="auto")), TWO_CPUS)
    assert [placement.core_uses[node, 3] for node in (0, 1)] == ["busy", "busy"]
    assert placement.core_cpus[0, 3] != placement.core_cpus[1, 3]
    why = placement.processes[placement.process_index("rank0")].reason
    assert why == "node 0, core 0, then core 3; interrupts on CPU 0 (SC)"
    listed = place(pair(4, "3", mx=MxParameters(process_binding="2+1")), TWO_CPUS)
    assert listed.core_uses[0, 2] == listed.core_uses[1, 2] == "busy"


@pytest.mark.parametrize(("steering", "cores"), [("rss", (0,)), ("endpoint", (1,)), ("rps", (1,))])
def test_where_the_second_endpoint_is_handled(steering: Any, cores: tuple[int, ...]) -> None:
    queues = 1 if steering == "rps" else 2
    nic = NicParameters(rx_queues=queues, steering=steering)
    ranks = (RankSpec(0, "x", 0), RankSpec(0, "x", 1))
    binding = "0" if steering == "rps" else "auto"
    assert pair(2, binding, ranks=ranks, nic=nic).interrupt_cores(1) == cores


def test_idle_cores_say_whether_their_cpu_is_theirs() -> None:
    wide = place(pair(), CLOVERTOWNS)
    assert wide.as_dict()["cores"] == {
        "node0.core0": "busy",
        "node0.core1": "interrupts only, alone on its CPU",
        "node1.core0": "busy",
        "node1.core1": "interrupts only, alone on its CPU",
    }
    assert wide.idle_core(0, 1)
    assert not wide.idle_core(0, 0)
    crossed = place(pair(), TWO_CPUS)
    assert crossed.as_dict()["cores"]["node0.core1"] == "interrupts only, shares CPU 1"
    assert not crossed.idle_core(0, 1)


def test_the_other_protocol_interrupts_the_cores_of_all_queues() -> None:
    nic = NicParameters(rx_queues=2)
    one = {"ranks": (RankSpec(0, "stream"),), "mode": "generator", "nic": nic}
    assert not place(pair(2, "auto", **one), TWO_CPUS).oversubscribed
    other = GeneratorSpec(other_rate=1000)
    assert place(pair(2, "auto", generator=other, **one), TWO_CPUS).oversubscribed
    assert not place(pair(2, "auto", generator=other, **one), THREE_CPUS).oversubscribed


def test_what_sc_does_not_put_together_is_not_excused() -> None:
    """Core 1 takes the other protocol of queue 1, on the CPU of the rank and queue 0."""
    one: dict[str, Any] = {"mode": "generator", "distance": "SC"}
    one |= {"ranks": (RankSpec(0, "stream"),)}
    one |= {"nic": NicParameters(rx_queues=2), "mx": MxParameters(process_binding="auto")}
    assert not place(pair(2, "auto", **one), TWO_CPUS).oversubscribed
    one["generator"] = GeneratorSpec(other_rate=1000)
    assert place(pair(2, "auto", **one), TWO_CPUS).oversubscribed
    assert not place(pair(2, "auto", **one), THREE_CPUS).oversubscribed


TABLE_1: dict[str, dict[str, Any]] = {
    "round-robin": {"irq_binding": "round-robin"},
    "SC": {"irq_binding": "0", "distance": "SC"},
    "S$": {"irq_binding": "1", "distance": "S$"},
    "multiqueue": {
        "irq_binding": "per-queue",
        "distance": "SC",
        "nic": NicParameters(rx_queues=2),
        "mx": MxParameters(process_binding="auto"),
    },
}


def nics_and_ranks(topology: Topology) -> dict[str, tuple[int, bool, str]]:
    """Of each row of table I: CPUs of NICs, whether they are alone there, and how far the nodes'
    ranks are from each other.
    """
    found = {}
    for name, changes in TABLE_1.items():
        placed = place(pair(2, **changes), topology)
        ranks = placed.distance((0, 0), (1, 0)).value
        found[name] = (len(placed.nic_cpus), placed.nic_alone, ranks)
    return found


@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        (TWO_CPUS, (1, False, "S$")),
        (THREE_CPUS, (1, True, "S$")),
        (Topology.from_synthetic("l3:1 core:4 pu:1"), (1, True, "S$")),
        (Topology.from_synthetic("l3:1 core:5 pu:1"), (1, True, "S$")),
        (Topology.from_synthetic("l3:1 core:6 pu:1"), (2, True, "S$")),
        (Topology.from_synthetic("l3:1 core:8 pu:1"), (2, True, "S$")),
        (CLOVERTOWNS.only((0, 1, 2, 3, 4, 5)), (2, True, "OP")),
        (CLOVERTOWNS, (2, True, "OP")),
        (topology_of("two-socket-32"), (2, True, "OP")),
        (topology_of("chiplets-16"), (2, True, "SP")),
    ],
)
def test_the_rows_of_table_1_differ_in_their_binding_only(
    topology: Topology, expected: tuple[int, bool, str]
) -> None:
    assert nics_and_ranks(topology) == dict.fromkeys(TABLE_1, expected)
    for changes in TABLE_1.values():
        notes = place(pair(2, **changes), topology).notes
        assert not any("needs another placement" in note for note in notes)


@pytest.mark.parametrize(
    ("cpus", "words"),
    [
        ((0, 2, 4, 6), "first ranks are S$ apart, not SP"),
        ((0, 1, 2, 3, 4), "first ranks are S$ apart, not OP"),
        ((0, 2, 4, 6, 1, 3), "first ranks are SP apart, not OP"),
    ],
)
def test_where_a_distance_needs_other_seats_a_note_says_so(
    cpus: tuple[int, ...], words: str
) -> None:
    topology = CLOVERTOWNS.only(cpus)
    note = place(pair(distance="S$"), topology).notes[-1]
    assert note.startswith("distance S$ needs another placement: ")
    assert note.endswith(words)
    assert len({found[:2] for found in nics_and_ranks(topology).values()}) == 1


def test_company_keeps_its_cores_from_the_nics() -> None:
    four = Topology.from_synthetic("l3:1 core:4 pu:1")
    company = (CompanionSpec(0, 1), CompanionSpec(1, 1))
    crowded = place(pair(companions=company), four)
    assert not crowded.oversubscribed
    assert not crowded.nic_alone
    assert place(pair(), four).nic_alone
    # A rank that is moved away from its company keeps another core busy.
    company = (CompanionSpec(0, 0), CompanionSpec(1, 0))
    moved = place(pair(companions=company, mx=MxParameters(process_binding="all:1")), four)
    assert not moved.oversubscribed
    assert "no CPU is left: the NICs share CPU 0 with a core" in moved.processes[0].reason


def test_native_mx_has_neither_handlers_nor_copies() -> None:
    spec = pair(irq_binding="auto", nic=NicParameters(nic_kind="mx"))
    placement = place(spec, CLOVERTOWNS)
    assert [process.name for process in placement.processes] == [
        "node0.nic", "node1.nic", "rank0", "rank1",
    ]  # fmt: skip
    agents = [(agent.name, agent.role, agent.kind) for agent, _ in placement.agents()]
    assert agents[:2] == [("node0.nic", "nic", "nic"), ("node0.mx", "mx", "irq")]
    together = place(spec, TWO_CPUS)
    assert [agent.name for agent in together.processes[0].agents] == [
        "node0.nic", "node0.mx", "node1.nic", "node1.mx",
    ]  # fmt: skip
    assert not together.notes
