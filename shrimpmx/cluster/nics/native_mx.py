"""Native MX: the NIC's firmware handles packets itself and never interrupts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shrimpmx.cluster.nics.ethernet import Ethernet
from shrimpmx.cluster.nics.kind import Charges, Groups, NicOrder
from shrimpmx.errors import InputError
from shrimpmx.nic.firmware import Port
from shrimpmx.nic.mx import MxFirmware
from shrimpmx.settings.core_lists import AUTO
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.node import Node

if TYPE_CHECKING:
    from shrimpmx.settings.host import HostParameters
    from shrimpmx.settings.nic import NicParameters

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
