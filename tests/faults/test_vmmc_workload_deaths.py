"""A partner that dies ends its peer's work on SHRIMP's NIC with an error, whatever it waits for."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from support.clusters import run

from shrimpmx.cluster.spec import AgentFault
from shrimpmx.experiment.clusters import cluster_spec
from shrimpmx.experiment.point import PointParameters

ENDLESS = 10_000_000
KILLED_S = 0.1


def survivor(work: dict[str, Any], wait: str, victim: int, after_s: float) -> str:
    """Why the partner of a rank that was killed has ended."""
    parameters = PointParameters.model_validate(
        {
            "nic": {"nic_kind": "vmmc"},
            "wait": {"strategy": wait},
            "workload": {"iterations": ENDLESS, **work},
        }
    )
    spec = dataclasses.replace(
        cluster_spec(parameters, 1),
        survive=True,
        agent_faults=(AgentFault(f"rank{victim}", after_s=after_s),),
    )
    result = run(spec)
    assert "SIGKILL" in result.lost[f"rank{victim}"]
    return result.lost[f"rank{1 - victim}"]


@pytest.mark.nightly("each workload and death", but=4)
@pytest.mark.parametrize("wait", ["block", "spin", "notify"])
@pytest.mark.parametrize(
    ("work", "words"),
    [
        ({"kind": "pingpong", "delay_us": 100}, "has closed"),
        ({"kind": "flags", "flags": 100}, "has closed"),
        ({"kind": "arrivals", "delay_us": 100}, "has closed"),
        ({"kind": "ttcp", "size_bytes": 100}, "connection was lost"),
    ],
)
@pytest.mark.parametrize("victim", [0, 1])
def test_who_is_left_hears_of_it(work: dict[str, Any], words: str, victim: int, wait: str) -> None:
    why = survivor(work, wait, victim, KILLED_S)
    # On a slow machine the socket may not be connected yet.
    assert words in why or (work["kind"] == "ttcp" and "before it was connected" in why)


@pytest.mark.nightly("each workload and death", but=2)
@pytest.mark.parametrize("after_s", [0.0, 0.001, 0.002, 0.004])
@pytest.mark.parametrize("victim", [0, 1])
def test_who_dies_before_the_partners_have_met_is_not_waited_for(
    victim: int, after_s: float
) -> None:
    why = survivor({"kind": "pingpong", "delay_us": 100}, "block", victim, after_s)
    assert "has closed" in why


@pytest.mark.nightly("each moment and strategy", but=4)
@pytest.mark.parametrize("wait", ["block", "spin"])
@pytest.mark.parametrize("after_s", [0.0, 0.001, 0.002, 0.004])
@pytest.mark.parametrize("victim", [0, 1])
def test_who_dies_before_it_is_connected_is_not_waited_for(
    victim: int, after_s: float, wait: str
) -> None:
    why = survivor({"kind": "ttcp", "size_bytes": 100}, wait, victim, after_s)
    assert "before it was connected" in why or "connection was lost" in why
