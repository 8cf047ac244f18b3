"""Ranks of real processes run where process binding puts them, and move while they work."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.clusters import on_both_engines, run

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.nics.mx_rank import MxRank
from shrimpmx.cluster.nics.mx_workloads import WORKLOADS
from shrimpmx.cluster.nics.rank import RankSamples
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import AgentError, InputError
from shrimpmx.experiment.clusters import cluster_spec
from shrimpmx.experiment.outcome import outcome_of
from shrimpmx.experiment.point import PointParameters
from shrimpmx.mx.binding import board_of
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared import host

CORES, ITERATIONS, WARMUP = 4, 40, 10
MESSAGES = ITERATIONS + WARMUP
HANDOVERS = ("handover_endpoint", "handover_event", "handover_event_back")


def result_of(**groups: dict[str, Any]) -> ClusterResult:
    """Ping-pongs between two nodes of four cores, an interrupt per packet."""
    groups["host"] = {"cores": CORES, **groups.get("host", {})}
    groups["nic"] = {"coalescing": "disabled", **groups.get("nic", {})}
    groups["workload"] = {
        "iterations": ITERATIONS,
        "warmup": WARMUP,
        "size_bytes": 64,
        **groups.get("workload", {}),
    }
    groups.setdefault("wait", {"strategy": "block"})
    spec = cluster_spec(PointParameters.model_validate(groups), 1)
    result = run(spec)
    samples = outcome_of(spec, result).samples
    assert len(samples) == ITERATIONS * len(spec.ranks) // 2
    assert np.all(samples > 0)
    return result


def counted(result: ClusterResult, name: str) -> dict[str, int]:
    """What each irq agent counted, by its name; zeros left out."""
    counts = {agent: result.counters[agent][name] for agent in result.counters if "irq" in agent}
    return {agent: count for agent, count in counts.items() if count}


def whereabouts(context: MxRank) -> RankSamples:
    """A workload: the CPUs that the process may use and its core, as it begins and after moves."""
    found: dict[str, list[int]] = {"cpus": [], "cores": []}
    for move in range(CORES):
        if move and context.move is not None:
            context.move()
        (cpu,) = os.sched_getaffinity(0)
        core = context.endpoint.process_core
        found["cpus"].append(cpu)
        found["cores"].append(-1 if core is None else core)
    return {name: np.array(values) for name, values in found.items()}


@pytest.mark.nightly("each binding", but=2)
@pytest.mark.parametrize(
    ("binding", "cores"), [("none", [1, 1]), ("auto", [0, 1]), ("3+2", [3, 2]), ("all:2", [2, 2])]
)
def test_a_process_is_on_the_cpu_of_its_core(
    binding: str, cores: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WORKLOADS, "whereabouts", whereabouts)
    result = run(
        ClusterSpec(
            ranks=tuple(RankSpec(number % 2, "whereabouts", 1) for number in range(4)),
            nic=NicParameters(rx_queues=CORES),
            host=HostParameters(cores=CORES),
            mx=MxParameters(process_binding=binding),
        )
    )
    for number in range(4):
        seen = result.samples[f"rank{number}"]
        first = cores[number // 2]
        assert list(seen["cores"]) == [(first + move) % CORES for move in range(CORES)]
        cpus = [result.placement.core_cpus[number % 2, core] for core in seen["cores"]]
        assert list(seen["cpus"]) == cpus
        assert result.counters[f"rank{number}"]["moves"] == CORES - 1


@on_both_engines
def test_bound_to_its_queues_core_a_rank_shares_nothing_with_another_core() -> None:
    result = result_of(
        cluster={"pairs": CORES, "rank_core": 1},
        nic={"rx_queues": CORES},
        mx={"process_binding": "auto"},
    )
    for name in HANDOVERS:
        assert counted(result, name) == {}
    for node in (0, 1):
        for core in range(CORES):
            counts = result.counters[f"node{node}.irq{core}"]
            # Each core takes the packets of one endpoint, whose process runs there.
            assert counts["recv_at_process"] == counts["recv_packets"] >= MESSAGES
            assert sum(1 for taken in result.interrupts[node][core] if taken) == 1
    for rank in range(2 * CORES):
        assert result.counters[f"rank{rank}"]["recv_messages"] == MESSAGES
        assert result.counters[f"rank{rank}"]["moves"] == 0


@on_both_engines
def test_bound_elsewhere_every_event_goes_to_another_core() -> None:
    result = result_of(cluster={"pairs": 2}, nic={"rx_queues": 2}, mx={"process_binding": "3+2"})
    handed = counted(result, "handover_event")
    assert sorted(handed) == ["node0.irq0", "node0.irq1", "node1.irq0", "node1.irq1"]
    assert min(handed.values()) >= MESSAGES
    assert counted(result, "recv_at_process") == {}


@on_both_engines
def test_a_binding_file_puts_each_rank_on_the_cores_of_its_mask(tmp_path: Path) -> None:
    path = tmp_path / "bindings"
    path.write_text(
        f"board {board_of(0)} ep 0 irq 0 mask 00000004\n"
        f"board {board_of(1)} ep 0 irq 0 mask 0000000c\n"
    )
    result = result_of(host={"irq_binding": "2"}, mx={"process_binding": f"file:{path}"})
    counts = result.counters["node0.irq2"]
    assert counts["recv_at_process"] == counts["recv_packets"] >= MESSAGES
    # With two cores to run on it is unknown whether it is this one.
    assert result.counters["node1.irq2"]["recv_at_process"] == 0
    path.write_text("board\n")
    with pytest.raises(InputError, match="line 1 of the binding file"):
        result_of(mx={"process_binding": f"file:{path}"})


@pytest.mark.nightly("each pace on each engine", but=3)
@on_both_engines
@pytest.mark.parametrize(("every", "moves"), [(MESSAGES, 0), (10, 4), (7, 7)])
def test_ranks_move_and_no_message_is_damaged(every: int, moves: int) -> None:
    result = result_of(workload={"move_every": every, "size_bytes": 3000})
    for rank in ("rank0", "rank1"):
        assert result.counters[rank]["moves"] == moves
        assert result.counters[rank]["recv_messages"] == MESSAGES


def test_a_core_that_a_rank_cannot_move_to_ends_the_run_with_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_cpus: object) -> None:
        raise InputError("cannot run on CPU 9: this machine has 2 CPUs")

    monkeypatch.setattr(host, "pin", refuse)
    with pytest.raises(AgentError, match=r"rank[01].* cannot run on CPU 9: this machine has 2"):
        result_of(workload={"move_every": 10, "size_bytes": 50_000})


@on_both_engines
def test_with_arfs_the_queue_follows_a_rank_that_moves() -> None:
    moving = {"move_every": 10}
    stays = result_of(nic={"rx_queues": CORES}, workload=moving)
    follows = result_of(nic={"rx_queues": CORES, "steering": "arfs"}, workload=moving)
    for node in (0, 1):
        assert stays.counters[f"node{node}.nic"]["flow_moves"] == 0
        assert follows.counters[f"node{node}.nic"]["flow_moves"] >= 3
    assert sum(counted(stays, "handover_event").values()) >= MESSAGES
    assert sum(counted(follows, "handover_event").values()) < MESSAGES
    assert follows.counters["rank0"]["moves"] == follows.counters["rank1"]["moves"] == 4


@on_both_engines
def test_ranks_move_on_native_mx_too() -> None:
    result = result_of(nic={"nic_kind": "mx"}, workload={"move_every": 10})
    assert result.counters["rank0"]["moves"] == result.counters["rank1"]["moves"] == 4


@on_both_engines
@pytest.mark.parametrize("kind", ["pingpong", "stream"])
def test_pairs_work_side_by_side_over_ethernet(kind: str) -> None:
    groups = {"cluster": {"pairs": 3}, "wait": {"strategy": "block"}}
    work = {"kind": kind, "iterations": ITERATIONS, "warmup": WARMUP, "size_bytes": 100}
    spec = cluster_spec(PointParameters.model_validate({**groups, "workload": work}), 1)
    result = run(spec)
    received = [result.counters[f"rank{rank}"]["recv_messages"] for rank in range(6)]
    assert received == ([MESSAGES] * 6 if kind == "pingpong" else [0, MESSAGES] * 3)
    samples = outcome_of(spec, result).samples
    assert len(samples) == (3 * ITERATIONS if kind == "pingpong" else 3)
