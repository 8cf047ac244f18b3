from shrimpmx.nic.coalescing import CoalescingPolicy
from shrimpmx.nic.interrupt_line import InterruptLine
from shrimpmx.shared.node import Node

class RxQueue:
    number: int
    policy: CoalescingPolicy
    line: InterruptLine
    def __init__(
        self, node: Node, number: int, policy: CoalescingPolicy, raise_if_empty: bool
    ) -> None: ...
