"""What a rank pays, from the run's plan."""

from __future__ import annotations

from shrimpmx.cluster.nics.plan import RankPlan, RanksPlan
from shrimpmx.costs.meter import Prices


def rank_prices(run: RanksPlan, plan: RankPlan, simulated: bool) -> Prices:
    """The prices of its host; those of memory, messages and cores are simulated hosts' only."""
    charged = {**vars(run.host), **vars(run.mx), **vars(plan.wait)}
    if not simulated:
        return Prices(charged)
    lines = run.lines[plan.node] if run.lines else ()
    return Prices({**run.model, **charged}, lines, run.keeps_copies)
