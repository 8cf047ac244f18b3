"""Every waiting strategy with every coalescing strategy, in real processes, small."""

from __future__ import annotations

import pytest
from support.clusters import on_both_engines, pingpong_pair, run

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.settings.host import WaitParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.strategies import PAPER_COALESCING_NAMES, PAPER_WAIT_NAMES

ITERATIONS, WARMUP = 50, 5
MESSAGES = ITERATIONS + WARMUP


def check_conservation(result: ClusterResult) -> None:
    """What one side sent, the other received, once."""
    for mine, other in ((0, 1), (1, 0)):
        rank, peer = result.counters[f"rank{mine}"], result.counters[f"rank{other}"]
        assert rank["send_tiny"] - rank["resent_messages"] == MESSAGES
        assert peer["recv_messages"] == MESSAGES
        nic = result.counters[f"node{mine}.nic"]
        irq = result.counters[f"node{mine}.irq0"]
        assert nic["rx_packets"] == irq["recv_packets"]
        # One may be on its way when the run ends.
        assert 0 <= nic["irq_raised"] - irq["interrupts"] <= 1
        assert result.interrupts[mine] == [[nic["irq_raised"]]]
        assert not any(value for name, value in irq.items() if name.startswith("drop_"))


def check_account(account: dict[str, int], wait: str) -> None:
    """Only what the strategy does is on its account."""
    spins = wait.startswith("spin")
    assert account["waits"] >= account["at_once"] + account["while_spinning"]
    assert (account["spin_ns"] > 0) == (spins and account["waits"] > account["at_once"])
    if wait == "spin":
        assert account["system_calls"] == 0
    if not wait.endswith("sched"):
        assert account["yields"] == 0
    if not wait.endswith(("block", "notify")):
        assert account["blocks"] == 0
        assert account["interrupts_enabled"] == 0
    assert account["system_calls"] == account["yields"] + account["blocks"]


@pytest.mark.nightly("each pair of strategies on each engine", but=6)
@on_both_engines
@pytest.mark.parametrize("coalescing", PAPER_COALESCING_NAMES)
@pytest.mark.parametrize("wait", PAPER_WAIT_NAMES)
def test_pair(wait: str, coalescing: str) -> None:
    result = run(
        pingpong_pair(
            ITERATIONS,
            warmup=WARMUP,
            wait=WaitParameters(strategy=wait),
            nic=NicParameters(coalescing=coalescing),
        )
    )
    for rank in ("rank0", "rank1"):
        assert len(result.samples[rank]["half_round_trip_ns"]) == ITERATIONS
        assert result.samples[rank]["half_round_trip_ns"].min() > 0
        check_account(result.accounts[rank], wait)
    check_conservation(result)
    raised = result.counters["node0.nic"]
    if coalescing == "timeout":
        assert raised["irq_raised_timeout"] == raised["irq_raised"]
    elif coalescing != "disabled":
        # A handler that was held up takes a marked packet before its interrupt is raised.
        asked = ("irq_raised_marked", "irq_raised_deferred", "irq_absorbed")
        assert sum(raised[name] for name in asked) >= MESSAGES
