from collections.abc import Callable

from shrimpmx.link.ends import Egress, Ingress
from shrimpmx.nic.interrupt_line import InterruptLine
from shrimpmx.nic.names import AnyPolicy
from shrimpmx.nic.steering import Steering
from shrimpmx.nic.strategies import CoalescingPolicy
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.node import Node

class Port(Agent):
    node: Node
    egress: Egress
    ingress: Ingress
    def __init__(self, node: Node, egress: Egress, ingress: Ingress) -> None: ...

class RxQueue:
    number: int
    policy: CoalescingPolicy
    line: InterruptLine
    def __init__(
        self, node: Node, number: int, policy: CoalescingPolicy, raise_if_empty: bool
    ) -> None: ...

class Firmware(Port):
    queues: tuple[RxQueue, ...]
    steering: Steering
    def __init__(
        self,
        node: Node,
        egress: Egress,
        ingress: Ingress,
        parameters: NicParameters,
        policy: AnyPolicy | Callable[[], AnyPolicy] | None = None,
        dilation: float = 1.0,
        seed: int | None = None,
    ) -> None: ...
