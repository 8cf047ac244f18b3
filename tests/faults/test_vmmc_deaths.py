"""Ranks with SHRIMP's NIC that die: their peers hear of it, and nothing is left behind."""

from __future__ import annotations

import os
import signal

import pytest
from support.clusters import ENDLESS, run
from support.vmmc_programs import (
    LIMIT_NS,
    PAGE,
    VMMC,
    cluster,
    flag_pingpong,
    map_when_exported,
)

from shrimpmx.cluster.nics.vmmc import VmmcRank
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import AgentError, VmmcError
from shrimpmx.settings.host import WaitParameters


def wait_for_ever(context: VmmcRank) -> dict[str, list[int]]:
    """Rank 1 is killed when both have mapped, before it sets the flag that rank 0 waits for."""
    process = context.process
    flag = process.export(PAGE).flag(0)
    partner = map_when_exported(process, context.peer_node, context.peer_endpoint)
    if context.number == 1:
        assert process.wait([flag], timeout_ns=LIMIT_NS)
        os.kill(os.getpid(), signal.SIGKILL)
    partner.set_flag(0, 1)
    with pytest.raises(VmmcError) as caught:
        process.wait([flag], timeout_ns=LIMIT_NS, peers=[partner])
    assert caught.value.status == "gone"
    with pytest.raises(VmmcError) as caught:
        partner.update(b"x")
    assert caught.value.status == "gone"
    return {"ended": [1]}


@pytest.mark.parametrize("strategy", ["spin", "block", "notify", "spin-block", "watchdog"])
def test_who_waits_for_a_flag_of_a_killed_rank_is_told(strategy: str) -> None:
    wait = WaitParameters(strategy=strategy, spin_ns=20_000)  # type: ignore[arg-type]
    result = run(cluster(wait_for_ever, wait=wait, survive=True))
    assert set(result.lost) == {"rank1"}
    assert "was killed by SIGKILL" in result.lost["rank1"]
    assert "ended" in result.samples["rank0"]


def test_other_pairs_go_on() -> None:
    plays = (
        flag_pingpong(ENDLESS),
        flag_pingpong(ENDLESS, dies_after_s=0.05),
        *(flag_pingpong(300), flag_pingpong(300)),
    )
    ranks = tuple(
        RankSpec(number % 2, "function", function=play) for number, play in enumerate(plays)
    )
    wait = WaitParameters(strategy="block")
    result = run(ClusterSpec(ranks=ranks, nic=VMMC, wait=wait, survive=True))
    assert set(result.lost) == {"rank0", "rank1"}
    assert "has gone away" in result.lost["rank0"]
    assert all(result.samples[f"rank{n}"]["rounds"] == 300 for n in (2, 3))


def test_without_survive_the_run_ends_and_names_it() -> None:
    with pytest.raises(AgentError, match=r"^rank1 .* was killed by SIGKILL") as caught:
        run(cluster(wait_for_ever, wait=WaitParameters(strategy="block")))
    assert caught.value.agent == "rank1"


def test_a_rank_that_fails_is_gone_for_its_peer_too() -> None:
    def play(context: VmmcRank) -> None:
        process = context.process
        buffer = process.export(PAGE)
        partner = map_when_exported(process, context.peer_node, context.peer_endpoint)
        if context.number == 1:
            # Not before its peer has mapped it.
            process.wait([buffer.flag(0)], timeout_ns=LIMIT_NS)
            raise RuntimeError("this rank has had enough")
        partner.set_flag(0, 1)
        with pytest.raises(VmmcError, match="has gone away"):
            process.wait([buffer.flag(0)], timeout_ns=LIMIT_NS, peers=[partner])

    result = run(cluster(play, wait=WaitParameters(strategy="block"), survive=True))
    assert set(result.lost) == {"rank1"}
    assert "had enough" in result.lost["rank1"]
