"""What must be over within a given time. Run them with `pytest --timing tests/timing`."""

from __future__ import annotations

import pytest
from support.clusters import (
    ENDLESS,
    generator_stream,
    pingpong_pair,
    run,
    run_until_killed,
    sixteen_agents,
)

from shrimpmx.cluster.place.placement import place
from shrimpmx.cluster.place.topology import Topology
from shrimpmx.cluster.spec import AgentFault, CompanionSpec
from shrimpmx.settings.host import WaitParameters

pytestmark = pytest.mark.timing

# A machine that does something else for a moment gets another try.
TRIES = 3
LAUNCH_AND_STOP_S = 0.5
KILL_TO_END_S = 1.0
BLOCK = WaitParameters(strategy="block")
COMPANY = (CompanionSpec(0), CompanionSpec(1, kind="nice"))


def test_sixteen_agents_start_and_stop_in_half_a_second() -> None:
    taken_s = []
    for _ in range(TRIES):
        result = run(sixteen_agents())
        taken_s.append(result.launch_s + result.stop_s)
    assert min(taken_s) < LAUNCH_AND_STOP_S


@pytest.mark.parametrize("role", ["nic", "irq", "rank", "hog"])
@pytest.mark.parametrize("mode", ["two-node", "generator"])
def test_a_run_ends_within_a_second_of_a_kill(mode: str, role: str) -> None:
    """The NIC's process of a generator run is that of the generator, too."""
    make = generator_stream if mode == "generator" else pingpong_pair
    company = COMPANY[:1] if mode == "generator" else COMPANY
    plans = place(make(companions=company), Topology.of_this_machine()).processes
    for name in [plan.name for plan in plans if plan.role == role]:
        fault = AgentFault(name, after_s=0.05)
        spec = make(ENDLESS, wait=BLOCK, companions=company, agent_faults=(fault,))
        assert min(run_until_killed(spec)[1] for _ in range(TRIES)) < KILL_TO_END_S, name
