"""What a rank's process does on SHRIMP's NIC: opens its process of VMMC, meets, works, reports."""

from __future__ import annotations

from shrimpmx.cluster.engine.agents import agent_numbers
from shrimpmx.cluster.engine.lending import lent_nic
from shrimpmx.cluster.engine.parts import RunParts
from shrimpmx.cluster.engine.rank_steps import announce, linger, measure, meet, meter_of
from shrimpmx.cluster.engine.vmmc_workloads import VMMC_WORKLOADS, VmmcContext
from shrimpmx.cluster.place.placement import ProcessPlan
from shrimpmx.vmmc.process import VmmcProcess
from shrimpmx.wait.waiter import Waiter


def run_rank(parts: RunParts, plan: ProcessPlan, index: int, waiter: Waiter) -> None:
    """The life of the rank process `index`; reports as an Open-MX rank does.

    Ranks meet when all are open; connections are the workloads' business.
    """
    spec, control = parts.spec, parts.memory.control
    number = plan.agents[0].number
    rank = spec.ranks[number]
    with VmmcProcess(
        parts.memory.nodes[rank.node],
        spec.endpoints[number],
        index,
        waiter=waiter,
        core=rank.core,
        agent=agent_numbers(parts.placement)[plan.agents[0].name],
        lent=lent_nic(parts, plan),
    ) as process:
        announce(parts, plan, index)
        with waiter:
            meter = meter_of(parts, plan, index)
            context = VmmcContext(
                number,
                len(spec.ranks),
                process,
                waiter,
                control,
                rank.options,
                spec.seed + number,
                rank.node,
                rank.core,
                [
                    (other.node, endpoint)
                    for other, endpoint in zip(spec.ranks, spec.endpoints, strict=True)
                ],
                meter.start,
            )
            meet(parts, index)
            measure(parts, plan, meter, lambda: VMMC_WORKLOADS[rank.workload](context))
        # Its memory stays mapped for those that still work.
        linger(control)
