"""A process of the file service that dies while the other one waits for it."""

from __future__ import annotations

import pytest
from support.clusters import run, run_until_killed
from support.file_service import file_service_pair

from shrimpmx.cluster.spec import AgentFault
from shrimpmx.settings.host import WaitParameters

# Longer than any test, and no large file.
LONG = {"iterations": 60_000, "warmup": 0, "size_bytes": 64, "delay_ns": 1_000_000}


@pytest.mark.nightly("each moment", but=4)
@pytest.mark.parametrize("killed", [0, 1], ids=["client", "holder"])
@pytest.mark.parametrize("wait", ["spin", "block", "spin-block"])
# Before it listens, perhaps; and in the middle of its work.
@pytest.mark.parametrize("after_s", [0.0, 0.1])
def test_the_other_one_says_whose_connection_is_lost(
    after_s: float, wait: str, killed: int
) -> None:
    spec = file_service_pair(
        **LONG,
        wait=WaitParameters(strategy=wait),
        survive=True,
        agent_faults=(AgentFault(f"rank{killed}", "kill", after_s),),
    )
    result = run(spec)
    assert set(result.lost) == {"rank0", "rank1"}
    assert "was killed by SIGKILL" in result.lost[f"rank{killed}"]
    words = f"lost its connection to node {killed} (rank {killed})"
    assert words in result.lost[f"rank{1 - killed}"]


def test_without_survive_the_death_ends_the_run() -> None:
    fault = AgentFault("rank0", "kill", 0.1)
    error, _ = run_until_killed(file_service_pair(**LONG, agent_faults=(fault,)))
    assert error.agent == "rank0"
