from collections.abc import Sequence

from shrimpmx.nic.coalescing import CoalescingPolicy
from shrimpmx.nic.interrupt_line import InterruptLine
from shrimpmx.nic.policy import Policy
from shrimpmx.params import LinkFaults, NicParameters
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.node import Node
from shrimpmx.wire.link import LinkEgress

class Firmware(Agent):
    node: Node
    policy: CoalescingPolicy
    egress: LinkEgress
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
