"""A rank that dies in a run that survives it: its partner hears of it, other pairs go on."""

from __future__ import annotations

import dataclasses

import pytest
from support.clusters import ENDLESS, run
from support.conditions import patient

from shrimpmx.cluster.spec import AgentFault, ClusterSpec, RankSpec
from shrimpmx.errors import AgentError
from shrimpmx.settings.host import WaitParameters
from shrimpmx.settings.mx import MxParameters

BLOCK = WaitParameters(strategy="block")
# A loaded machine may keep a partner from answering; the endpoint of a dead one is closed.
MX = MxParameters(resend_delay_ns=round(patient(20e6)), resends_max=1500)
# How a rank learns that its partner has died; on a loaded machine it has not connected yet.
LOST_PARTNER = (
    *("endpoint-closed", "remote-endpoint-unreachable", "bad-session"),
    *("endpoint is closed", "endpoint-unreachable"),
)
ITERATIONS = 300


def two_pairs(size_bytes: int, nodes: tuple[int, ...], **more: object) -> ClusterSpec:
    """Pair 0-1 runs until something ends it, pair 2-3 runs to its end."""
    ranks = []
    for number, node in enumerate(nodes):
        iterations = ENDLESS if number < 2 else ITERATIONS
        options = {"iterations": iterations, "size_bytes": size_bytes, "warmup": 0}
        ranks.append(RankSpec(node, "pingpong", options=options))
    return ClusterSpec(
        ranks=tuple(ranks),
        wait=BLOCK,
        mx=MX,
        survive=True,
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.nightly("each strategy", but=2)
@pytest.mark.parametrize("nodes", [(0, 1, 0, 1), (0, 0, 1, 1)], ids=["wire", "shared"])
@pytest.mark.parametrize("size_bytes", [8, 20_000, 300_000])
def test_the_partner_of_a_killed_rank_ends_with_an_error_and_others_go_on(
    size_bytes: int, nodes: tuple[int, ...]
) -> None:
    spec = two_pairs(size_bytes, nodes, agent_faults=(AgentFault("rank1", "kill", 0.05),))
    result = run(spec)
    assert set(result.lost) == {"rank0", "rank1"}
    assert "was killed by SIGKILL" in result.lost["rank1"]
    assert any(word in result.lost["rank0"] for word in LOST_PARTNER), result.lost["rank0"]
    for rank in ("rank2", "rank3"):
        assert result.counters[rank]["recv_messages"] == ITERATIONS


@pytest.mark.nightly("each end and strategy", but=2)
@pytest.mark.parametrize("nodes", [(0, 1, 0, 1), (0, 0, 1, 1)], ids=["wire", "shared"])
@pytest.mark.parametrize("size_bytes", [100, 300_000])
@pytest.mark.parametrize("killed", [0, 1], ids=["sender", "receiver"])
def test_who_is_killed_in_a_stream_ends_the_other_end_alone(
    killed: int, size_bytes: int, nodes: tuple[int, ...]
) -> None:
    ranks = tuple(
        RankSpec(
            node,
            "stream",
            options={
                "size_bytes": size_bytes,
                "iterations": ENDLESS if number < 2 else ITERATIONS,
                "warmup": 0,
            },
        )
        for number, node in enumerate(nodes)
    )
    fault = AgentFault(f"rank{killed}", "kill", 0.1)
    spec = ClusterSpec(ranks=ranks, wait=BLOCK, mx=MX, survive=True, agent_faults=(fault,))
    result = run(spec)
    assert set(result.lost) == {"rank0", "rank1"}
    assert "was killed by SIGKILL" in result.lost[f"rank{killed}"]
    assert any(word in result.lost[f"rank{1 - killed}"] for word in LOST_PARTNER), result.lost
    assert result.counters["rank3"]["recv_messages"] == ITERATIONS


def test_without_survive_the_same_death_ends_the_run() -> None:
    spec = two_pairs(8, (0, 1, 0, 1), agent_faults=(AgentFault("rank1", "kill", 0.05),))
    doomed = dataclasses.replace(spec, survive=False)
    with pytest.raises(AgentError, match=r"rank1 \(pid \d+\) was killed by SIGKILL"):
        run(doomed)
