"""Simulated runs that several processes share, each a group of leaf switches with their nodes."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import Any

import pytest
from support.grouped_runs import draw_grouped, figures_of, run_grouped

from shrimpmx.cli import main
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import AgentError, DeadlineError, DeadlockError, InputError
from shrimpmx.settings.host import WaitParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.simulation.engine import Simulated
from shrimpmx.simulation.groups import groups_of_nodes

CHUNK, CHUNKS = 2, 10


def tree(**nic: Any) -> NicParameters:
    return NicParameters.model_validate(
        {"network": "fat-tree", "leaf_nodes": 1, "spine_switches": 2, **nic}
    )


def pair(
    function: Any = None, workload: str = "pingpong", nodes: int = 2, **more: Any
) -> ClusterSpec:
    options = {"iterations": 20, "warmup": 2, "size_bytes": 2000}
    ranks = tuple(RankSpec(node, workload, 0, options, function=function) for node in range(nodes))
    wait = WaitParameters(strategy="block")
    return ClusterSpec(**{"ranks": ranks, "nodes": nodes, "nic": tree(), "wait": wait, **more})


@pytest.mark.nightly("each chunk draws clusters of another kind", but=1)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_groups_give_the_figures_of_one_process(chunk: int) -> None:
    """With scatter, lossy links and all waiting strategies; none goes back to one process."""
    for seed in range(1 + chunk * CHUNK, 1 + (chunk + 1) * CHUNK):
        spec = draw_grouped(seed)
        one, _ = run_grouped(spec, 1)
        for groups in (2, 3)[: -(-spec.nodes // 2) - 1]:
            several, alone = run_grouped(spec, groups)
            assert several == one, f"seed {seed}, {groups} groups"
            assert alone == [], f"seed {seed}, {groups} groups"


def test_a_full_link_between_groups_leaves_the_run_to_one_process() -> None:
    options = {"iterations": 60, "warmup": 0, "size_bytes": 1400}
    nic = tree(leaf_nodes=4, link_ring_entries=16, switch_when_full="pause")
    # Frames to nodes of odd numbers pass the spine switch of the other group.
    ranks = tuple(RankSpec(node, "stream", 0, options) for node in (0, 5, 1, 7))
    spec = pair(nodes=8, ranks=ranks, nic=nic)
    one, _ = run_grouped(spec, 1)
    several, alone = run_grouped(spec, 2)
    assert alone == ["simulated by one process: a link between two groups was full"]
    assert several == one


def test_a_deadlock_ends_with_the_sentence_of_one_process() -> None:
    def wait_for_ever(rank: Any) -> None:
        rank.endpoint.wait(rank.endpoint.irecv(bytearray(8)))

    with pytest.raises(DeadlockError) as alone:
        Simulated().run(pair(wait_for_ever))
    with pytest.raises(DeadlockError) as grouped:
        Simulated(groups=2).run(pair(wait_for_ever))
    assert str(grouped.value) == str(alone.value)


def test_a_deadline_is_that_of_one_process() -> None:
    def work_on(rank: Any) -> None:
        rank.host.sleep(10**10)

    for groups in (1, 2):
        with pytest.raises(DeadlineError, match="did not end in its virtual time"):
            Simulated(groups=groups).run(pair(work_on, deadline_s=1.0))


def test_a_rank_that_fails_ends_the_run_with_its_sentence() -> None:
    def fail(rank: Any) -> None:
        rank.host.sleep(1000)
        if rank.number == 1:
            raise AgentError("nothing works")

    with pytest.raises(AgentError, match="nothing works"):
        Simulated(groups=2).run(pair(fail))


def test_a_rank_that_reads_all_counters_is_simulated_by_one_process() -> None:
    spec = pair(workload="anatomy")
    spec = replace(
        spec,
        ranks=tuple(
            replace(rank, options={**rank.options, "delay_ns": 1000}) for rank in spec.ranks
        ),
    )
    several, alone = run_grouped(spec, 2)
    assert several == figures_of(Simulated().run(spec))
    assert alone == ["simulated by one process: a group failed"]


def test_a_killed_process_of_a_group_ends_the_run_with_one_sentence() -> None:
    here = os.getpid()

    def die(rank: Any) -> None:
        rank.host.sleep(10**6)
        if rank.number == 1 and os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(AgentError) as error:
        Simulated(groups=2).run(pair(die))
    assert str(error.value) == "the process of group 1 of the simulated nodes was killed by SIGKILL"
    assert error.value.exit_code == 3
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_leaf_switches_are_not_split_and_spines_are_shared_out() -> None:
    spec = pair(nodes=6, nic=tree(leaf_nodes=2, spine_switches=3))
    assert groups_of_nodes(spec, 2) == [0, 0, 0, 0, 1, 1, *(0, 0, 1), *(0, 0, 1)]
    assert groups_of_nodes(spec, 3) == [0, 0, 1, 1, 2, 2, *(0, 1, 2), *(0, 1, 2)]


@pytest.mark.parametrize(
    ("groups", "nic", "words"),
    [
        (0, NicParameters(), "there is at least 1"),
        (2, NicParameters(), "it takes network=fat-tree"),
        (3, tree(), "it has 2 leaf switches of 1 nodes"),
        (2, tree(link_delay_ns=0, switch_delay_ns=0, link_bits_per_second=0), "no time between"),
    ],
)
def test_what_cannot_be_split_is_refused(groups: int, nic: NicParameters, words: str) -> None:
    with pytest.raises(InputError, match=f"cannot be simulated in {groups} groups: .*{words}"):
        Simulated(groups=groups).run(pair(nic=nic))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--groups 2", "--groups needs --engine simulated"),
        ("--engine simulated --groups 0", "--groups must be at least 1, not 0"),
        ("--engine simulated --groups 2 --scheduler tcp://node:1", "leave out either --groups or"),
        ("--engine simulated --workers 0", "--workers must be at least 1, not 0"),
        (
            "--engine simulated --workers 2 --scheduler tcp://node:1",
            "leave it out with --scheduler",
        ),
        ("--workers 2", "--workers needs --engine simulated"),
    ],
)
def test_the_command_has_processes_of_simulated_runs_only(
    words: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "smoke/pingpong", *words.split()]) == 2
    assert why in capsys.readouterr().err
