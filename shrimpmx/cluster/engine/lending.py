"""Whether senders on SHRIMP's NIC lend it their CPU; see nic/lent.pyx."""

from __future__ import annotations

from shrimpmx.cluster.place.placement import Placement
from shrimpmx.cluster.spec import ClusterSpec


def senders_lend(spec: ClusterSpec, placement: Placement) -> bool:
    """Where the NICs share one process, and that its CPU with ranks.

    Not with link faults or a tx gap, which are the NIC's business, nor where a rank has the NIC's
    watchdog time its interrupts.
    """
    return (
        spec.kind.vmmc
        and not placement.nic_alone
        and len(placement.nic_cpus) == 1
        and spec.link_faults is None
        and spec.nic.tx_gap_ns == 0
        and not any(spec.wait_of(number).nic_timer for number in range(len(spec.ranks)))
    )
