"""Open-MX on a NIC that interrupts, and native MX, whose NIC handles packets itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shrimpmx.cluster.nics.kind import Charges, Groups, NicKind, NicOrder
from shrimpmx.errors import InputError
from shrimpmx.host import endpoint as driver
from shrimpmx.host.interrupts import InterruptAgent
from shrimpmx.nic.firmware import Firmware, Port
from shrimpmx.nic.mx import MxFirmware
from shrimpmx.settings.core_lists import AUTO
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.node import Node

if TYPE_CHECKING:
    from shrimpmx.settings.host import HostParameters
    from shrimpmx.settings.nic import NicParameters


class Ethernet(NicKind):
    """The coalescing and multiqueue papers' NIC."""

    name = "ethernet"
    has_queues = True
    workloads_in = "shrimpmx.cluster.nics.mx_workloads:WORKLOADS"

    def make_nic(self, order: NicOrder) -> Port:
        """Its firmware, with a coalescing policy for each rx queue."""
        return Firmware(
            order.node,
            order.egress,
            order.ingress,
            order.nic,
            order.policy,
            dilation=order.dilation,
            seed=order.seed,
        )

    def make_handler(
        self, node: Node, core: int, agent: int, groups: Groups, charges: Charges
    ) -> Agent:
        """An interrupt handler that polls rx rings."""
        host = groups.host
        deferral = host.napi_defer_hard_irqs, host.gro_flush_timeout_ns
        return InterruptAgent(
            node,
            core,
            agent,
            host.irq_budget,
            host.irq_demote_after,
            charges.prices,
            charges.delivery_ns,
            charges.are_processes,
            *(deferral if groups.nic.coalescing_row.defers else ()),
        )

    def close_dead(self, node: Node, endpoint: int) -> bool:
        """Close the endpoint of a rank that has died; its partners are told by nacks."""
        return driver.close_dead(node, endpoint)


# -- Native MX: the NIC's firmware handles packets itself and never interrupts.

ALONE = "nic 'mx' handles packets itself, without interrupts"


class NativeMx(Ethernet):
    """Myricom's own NIC, the multiqueue paper's baseline; ranks run the same library.

    What its firmware handles is counted in a record of its own.
    """

    name = "mx"
    interrupts = False
    # The host hands whole messages over: the NIC cuts them into frames.
    frame_gaps = False
    has_queues = False
    records = ("mx",)
    # A process hands a message to the NIC without its kernel, which attaches pages to frames.
    free_costs = ("send_call_ns", "send_fragment_ns")

    def make_nic(self, order: NicOrder) -> Port:
        """Its firmware."""
        return MxFirmware(order.node, order.egress, order.ingress, order.nic)

    def make_handler(
        self, node: Node, core: int, agent: int, groups: Groups, charges: Charges
    ) -> Agent:
        """InputError: there is none."""
        raise InputError(ALONE)

    def handler_name(self, node: int, core: int) -> str:
        """The NIC's record is the handler of every core."""
        return f"node{node}.mx"

    def interrupt_cores(
        self, nic: NicParameters, host: HostParameters, endpoint: int
    ) -> tuple[int, ...]:
        """None."""
        return ()

    def problems(self, groups: Groups) -> Iterator[str]:
        """Also those about handlers and interrupts."""
        yield from super().problems(groups)
        if groups.host.copy_offload:
            yield f"{ALONE} and receive copies: copy_offload needs nic 'ethernet'"
        if groups.nic.coalescing_row.ranks_poll:
            yield (
                f"{ALONE}, and ranks have no rx ring to poll: coalescing "
                f"{groups.nic.coalescing!r} needs nic 'ethernet'"
            )
        if groups.host.irq_binding != AUTO:
            yield f"{ALONE}: irq_binding needs nic 'ethernet'"
