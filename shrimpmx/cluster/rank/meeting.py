"""Ranks wait for each other before their work and after it, and answer the others meanwhile."""

from __future__ import annotations

from shrimpmx.cluster.nics.rank import Rank
from shrimpmx.errors import AbortedError, AgentError

# Between two looks at the other ranks while there is nothing to measure, ns.
LOOK_NS = 200_000
# The same while others still measure: twice as long after each, so that ranks that are done do not
# take CPUs from them.
LINGER_LOOK_NS = 1_000_000
LINGER_LOOK_MAX_NS = 16_000_000


def meet(rank: Rank) -> None:
    """Wait until every rank is here. Others may still need this one's answers."""
    control, plan = rank.control, rank.seat.run
    control.set_runner_state(rank.seat.plan.runner, "running")
    # The processes of ranks follow each other.
    first = plan.ranks[0].runner
    left_ns = round(plan.deadline_s * 1e9)
    while not control.all_began(first, len(plan.ranks)):
        if control.stop_state() != "no":
            raise AbortedError("the run was stopped before its ranks had met")
        if left_ns <= 0:
            raise AgentError(f"the ranks did not meet within {plan.deadline_s:g} s")
        rank.progress()
        rank.host.sleep(LOOK_NS)
        left_ns -= LOOK_NS


def linger(rank: Rank) -> None:
    """Answer the others until the run is stopped."""
    look_ns = LINGER_LOOK_NS
    while rank.control.stop_state() == "no":
        busy = rank.progress() > 0
        look_ns = LINGER_LOOK_NS if busy else min(2 * look_ns, LINGER_LOOK_MAX_NS)
        rank.host.sleep(look_ns)
