"""The file service between real processes, over sockets, with the paper's strategies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.clusters import on_both_engines, run
from support.file_service import file_service_pair

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.errors import AgentError
from shrimpmx.native.drawing import seed_of
from shrimpmx.settings.host import WaitParameters
from shrimpmx.workloads.file_service import benchmark
from shrimpmx.workloads.file_service.plan import Plan
from shrimpmx.workloads.file_service.service import FileService

ITERATIONS, WARMUP = 120, 10
DAMAGED = 33


def versions(result: ClusterResult, rank: str) -> list[int]:
    return [int(version) for version in result.samples[rank]["versions"]]


@pytest.mark.nightly("each strategy on each engine", but=4)
@on_both_engines
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("wait", ["spin", "block", "spin-block"])
def test_blocks_come_from_the_other_nodes_cache(wait: str, threads: int) -> None:
    result = run(
        file_service_pair(
            iterations=ITERATIONS,
            warmup=WARMUP,
            threads=threads,
            wait=WaitParameters(strategy=wait),
        )
    )
    plan = Plan(ITERATIONS, WARMUP, threads)
    rank0, rank1 = result.counters["rank0"], result.counters["rank1"]
    assert len(result.samples["rank0"]["block_ns"]) == ITERATIONS
    assert result.samples["rank0"]["block_ns"].min() > 0
    for rank, blocks in (("rank0", ITERATIONS), ("rank1", 0)):
        assert result.samples[rank]["blocks"] == [blocks]
    found = zip(versions(result, "rank0"), versions(result, "rank1"), strict=True)
    for block, both in enumerate(found):
        assert set(both) - {0} == {plan.version(block)}
    # Each access asks one question, and each question has an answer.
    assert rank0["recv_messages"] == rank1["recv_messages"] >= ITERATIONS + WARMUP
    # A connection for each client thread of either side.
    for counters in (rank0, rank1):
        assert counters["sockets_connected"] == counters["sockets_accepted"] == threads
        assert counters["thread_switches"] > 2 * threads
    account = result.accounts["rank0"]
    assert (account["blocks"] > 0) or wait != "block"
    assert (account["system_calls"] == 0) or wait != "spin"


def test_both_ranks_measure_from_the_end_of_the_warm_up_to_the_last_access() -> None:
    computing_ns, warmup = 1_000_000, 600
    options = {"iterations": 5, "warmup": warmup, "delay_ns": computing_ns}
    result = run(file_service_pair(**options, threads=1))
    first, second = result.samples["rank0"], result.samples["rank1"]
    assert first["block_ns"].sum() <= first["wall_ns"][0]
    # The other one hears of the beginning a little before, and of the end a little later.
    longer_ns = second["wall_ns"][0] - first["wall_ns"][0]
    assert 0 < longer_ns < warmup * computing_ns
    # It spins, as the first one does: both use a CPU all the time, if they are not preempted.
    for samples in (first, second):
        used_ns = samples["user_ns"][0] + samples["system_ns"][0]
        assert 0 < used_ns < samples["wall_ns"][0] + warmup * computing_ns


@on_both_engines
def test_no_write_is_lost_when_both_nodes_write_the_same_blocks() -> None:
    result = run(
        file_service_pair(
            iterations=300,
            warmup=0,
            threads=3,
            mixed_blocks=40,
            size_bytes=512,
            wait=WaitParameters(strategy="spin-block"),
        )
    )
    plan = Plan(300, 0, 3, 512, 40, seed=seed_of("blocks", 1, 0))
    writes = sum(access.write for node in (0, 1) for access in plan.accesses(node))
    newest = np.maximum(result.samples["rank0"]["versions"], result.samples["rank1"]["versions"])
    assert newest.sum() == 40 + writes
    for rank in ("rank0", "rank1"):
        assert result.samples[rank]["blocks"] == [300]


@on_both_engines
def test_pairs_have_a_service_each() -> None:
    result = run(file_service_pair(iterations=40, warmup=0, threads=2, pairs=2))
    for rank, blocks in (("rank0", 40), ("rank1", 0), ("rank2", 40), ("rank3", 0)):
        assert result.samples[rank]["blocks"] == [blocks]


def test_what_is_computed_with_each_block_is_in_its_time() -> None:
    result = run(file_service_pair(iterations=40, warmup=0, threads=1, delay_ns=200_000))
    assert result.samples["rank0"]["block_ns"].min() >= 200_000


def test_a_block_that_is_not_what_was_written_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Damaged(FileService):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            if self.node == self.shape.holder:
                self.memory.frame(DAMAGED)[4095] ^= 1

    monkeypatch.setattr(benchmark, "FileService", Damaged)
    words = f"block {DAMAGED} on node 0 does not hold what was written as version 1"
    with pytest.raises(AgentError, match=words):
        run(file_service_pair(iterations=60, warmup=0))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"size_bytes": 8}, "at least 16 bytes, not 8"),
        ({"iterations": 70_000, "warmup": 5}, "together at most 65536, not 70005"),
    ],
)
def test_a_file_that_cannot_be_is_refused_in_a_sentence(
    options: dict[str, int], words: str
) -> None:
    with pytest.raises(AgentError, match=words):
        run(file_service_pair(**{"iterations": 10, **options}))
