"""Placement: which CPU each process gets on machines of every size, and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.machines import described

from shrimpmx.cluster.place.placement import Placement, place
from shrimpmx.cluster.place.topology import Distance, Topology
from shrimpmx.cluster.spec import AgentFault, ClusterSpec, CompanionSpec, RankSpec
from shrimpmx.errors import InputError
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.mx import MxParameters

CLOVERTOWNS = described(
    {
        "packages": [[[0], [1], [2], [3]], [[4], [5], [6], [7]]],
        "caches": [[0, 1], [2, 3], [4, 5], [6, 7]],
    }
)
SMT_MACHINE = described({"packages": [[[0, 4], [1, 5], [2, 6], [3, 7]]]})
SMT_PAIR = described({"packages": [[[0, 1]]]})
THREE_CPUS = described({"packages": [[[0], [1], [2]]]})
TWO_CPUS = described({"packages": [[[0], [1]]], "caches": [[0, 1]]})
ONE_CPU = described({"packages": [[[3]]]})
NO_RIGHT = (False, "RLIMIT_RTPRIO is 0")


def pair(**more: Any) -> ClusterSpec:
    """Two nodes, a rank on each."""
    return ClusterSpec(ranks=(RankSpec(0, "pingpong"), RankSpec(1, "pingpong")), **more)


def one_node(**more: Any) -> ClusterSpec:
    """A node under test and the generator."""
    return ClusterSpec(ranks=(RankSpec(0, "stream"),), mode="generator", **more)


def cpus(placement: Placement) -> dict[str, int]:
    return {process.name: process.cpu for process in placement.processes}


def priorities(placement: Placement) -> dict[str, int]:
    return {process.name: process.realtime for process in placement.processes}


def test_two_cpus_two_nodes() -> None:
    placement = place(pair(), TWO_CPUS)
    assert cpus(placement) == {
        "nic": 0,
        "node0.irq0": 0,
        "node1.irq0": 1,
        "rank0": 0,
        "rank1": 1,
    }
    assert priorities(placement) == {
        "nic": 80,
        "node0.irq0": 50,
        "node1.irq0": 50,
        "rank0": 0,
        "rank1": 0,
    }
    assert placement.processes[0].wait.strategy == "block"
    assert [agent.name for agent in placement.processes[0].agents] == ["node0.nic", "node1.nic"]
    assert not placement.nic_alone
    assert not placement.oversubscribed
    assert not placement.degraded
    assert placement.distance((0, 0), (1, 0)) is Distance.SHARED_CACHE


def test_two_cpus_generator() -> None:
    placement = place(one_node(), TWO_CPUS)
    assert cpus(placement) == {"nic": 0, "node0.irq0": 1, "rank0": 1}
    assert priorities(placement) == {"nic": 0, "node0.irq0": 50, "rank0": 0}
    assert placement.processes[0].wait.strategy == "spin"
    assert [agent.name for agent in placement.processes[0].agents] == [
        "node0.nic",
        "node1.generator",
    ]
    assert placement.nic_alone


def test_three_cpus_give_the_nics_one_of_their_own() -> None:
    placement = place(pair(), THREE_CPUS)
    assert cpus(placement)["nic"] == 0
    assert placement.core_cpus == {(0, 0): 1, (1, 0): 2}
    assert placement.processes[0].wait.strategy == "spin"
    assert placement.processes[0].realtime == 0


def test_many_cpus_give_each_nic_one_of_its_own() -> None:
    placement = place(pair(host=HostParameters(cores=3)), CLOVERTOWNS)
    assert placement.nic_cpus == (1, 5)
    assert placement.core_cpus == {
        (0, 0): 0, (0, 1): 2, (0, 2): 3, (1, 0): 4, (1, 1): 6, (1, 2): 7,
    }  # fmt: skip
    assert [process.name for process in placement.processes[:2]] == ["node0.nic", "node1.nic"]
    assert placement.distance((0, 0), (0, 1)) is Distance.SAME_PACKAGE
    assert placement.distance((0, 1), (0, 2)) is Distance.SHARED_CACHE
    assert placement.distance((0, 0), (1, 0)) is Distance.OTHER_PACKAGE


def test_physical_cores_are_used_before_siblings() -> None:
    placement = place(pair(), SMT_MACHINE)
    assert set(cpus(placement).values()) == {0, 1, 2, 3}
    assert not placement.notes
    crowded = place(pair(), SMT_PAIR)
    assert any("share physical cores" in note for note in crowded.notes)


def test_one_cpu_is_degraded_and_says_so() -> None:
    placement = place(pair(), ONE_CPU)
    assert set(cpus(placement).values()) == {3}
    assert placement.degraded
    assert placement.oversubscribed
    assert "degraded: everything shares one CPU" in placement.table()
    assert place(one_node(), ONE_CPU).processes[0].realtime == 80


def test_more_cores_than_cpus_is_allowed_and_recorded() -> None:
    placement = place(pair(host=HostParameters(cores=4)), TWO_CPUS)
    assert placement.oversubscribed
    assert placement.as_dict()["oversubscribed"] is True
    assert "8 emulated cores on CPUs 0-1" in placement.table()
    assert "interrupt counts depend on the scheduler" in placement.notes[0]
    assert [placement.core_cpus[0, core] for core in range(4)] == [0, 1, 0, 1]


def test_without_the_right_everything_is_at_normal_priority() -> None:
    placement = place(pair(), TWO_CPUS, NO_RIGHT)
    assert set(priorities(placement).values()) == {0}
    assert not placement.realtime
    assert "RLIMIT_RTPRIO is 0" in " ".join(placement.table().split())


def test_real_time_can_be_declined() -> None:
    placement = place(pair(realtime=False), TWO_CPUS)
    assert set(priorities(placement).values()) == {0}
    assert any("as asked" in note for note in placement.notes)


@pytest.mark.parametrize("settable", [True, False])
def test_a_kernel_without_time_slices_is_noted(
    monkeypatch: pytest.MonkeyPatch, settable: bool
) -> None:
    monkeypatch.setattr("shrimpmx.cluster.place.placement.time_slices_settable", lambda: settable)
    placement = place(pair(host=HostParameters(time_slice_ns=10_000_000)), CLOVERTOWNS)
    noted = [note for note in placement.notes if note.startswith("time_slice_ns has no effect")]
    assert bool(noted) == placement.degraded == (not settable)
    assert not place(pair(), CLOVERTOWNS).notes


def test_cpus_can_be_chosen() -> None:
    wishes = {"nic": 1, "node0.core0": 1, "node1.core0": 0}
    assert cpus(place(pair(cpus=wishes), TWO_CPUS))["nic"] == 1
    wishes = {"node0.nic": 7, "node1.nic": 6, "node0.core0": 0}
    placement = place(pair(cpus=wishes), CLOVERTOWNS)
    assert placement.nic_cpus == (7, 6)
    assert placement.core_cpus[0, 0] == 0


@pytest.mark.parametrize("name", ["nic", "node0.nic", "node0.core0"])
def test_cpu_99_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(InputError, match=r"no CPU 99 here; the usable CPUs are 0-1"):
        place(pair(cpus={name: 99}), TWO_CPUS)


@pytest.mark.parametrize("name", ["node2.nic", "node0.core5", "nics", "nodeX.nic", "core.nic"])
def test_an_unknown_place_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(InputError, match=r"no agent .*nic, node0\.nic, node1\.nic, node0\.core0"):
        place(pair(cpus={name: 0}), TWO_CPUS)


def test_companions_sit_beside_the_ranks() -> None:
    spec = pair(companions=(CompanionSpec(0), CompanionSpec(1, kind="nice")))
    placement = place(spec, TWO_CPUS)
    hog, nice = placement.processes[-2:]
    assert (hog.name, hog.cpu, hog.niceness) == ("hog0", 0, 0)
    assert (nice.name, nice.cpu, nice.niceness) == ("nice1", 1, 19)


def test_ranks_wait_as_they_were_told() -> None:
    ranks = (RankSpec(0, "pingpong"), RankSpec(1, "pingpong", wait=WaitParameters(strategy="spin")))
    spec = ClusterSpec(ranks=ranks, wait=WaitParameters(strategy="block"))
    placement = place(spec, TWO_CPUS)
    waits = {process.name: process.wait.strategy for process in placement.processes}
    assert waits["rank0"] == "block"
    assert waits["rank1"] == "spin"
    assert spec.endpoints == [0, 0]


def test_the_table_gives_a_reason_for_every_process() -> None:
    lines = place(pair(), TWO_CPUS).table().splitlines()
    assert lines[0].startswith("placement on 2 CPUs (0-1)")
    text = " ".join(" ".join(lines).split())
    assert "preempts, as hardware would" in text
    assert text.count("they preempt its ranks") == 2
    for process in place(pair(), TWO_CPUS).processes:
        assert sum(line.startswith(f"  {process.name} ") for line in lines) == 1


def test_interrupts_preempt_ranks_only_where_there_are_some() -> None:
    spec = pair(host=HostParameters(cores=2), mx=MxParameters(process_binding="all:1"))
    for realtime, verb in ((True, "preempt its"), (False, "take turns with its")):
        processes = place(replace(spec, realtime=realtime), TWO_CPUS).processes
        reasons = {process.name: process.reason for process in processes}
        assert reasons["node0.irq0"] == "interrupts of node 0, core 0: no rank is there"
        assert reasons["node0.irq1"] == f"interrupts of node 0, core 1: they {verb} ranks"


def test_a_binding_file_for_other_boards_is_a_note(tmp_path: Path) -> None:
    path = tmp_path / "bindings"
    path.write_text("")
    note = f"the binding file {path} has no line for a NIC of this run (02:5a:00:00:00:00, "
    spec = pair(mx=MxParameters(process_binding=f"file:{path}"))
    assert any(text.startswith(note) for text in place(spec, TWO_CPUS).notes)
    path.write_text("board 02:5a:00:00:00:01 ep 0 irq 24 mask 1\n")
    spec = replace(spec)  # reads it again
    assert not any("binding file" in text for text in place(spec, TWO_CPUS).notes)


def test_without_real_time_priority_nothing_is_said_to_preempt() -> None:
    for placement in (place(pair(), TWO_CPUS, NO_RIGHT), place(pair(realtime=False), TWO_CPUS)):
        assert not any("preempt" in process.reason for process in placement.processes)
        assert "they take turns with its ranks" in placement.processes[1].reason


@pytest.mark.parametrize("topology", [ONE_CPU, TWO_CPUS, SMT_PAIR, CLOVERTOWNS])
def test_the_table_fits_a_terminal(topology: Topology) -> None:
    for spec in (pair(), pair(host=HostParameters(cores=4)), one_node()):
        lines = place(spec, topology, NO_RIGHT).table().splitlines()
        assert max(map(len, lines[1:])) <= 80


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": 0}, "1 to 4096 nodes, not 0"),
        ({"mode": "three-node"}, "mode must be one of two-node, generator"),
        ({"mode": "generator", "nodes": 3}, "mode 'generator' has 2 nodes"),
        ({"nodes": 257}, "a line from each node to each other one, 65792 for 257: set network"),
        ({"ranks": ()}, "at least one rank"),
        ({"ranks": (RankSpec(5, "pingpong"),)}, "rank 0 is on node 5"),
        ({"ranks": (RankSpec(0, "pingpong", core=1),)}, "rank 0 is on core 1"),
        ({"companions": (CompanionSpec(0, kind="cat"),)}, "one of hog, nice, spinner, not 'cat'"),
        ({"agent_faults": (AgentFault("nic", "tickle"),)}, "one of kill, stop, not 'tickle'"),
        ({"trace_entries": -1}, "trace_entries must not be negative"),
    ],
)
def test_an_impossible_cluster_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ClusterSpec(**{"ranks": (RankSpec(0, "pingpong"),), **changes})


OFFLOAD = HostParameters(copy_offload=True)


def test_a_dma_agent_has_a_cpu_of_its_own_where_there_is_one() -> None:
    placement = place(pair(host=OFFLOAD), CLOVERTOWNS)
    used = cpus(placement)
    agents = {name: process for name, process in used.items() if name.endswith(".dma")}
    assert sorted(agents) == ["node0.dma", "node1.dma"]
    assert len({*used.values()}) == 6  # two NICs, two cores with rank and handler, two agents
    dma = placement.processes[placement.process_index("node1.dma")]
    assert (dma.realtime, dma.wait.strategy, dma.role) == (40, "spin-block", "dma")
    assert dma.reason == "copies for node 1, alone on its CPU"


def test_else_it_is_with_core_0_of_its_node() -> None:
    placement = place(pair(host=OFFLOAD), TWO_CPUS)
    assert [cpus(placement)[f"node{node}.dma"] for node in (0, 1)] == [0, 1]
    dma = placement.processes[placement.process_index("node0.dma")]
    assert (dma.realtime, dma.wait.strategy) == (40, "block")
    assert dma.reason == "copies for node 0, without a CPU of its own: behind the interrupts"
    three = cpus(place(pair(host=OFFLOAD), THREE_CPUS))
    assert three["node0.dma"] == three["rank0"]


def test_a_dma_agent_can_be_put_on_a_cpu() -> None:
    placement = place(pair(host=OFFLOAD, cpus={"node1.dma": 2}), THREE_CPUS)
    assert cpus(placement)["node1.dma"] == 2
    with pytest.raises(InputError, match=r"there is no agent 'node1\.dma'"):
        place(pair(cpus={"node1.dma": 2}), THREE_CPUS)
    assert priorities(place(pair(host=OFFLOAD), THREE_CPUS, NO_RIGHT))["node0.dma"] == 0


def test_a_generator_has_no_dma_agent() -> None:
    placement = place(one_node(host=OFFLOAD), TWO_CPUS)
    assert [name for name in cpus(placement) if name.endswith(".dma")] == ["node0.dma"]


AWAKE = HostParameters(idle="awake")


def test_cores_sleep_unless_told_otherwise() -> None:
    placement = place(pair(), TWO_CPUS, pm_qos=(True, "cpuidle driver x"))
    assert placement.as_dict()["idle"] == placement.idle == "sleep"
    assert "idle cores" not in placement.table()
    assert not any("spinner" in name for name in cpus(placement))


def test_pm_qos_keeps_cores_awake_without_a_process() -> None:
    placement = place(pair(host=AWAKE), TWO_CPUS, pm_qos=(True, "cpuidle driver x"))
    assert placement.as_dict()["idle"] == "pm-qos"
    assert "idle cores: kept awake by PM QoS; cpuidle driver x" in placement.table()
    assert len(placement.processes) == 5
    assert not placement.degraded


def test_without_pm_qos_a_spinner_keeps_each_cpu_of_a_core_awake() -> None:
    placement = place(pair(host=AWAKE), THREE_CPUS, pm_qos=(False, "no cpuidle driver"))
    assert placement.as_dict()["idle"] == "spinner"
    assert "idle cores: kept awake by spinners; no cpuidle driver" in placement.table()
    spinners = [process for process in placement.processes if process.idle_class]
    # The NICs' own CPU, 0, is never idle.
    assert {process.name: process.cpu for process in spinners} == {"spinner0": 1, "spinner1": 2}
    assert all(process.realtime == process.niceness == 0 for process in spinners)
    assert [agent.kind for process in spinners for agent in process.agents] == ["hog", "hog"]
    rows = [line.split()[:4] for line in placement.table().splitlines()]
    assert ["spinner0", "1", "idle", "sched"] in rows


def test_one_spinner_is_enough_for_cores_that_share_a_cpu() -> None:
    host = HostParameters(idle="awake", cores=4)
    placement = place(pair(host=host, companions=(CompanionSpec(1),)), TWO_CPUS)
    placed = cpus(placement).items()
    spinners = {name: cpu for name, cpu in placed if name.startswith("spinner")}
    assert spinners == {"spinner1": 0, "spinner2": 1}
    only_one = place(one_node(host=AWAKE), TWO_CPUS)
    assert [process.cpu for process in only_one.processes if process.idle_class] == [1]
