"""Whether senders on SHRIMP's NIC lend it their CPU; see nic/lent.pyx."""

from __future__ import annotations

from shrimpmx.cluster.engine.parts import RunParts
from shrimpmx.cluster.place.placement import Placement, ProcessPlan
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.nic.lent import LentNic


def senders_lend(spec: ClusterSpec, placement: Placement) -> bool:
    """Where the NICs share one process, and that its CPU with ranks.

    Not with link faults or a tx gap, which are the NIC's business, nor where a rank has the NIC's
    watchdog time its interrupts, nor in a run that is traced: records are the NIC's.
    """
    waits = [spec.wait_of(number).strategy for number in range(len(spec.ranks))]
    return (
        spec.nic.nic_kind == "vmmc"
        and not placement.nic_alone
        and len(placement.nic_cpus) == 1
        and spec.link_faults is None
        and spec.nic.tx_gap_ns == 0
        and spec.trace_entries == 0
        and "watchdog" not in waits
    )


def lent_nic(parts: RunParts, plan: ProcessPlan) -> LentNic | None:
    """What a rank's process sends with, if it lends its NIC the CPU."""
    if not senders_lend(parts.spec, parts.placement):
        return None
    number = plan.agents[0].number
    node, endpoint = parts.spec.ranks[number].node, parts.spec.endpoints[number]
    return LentNic(parts.memory.nodes, node, endpoint, parts.spec.nic)
