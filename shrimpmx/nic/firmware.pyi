from collections.abc import Sequence

from shrimpmx.nic.coalescing import CoalescingPolicy
from shrimpmx.nic.interrupt_line import InterruptLine
from shrimpmx.nic.policy import Policy
from shrimpmx.nic.port import Port
from shrimpmx.params import LinkFaults, NicParameters
from shrimpmx.shared.node import Node

class Firmware(Port):
    policy: CoalescingPolicy
    line: InterruptLine
    def __init__(
        self,
        nodes: Sequence[Node],
        index: int,
        parameters: NicParameters,
        policy: CoalescingPolicy | Policy | None = None,
        faults: LinkFaults | None = None,
        dilation: float = 1.0,
    ) -> None: ...
